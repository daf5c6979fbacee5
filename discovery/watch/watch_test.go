package watch

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// home is a real home directory.
type home struct {
	t   *testing.T
	dir string
	age time.Time // of the next file, so that no two versions have the same
}

func newHome(t *testing.T) *home {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &home{t, dir, time.Now()}
}

func (h *home) env() discovery.Env { return discovery.Env{Home: h.dir, GOOS: "linux"} }

// write replaces a file as a whole, as most programs do.
func (h *home) write(name, data string) {
	h.t.Helper()
	p := filepath.Join(h.dir, name)
	h.age = h.age.Add(time.Millisecond)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p+".new", []byte(data), 0o600),
		os.Chtimes(p+".new", h.age, h.age), os.Rename(p+".new", p),
	} {
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *home) remove(name string) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.dir, name)); err != nil {
		h.t.Fatal(err)
	}
}

// names is the servers by their commands, and then the problems.
func names(c discovery.Catalog) string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.Name+"="+s.Command)
	}
	for _, p := range c.Problems {
		all = append(all, p.Server+"!"+p.Reason)
	}
	return strings.Join(all, " ")
}

// TestWatch: what is added, changed, broken, mended and removed on a real disk is found, each
// change once, in a directory that isn't there at first too. The bubble's clock is not the disk's.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "one"}}}`)
		w := New(discovery.Root(), h.env())
		if got := names(w.Catalog()); got != "a=one" {
			t.Fatalf("at first: %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		found := make(chan string, 10)
		go w.Run(ctx, func(c discovery.Catalog) { found <- names(c) })
		const kept = "; until it can be read again, what it held before counts"
		for _, step := range []struct {
			name string
			do   func()
			want string // empty: nothing is handed over
		}{
			{"nothing", func() {}, ""},
			{"a new directory", func() { h.write(".config/mcp/servers/b.json", `{"command": "b"}`) },
				"a=one b=b"},
			{"another file in it", func() { h.write(".config/mcp/servers/c.json", `{"command": "c"}`) },
				"a=one b=b c=c"},
			{"a change", func() { h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "two"}}}`) },
				"a=two b=b c=c"},
			{"a change that changes nothing", func() {
				h.write(".cursor/mcp.json",
					`{"mcpServers": {"a": {"command": "two"}}, "more": 1}`)
			}, ""},
			{"a broken file", func() { h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"comm`) },
				"a=two b=b c=c !it is not valid JSON: it ends too early at line 1, column 28" + kept},
			{"broken otherwise", func() { h.write(".cursor/mcp.json", ``) }, "a=two b=b c=c !it is empty" +
				kept},
			{"mended", func() { h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "three"}}}`) },
				"a=three b=b c=c"},
			{"a file of rules", func() { h.write(".codex/config.toml", "[mcp_servers.d]\ncommand = 'd'\n") },
				"a=three b=b c=c d=d"},
			{"switched off", func() {
				h.write(".codex/config.toml",
					"[mcp_servers.d]\ncommand = 'd'\nenabled = false\n")
			}, "a=three b=b c=c d!it is disabled there"},
			{"a file removed", func() { h.remove(".cursor/mcp.json") }, "b=b c=c d!it is disabled there"},
			{"a directory removed", func() { h.remove(".config") }, "d!it is disabled there"},
			{"made a directory", func() { h.remove(".codex"); h.write(".codex/config.toml/x", "") },
				"d!it is disabled there"},
		} {
			step.do()
			time.Sleep(every + 4*settle) // of the bubble's clock
			synctest.Wait()
			var got []string
			for len(found) > 0 {
				got = append(got, <-found)
			}
			if step.name == "made a directory" {
				step.want = "!it is a directory, not a file" + kept + " d!it is disabled there"
			}
			if want := slices.DeleteFunc([]string{step.want},
				func(s string) bool { return s == "" }); !slices.Equal(got, want) {
				t.Errorf("%s: handed over %q, want %q", step.name, got, want)
			}
		}
	})
}

// A link that is pointed elsewhere is a change, and so is what a file names as the place of a
// value.
func TestWatchLinksAndValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.write("one.json", `{"mcpServers": {"a": {"command": "one", "env": {"T": `+
			`"${file:`+h.dir+`/token}"}}}}`)
		h.write("two.json", `{"mcpServers": {"a": {"command": "two"}}}`)
		h.write("token", "first")
		h.write(".codeium/windsurf/.keep", "")
		link := filepath.Join(h.dir, ".codeium/windsurf/mcp_config.json")
		point := func(to string) {
			t.Helper()
			if err := os.Symlink(filepath.Join(h.dir, to), link+".new"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(link+".new", link); err != nil {
				t.Fatal(err)
			}
		}
		point("one.json")
		w := New(discovery.Root(), h.env())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var latest atomic.Pointer[discovery.Catalog]
		go w.Run(ctx, func(c discovery.Catalog) { latest.Store(&c) })
		after := func(do func()) discovery.Catalog {
			do()
			time.Sleep(every + 4*settle)
			synctest.Wait()
			return *latest.Load()
		}
		if c := after(func() { h.write("token", "second") }); len(c.Servers) != 1 ||
			c.Servers[0].Env["T"] != "second" {
			t.Errorf("after its value changed: %v", c.Servers)
		}
		if c := after(func() { point("two.json") }); names(c) != "a=two" {
			t.Errorf("after the link changed: %s", names(c))
		}
		if c := after(func() { point(".codeium/windsurf/mcp_config.json") }); len(c.Servers) != 1 ||
			len(c.Problems) != 1 ||
			!strings.Contains(c.Problems[0].Reason, "too many levels of symbolic links") {
			t.Errorf("after the link went in a circle: %s", names(c))
		}
	})
}

// stuck is a file system whose files can't be opened until it is told so.
type stuck struct {
	fs.FS
	opened chan struct{} // closed when the first one waits
	free   chan struct{}
}

func (s stuck) Open(name string) (fs.File, error) {
	if filepath.Base(name) == "mcp.json" {
		close(s.opened)
		<-s.free
	}
	return s.FS.Open(name)
}

func (s stuck) Stat(name string) (fs.FileInfo, error) { return fs.Stat(s.FS, name) }

// A search that doesn't come to its end is not waited for, and what it finds after all is dropped.
func TestWatchEndsAmidASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		disk := stuck{discovery.Root(), make(chan struct{}), make(chan struct{})}
		w := New(disk, h.env())
		ctx, cancel := context.WithCancel(t.Context())
		h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "one"}}}`)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, func(c discovery.Catalog) { t.Errorf("handed over %s", names(c)) })
		}()
		<-disk.opened
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("Run waits for the search")
		}
		close(disk.free)
		<-ended
	})
}

