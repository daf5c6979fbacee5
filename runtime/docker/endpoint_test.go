package docker

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestForeignSockets: a socket that the user has not named is passed over where others could have
// put it there, and the reason is told; one that the user names, or that comes after it, is used.
func TestForeignSockets(t *testing.T) {
	for _, tt := range []struct {
		name string
		dir  os.FileMode
		want string // in the reason; empty for none
	}{
		{"ours", 0o700, ""},
		{"a shared runtime directory", 0o777 | os.ModeSticky, "XDG_RUNTIME_DIR is ignored"},
		{"one that others can swap", 0o777, "can be written to by everybody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := alone(t)
			dir := filepath.Join(home, "run")
			serve := func(dir string) {
				s := &http.Server{Handler: newFake()}
				go s.Serve(listenUnix(t, dir))
				t.Cleanup(func() { s.Close() })
			}
			serve(dir)
			serve(filepath.Join(home, ".docker", "run"))
			if err := os.Chmod(dir, tt.dir); err != nil {
				t.Fatal(err)
			}
			first, next := "unix://"+filepath.Join(dir, "docker.sock"), "unix://"+filepath.Join(home, ".docker",
				"run", "docker.sock")
			var log bytes.Buffer
			d := New(Config{RuntimeDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			defer d.Close()
			f, err := d.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if f.Endpoint != first {
					t.Errorf("%s was chosen, want %s", f.Endpoint, first)
				}
				return
			}
			if f.Endpoint != next {
				t.Errorf("%s was chosen, want %s", f.Endpoint, next)
			}
			if !slices.ContainsFunc(f.Lacks, func(s string) bool {
				return strings.Contains(s, tt.want) &&
					strings.Contains(s, dir)
			}) {
				t.Errorf("the facts don't say why: %q", f.Lacks)
			}
			if !strings.Contains(log.String(), "socket not used") {
				t.Errorf("the log says %s", &log)
			}
			all := d.sockets(home)
			var un *runtime.UnavailableError
			if _, err := d.try(t.Context(), all[0]); !errors.As(err, &un) ||
				!strings.Contains(un.Error(), tt.want) || !strings.Contains(un.Hint(), "MCP_BRIDGE_RUNTIME="+first) {
				t.Errorf("got %v, want %q and a hint", err, tt.want)
			}
			named := New(Config{Endpoint: first, RuntimeDir: dir})
			defer named.Close()
			if f, err := named.Facts(t.Context()); err != nil || f.Endpoint != first {
				t.Errorf("one that the user names: %v, %v", f.Endpoint, err)
			}
		})
	}
}

// TestMachineByItsSocket: an engine with root's rights isn't one in a virtual machine because of
// where its socket lies, nor by a link there.
func TestMachineByItsSocket(t *testing.T) {
	ours, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skip("this machine's kernel isn't known: ", err)
	}
	for _, tt := range []struct {
		name, kernel string
		link         bool // the socket is a link to one elsewhere
		accepted     bool
	}{
		{"a link elsewhere", "6.6.32-linuxkit", true, false},
		{"this machine's kernel", strings.TrimSpace(string(ours)), false, false},
		{"another kernel", "6.6.32-linuxkit", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := alone(t)
			f := newFake()
			f.info = with(dockerInfo(false, "2"), "KernelVersion", tt.kernel)
			dir := filepath.Join(home, ".colima", "default")
			if tt.link {
				elsewhere := t.TempDir()
				if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink(elsewhere, dir)); err != nil {
					t.Fatal(err)
				}
			}
			s := &http.Server{Handler: f}
			go s.Serve(listenUnix(t, dir))
			t.Cleanup(func() { s.Close() })
			d := New(Config{})
			defer d.Close()
			all := d.sockets(home)
			i := slices.IndexFunc(all, func(e endpoint) bool { return strings.Contains(e.URL, ".colima") })
			if i < 0 {
				t.Fatalf("it isn't among %v", all)
			}
			c, err := d.try(t.Context(), all[i])
			if (err == nil) != tt.accepted {
				t.Errorf("got %v", err)
			}
			if err == nil {
				c.Close()
			}
		})
	}
}
