package install

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// known returns what is known of a host.
func known(id string) *config.Host {
	return Known()[slices.IndexFunc(Known(), func(h Host) bool { return h.ID == id })].host
}

// serversFile returns the file that a host's servers are in, and where they stand in it.
func serversFile(t *testing.T, id string, files map[string]string) (path string, key []string) {
	t.Helper()
	host := known(id)
	for path, text := range files {
		root, err := edit.Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		key := []string{host.Format.Key}
		if host.Install.Key != nil {
			key = host.Install.Key(root)
		}
		if v, _ := edit.At(root, key); !v.Is("nothing") {
			return path, key
		}
	}
	t.Fatalf("%s has no servers", id)
	return "", nil
}

// beside returns a host's files with one more server, like the last one of testdata/hosts.txt.
func beside(t *testing.T, id, name string, files map[string]string) map[string]string {
	t.Helper()
	files = maps.Clone(files)
	path, key := serversFile(t, id, files)
	real := realFiles(t)[id]
	root, err := edit.Parse(path, []byte(real[path]))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := edit.At(root, key)
	o, _ := all.Object()
	c := edit.Change{Path: append(slices.Clone(key), name), Value: o[len(o)-1].Value}
	made, err := edit.Apply(path, []byte(files[path]), c)
	if err != nil {
		t.Fatal(err)
	}
	files[path] = string(made)
	return files
}

// edits are what a user does to a host's files.
var edits = map[string]func(t *testing.T, id string, files map[string]string) map[string]string{
	"nothing": func(_ *testing.T, _ string, files map[string]string) map[string]string { return files },
	"a setting at the top": func(t *testing.T, _ string, files map[string]string) map[string]string {
		h := &home{t: t}
		return each(files, func(path, text string) string { return h.mine(path, "\n"+text) })
	},
	"a server beside": func(t *testing.T, id string, files map[string]string) map[string]string {
		if id == "codex" {
			return each(files, func(_, text string) string { return text + "\n[mcp_servers.zz]\ncommand = \"x\"\n" })
		}
		return beside(t, id, "zz", files)
	},
	"a comment at the end": func(_ *testing.T, id string, files map[string]string) map[string]string {
		return each(files, func(path, text string) string {
			switch {
			case strings.HasSuffix(path, ".toml") || config.IsYAML(path):
				return text + "\n# mine: SECRET\n"
			case id == "claude-code" || id == "claude-desktop": // which reject comments
				return text + "\n \n"
			}
			return text + "\n// mine: SECRET\n"
		})
	},
}

func init() {
	all := []string{"a server beside", "a comment at the end", "a setting at the top"}
	edits["all of it"] = func(t *testing.T, id string, files map[string]string) map[string]string {
		for _, name := range all {
			files = edits[name](t, id, files)
		}
		return files
	}
}

func each(files map[string]string, change func(path, text string) string) map[string]string {
	files = maps.Clone(files)
	for path, text := range files {
		files[path] = change(path, text)
	}
	return files
}

// TestWholeRoundTrip: of each host, in each form: install, install again, which changes nothing,
// adopt, an edit by the user, and back in both orders. What is left is the file of before with the
// edit, byte for byte.
func TestWholeRoundTrip(t *testing.T) {
	for id, files := range realFiles(t) {
		for variant, form := range variants {
			for what := range edits {
				for _, order := range [][]string{{"adopt", "install"}, {"install", "adopt"}} {
					if variant != "as it is" && (what != "all of it" || order[0] != "adopt") {
						continue
					}
					t.Run(strings.Join([]string{id, variant, what, order[0] + " first"}, "/"), func(t *testing.T) {
						t.Parallel()
						wholeRoundTrip(t, id, what, order, each(files, func(_, text string) string { return form(text) }))
					})
				}
			}
		}
	}
}

func wholeRoundTrip(t *testing.T, id, what string, order []string, files map[string]string) {
	h, change := newHost(t, id, files), edits[what]
	h.journal.Verb = "install"
	if p, err := h.plan(id); err != nil || len(p.Files) > 0 {
		t.Errorf("installed again: %+v, %v", p, err)
	}
	h.journal.Verb = "adopt"
	if plan, _ := h.adoptAll(); len(plan.All) == 0 {
		t.Fatal("nothing moved")
	}
	for path, text := range change(t, id, h.texts(files)) {
		h.write(path, text)
	}
	for _, h.journal.Verb = range order {
		if err := h.undo(); err != nil {
			t.Fatal(err)
		}
	}
	want, got := maps.Clone(change(t, id, files)), h.texts(files)
	path, _ := serversFile(t, id, files)
	beside := what == "a server beside" || what == "all of it"
	if known(id).Install.Off == nil && beside && order[0] == "install" {
		// The entry that comes back stood where the new one has been put, and stands behind it now.
		is, err := edit.Parse(path, []byte(got[path]))
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := edit.Parse(path, []byte(want[path]))
		if err != nil || !is.Value().Equal(wanted.Value()) {
			t.Errorf("%s: %v\n%s", path, err, got[path])
		}
		delete(want, path)
		delete(got, path)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	h.isClean()
}

// texts returns what files hold by now.
func (h *home) texts(files map[string]string) map[string]string {
	return each(files, func(path, _ string) string { return h.read(path) })
}

// isClean fails if a backup is left, or a file of the bridge's own.
func (h *home) isClean() {
	h.t.Helper()
	for path := range h.files() {
		if strings.Contains(path, backupEnding) || strings.HasPrefix(path, ".config/mcp/") {
			h.t.Errorf("%s is left", path)
		}
	}
}

// TestTwoSteps: servers that come back one by one leave the bytes that were there before, and so
// does each step: what it gives back stands where it stood.
func TestTwoSteps(t *testing.T) {
	for id, files := range realFiles(t) {
		for _, first := range []int{0, 1} {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				h := newHost(t, id, beside(t, id, "zz", files))
				before := h.files()
				plan, _ := h.adoptAll()
				if len(plan.All) < 2 {
					t.Fatalf("moved %q", brief(plan))
				}
				for i := range plan.All {
					name := plan.All[(i+first)%len(plan.All)].Name
					back, err := h.journal.PlanUndo(nil, []string{name})
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range back {
						if err := h.journal.Undo(t.Context(), r); err != nil {
							t.Fatal(err)
						}
					}
				}
				if d := cmp.Diff(before, h.withoutSecrets()); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	}
}