// While a file changes all the time, what is there is read all the same after a while.
func TestWatchDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		w := New(discovery.Root(), h.env())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		found := make(chan string, 100)
		go w.Run(ctx, func(c discovery.Catalog) { found <- names(c) })
		for range 40 {
			h.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "x`+strings.Repeat("y",
				len(found))+`"}}}`)
			time.Sleep(settle / 2)
		}
		synctest.Wait()
		if len(found) == 0 {
			t.Error("nothing was read in all that time")
		}
		if seen := maps.Clone(w.seen.files); len(seen) > 1000 {
			t.Errorf("%d files are looked at", len(seen))
		}
	})
}

// TestWatchSecrets: a server is found once its secret is set, and found again each time it is set.
func TestWatchSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t)
		h.write(".config/mcp/servers/a.json", `{"command": "a", "args": ["${secret:s}"]}`)
		env := h.env()
		env.SecretFile = func(name string) string { return filepath.Join(h.dir, "secrets", name) }
		w := New(discovery.Root(), env)
		if got := names(w.Catalog()); got != "a!its args[0] asks for the secret s, which is not set" {
			t.Fatalf("at first: %s", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		found := make(chan string)
		go w.Run(ctx, func(c discovery.Catalog) { found <- names(c) })
		for range 2 {
			h.write("secrets/s", "{}")
			if got := <-found; got != "a=a" {
				t.Errorf("found %s", got)
			}
		}
		h.remove("secrets")
		if got := <-found; !strings.HasPrefix(got, "a!") {
			t.Errorf("after its removal: %s", got)
		}
	})
}
