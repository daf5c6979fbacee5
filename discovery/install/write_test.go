package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

const cursorFile = ".cursor/mcp.json"

// TestConflicts: what isn't as it was left is named, and left.
func TestConflicts(t *testing.T) {
	replace := func(old, with string) func(*home) {
		return func(h *home) { h.write(cursorFile, strings.Replace(h.read(cursorFile), old, with, 1)) }
	}
	for _, tt := range []struct {
		name  string
		since func(*home)
		want  string // of the conflict; empty: none
		left  string // of the file
	}{
		{"another command", replace("/bin/mcp-bridge", "/other"),
			"has another entry under mcpServers → mcp-bridge", ""},
		{"no longer JSON", replace(`"mcpServers"`, "mcpServers"), "it is not valid JSON", ""},
		{"removed", func(h *home) { h.remove(cursorFile) }, "is gone", ""},
		{"taken out by hand", func(h *home) { h.write(cursorFile, `{"mcpServers":{}}`) }, "",
			`{"mcpServers":{}}`},
		{"put back by hand", func(h *home) { h.write(cursorFile, `{"mcpServers": {"a": {"command": "b"}}}`) }, "",
			`{"mcpServers": {"a": {"command": "b"}}}`},
		{"a link by now", func(h *home) {
			h.write("elsewhere", h.read(cursorFile))
			h.remove(cursorFile)
			h.link("elsewhere", cursorFile)
		}, "is a link", ""},
		{"another server beside it", func(h *home) {
			c := edit.Change{Path: []string{"mcpServers", "z"}, Value: config.Of(1)}
			text, err := edit.Apply(cursorFile, []byte(h.read(cursorFile)), c)
			if err != nil {
				h.t.Fatal(err)
			}
			h.write(cursorFile, string(text))
		}, "", `{"mcpServers": {"a": {"command": "b"}, "z": 1}}`},
		{"no backup", func(h *home) {
			h.remove(cursorFile + backupEnding)
		}, "", `{"mcpServers": {"a": {"command": "b"}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, map[string]string{cursorFile: `{"mcpServers": {"a": {"command": "b"}}}`})
			h.install("cursor")
			tt.since(h)
			before := h.files()
			err := h.undo()
			if tt.want == "" {
				if got := h.read(cursorFile); err != nil || got != tt.left {
					t.Errorf("got %v, %s", err, got)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			if d := cmp.Diff(before, h.files()); d != "" {
				t.Errorf("it was changed (-want +got):\n%s", d)
			}
		})
	}
}

func (h *home) remove(name string) {
	h.t.Helper()
	if err := os.Remove(h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) link(target, name string) {
	h.t.Helper()
	if err := os.Symlink(h.path(target), h.path(name)); err != nil {
		h.t.Skip(err)
	}
}

// TestSecondInstall: what a second install writes is undone with the first. The user's edit between
// the two stays.
func TestSecondInstall(t *testing.T) {
	const text = `{"mcpServers": {}}`
	for _, edited := range []bool{false, true} {
		h := newHome(t, map[string]string{cursorFile: text})
		h.install("cursor")
		old := h.cfg.Command[0]
		h.cfg.Command = []string{h.path("new/mcp-bridge")}
		h.cfg.Env.Executable = h.cfg.Command[0]
		h.write("new/mcp-bridge", "")
		if err := os.Remove(old); err != nil {
			t.Fatal(err)
		}
		if edited {
			h.write(cursorFile, h.read(cursorFile)+"// mine\n")
		}
		if shown := h.install("cursor"); !strings.Contains(shown, "new/mcp-bridge") {
			t.Errorf("the second time:\n%s", shown)
		}
		if err := h.undo(); err != nil {
			t.Fatal(err)
		}
		if got := h.read(cursorFile); !edited && got != text || edited && !strings.HasSuffix(got, "}// mine\n") ||
			strings.Contains(got, "bridge") {
			t.Errorf("edited: %v, undone: %s", edited, got)
		}
	}
}

// TestOtherWriters: what another program has written since a file was read stays, whether the file
// was there or not.
func TestOtherWriters(t *testing.T) {
	for _, text := range []string{"", `{"mcpServers": {}}`} {
		h := newHome(t, map[string]string{".cursor/other": ""})
		if text != "" {
			h.write(cursorFile, text)
		}
		p, err := h.plan("cursor")
		if err != nil {
			t.Fatal(err)
		}
		h.write(cursorFile, `{"theirs": 1}`)
		before := h.files()
		var bad *FileError
		err = h.journal.Write(t.Context(), p.Files[0])
		if !errors.As(err, &bad) || !strings.Contains(bad.Why, "was changed by another program meanwhile") {
			t.Errorf("got %v", err)
		}
		if d := cmp.Diff(before, h.files()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if back, err := h.journal.PlanUndo(nil, nil); err != nil || len(back) != 0 {
			t.Errorf("it is remembered: %v, %v", back, err)
		}
		// The same in the last moment.
		if err := p.Files[0].replace(); !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
		if d := cmp.Diff(before, h.files()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// TestRacingWriter: another program rewrites the file all the time. Each read finds a whole file.
func TestRacingWriter(t *testing.T) {
	h := newHome(t, map[string]string{cursorFile: "{}"})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			text := fmt.Appendf(nil, "{\"n\": %d, \"pad\": %q}", i, strings.Repeat("x", i%5000))
			if err := filelock.Replace(h.path(cursorFile), "theirs-*", text); err != nil {
				t.Error(err)
				return
			}
		}
	})
	written := 0
	for range 200 {
		p, err := h.plan("cursor")
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Files) > 0 && h.journal.Write(t.Context(), p.Files[0]) == nil {
			written++
		}
		if _, err := edit.Parse(cursorFile, []byte(h.read(cursorFile))); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	wg.Wait()
	h.install("cursor")
	if err := h.undo(); err != nil || strings.Contains(h.read(cursorFile), "bridge") {
		t.Errorf("%v: %.200s", err, h.read(cursorFile))
	}
	t.Logf("%d of 200 were written", written)
}

// TestHostWritesMeanwhile: a host that writes something else while the user reads the diff is no
// obstacle, and its words stay.
func TestHostWritesMeanwhile(t *testing.T) {
	h := newHome(t, map[string]string{cursorFile: "{\n  \"mcpServers\": {}\n}"})
	p, err := h.plan("cursor")
	if err != nil {
		t.Fatal(err)
	}
	h.write(cursorFile, "{\n  \"starts\": 2,\n  \"mcpServers\": {}\n}")
	before := h.files()
	if err := h.journal.Write(t.Context(), p.Files[0]); err != nil {
		t.Fatal(err)
	}
	if got := h.read(cursorFile); !strings.Contains(got, "starts") || !foundItself(h) {
		t.Errorf("it holds %s", got)
	}
	back, err := h.journal.PlanUndo(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.journal.Undo(t.Context(), back[0]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, h.files()); d != "" {
		t.Errorf("undone (-want +got):\n%s", d)
	}
}

// TestUnwritable: files that aren't replaced.
func TestUnwritable(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(*home)
		want string
	}{
		{"read-only", func(h *home) {
			h.write(cursorFile, "{}")
			if err := os.Chmod(h.path(cursorFile), 0o444); err != nil {
				h.t.Fatal(err)
			}
		}, "is read-only"},
		{"a link", func(h *home) {
			h.write("elsewhere", "{}")
			h.write(".cursor/x", "")
			h.link("elsewhere", cursorFile)
		}, "is a link"},
		{"a link to nothing", func(h *home) {
			h.write(".cursor/x", "")
			h.link("nowhere", cursorFile)
		}, "is a link"},
		{"another user's", func(h *home) {
			h.write(cursorFile, "{}")
			if err := os.Chown(h.path(cursorFile), 12345, -1); err != nil {
				h.t.Skip(err)
			}
		}, "belongs to another user"},
		{"in another user's directory", func(h *home) {
			h.write(".cursor/x", "")
			if err := os.Chown(h.path(".cursor"), 12345, -1); err != nil {
				h.t.Skip(err)
			}
		}, "belongs to another user"},
		{"a directory", func(h *home) { h.write(cursorFile+"/x", "") }, "is not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t, nil)
			tt.make(h)
			var bad *FileError
			if _, err := h.plan("cursor"); !errors.As(err, &bad) || !strings.HasPrefix(bad.Why, tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestModeIsKept: a file keeps its mode; a new one and a backup are the user's alone.
func TestModeIsKept(t *testing.T) {
	h := newHome(t, map[string]string{cursorFile: "{}"})
	h.install("cursor")
	h.install("kiro")
	for name, want := range map[string]os.FileMode{cursorFile: 0o640, cursorFile + backupEnding: 0o600,
		".kiro/settings/mcp.json": 0o600} {
		if info, err := os.Stat(h.path(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestPolicy: a first policy is written once, and undone unless the user has changed it.
func TestPolicy(t *testing.T) {
	for _, changed := range []bool{false, true} {
		h := newHome(t, nil)
		path := h.path("cfg/mcp-bridge/my-policy")
		f, err := PlanPolicy(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.journal.Write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if f, err := PlanPolicy(path); err != nil || f != nil {
			t.Errorf("a second one: %v, %v", f, err)
		}
		h.install("cursor")
		if back, err := h.journal.PlanUndo([]string{"kiro"}, nil); err != nil || len(back) != 0 {
			t.Errorf("of another host: %v, %v", back, err)
		}
		if changed {
			h.write("cfg/mcp-bridge/my-policy", "default = \"deny\"\n")
		}
		err = h.undo()
		if _, gone := os.Stat(path); (gone != nil) == changed || (err != nil) != changed {
			t.Errorf("changed: %v; undone: %v, %v", changed, err, gone)
		}
	}
}
