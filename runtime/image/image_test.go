//go:build unix

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

var bookworm = fstest.MapFS{"etc/os-release": &fstest.MapFile{Data: []byte(
	"ID=debian\nVERSION_CODENAME=bookworm\n")}}

func noApt(context.Context) []byte { return nil }

// standIn is a builder whose mmdebstrap is a shell script; suite and mirror are its $suite and
// $mirror.
func standIn(t *testing.T, root fs.FS, script string) (*builder, *[]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mmdebstrap")
	head := "#!/bin/sh\nfor last; do before=$middle middle=$suite suite=$target target=$mirror mirror=$last;" +
		" done\n"
	if err := os.WriteFile(path, []byte(head+script), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := new([]string)
	return &builder{
		program: path, root: root, apt: noApt, uid: 1000, grace: 200 * time.Millisecond,
		progress: func(line string) { *lines = append(*lines, line) },
	}, lines
}

func TestBuild(t *testing.T) {
	tests := []struct {
		name, script string
		root         fs.FS
		want         string   // written
		progress     []string // lines among those said, in order
		err, next    string
	}{
		{
			name: "made", root: bookworm,
			script: `echo "I: chroot architecture" >&2; echo noise >&2; printf "I: Python 3.13\n" >&2; printf ` +
				`"$suite $target $mirror"`,
			want: "stable - http://deb.debian.org/debian",
			progress: []string{"making an image with Python from Debian stable, http://deb.debian.org/debian",
				"chroot architecture", "Python 3.13", "made a root file system of 0 MB"},
		},
		{
			name: "stable signed by an unknown key, the machine's own release good", root: bookworm,
			script: `[ $suite = bookworm ] || { echo "E: The repository is not signed" >&2; exit 1; }; printf ` +
				`$suite`,
			want:     "bookworm",
			progress: []string{"making an image with Python from Debian bookworm, http://deb.debian.org/debian"},
		},
		{
			name: "nothing of the machine's own network, and what compiled packages need", root: bookworm,
			script: `d=$(mktemp -d) && mkdir "$d/etc" && touch "$d/etc/resolv.conf" "$d/etc/hostname" "$d/etc/passwd"
				for a; do case $a in
				--customize-hook=chroot*) ;;
				--customize-hook=*) sh -c "${a#--customize-hook=}" exec "$d" ;;
				--include=*) printf "%s " "${a##*,}" ;;
				esac; done
				ls "$d/etc"; rm -r "$d"`,
			want: "libstdc++6 passwd\n",
		},
		{
			name: "no network", root: bookworm,
			script: `echo "Err:1 http://deb.debian.org/debian stable InRelease" >&2; echo "E: apt-get update ` +
				`failed" >&2; exit 25`,
			err:  "apt-get update failed",
			next: "check that http://deb.debian.org/debian can be reached",
		},
		{
			name: "no ids", root: bookworm,
			script: `echo "E: newuidmap must be installed" >&2; exit 1`,
			err:    "newuidmap must be installed", next: "scripts/setup",
		},
		{
			name: "a complaint without a mark", root: bookworm,
			script: `echo "something odd" >&2; exit 3`,
			err:    "something odd", next: "podman save",
		},
		{
			name: "silence", root: bookworm,
			script: `exit 3`,
			err:    "exit status 3", next: "podman save",
		},
		{
			name: "half a tar is not followed by another", root: bookworm,
			script: `printf "half of $suite"; echo "E: tar failed" >&2; exit 1`,
			want:   "half of stable", err: "tar failed",
		},
		{
			name: "one long complaint", root: bookworm,
			script: `printf "E: " >&2; head -c 100000 /dev/zero | tr "\0" x >&2; exit 1`,
			err:    "xxx…",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, lines := standIn(t, tt.root, tt.script)
			var out bytes.Buffer
			err := b.build(t.Context(), &out)
			if out.String() != tt.want {
				t.Errorf("wrote %q, want %q", out.String(), tt.want)
			}
			rest := *lines
			for _, want := range tt.progress {
				i := slices.Index(rest, want)
				if i < 0 {
					t.Fatalf("progress %q lacks %q, or has it too early", *lines, want)
				}
				rest = rest[i+1:]
			}
			if tt.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Error(), tt.err) || !strings.Contains(e.Hint(), tt.next) ||
				e.Hint() == "" || len(e.Error()) > 1200 {
				t.Errorf("got error %v with next step %q, want %q and %q", err, e.Hint(), tt.err, tt.next)
			}
		})
	}
}

func TestBuildAsksForTheRightMode(t *testing.T) {
	for uid, want := range map[int]string{0: "--mode=auto", 1000: "--mode=unshare"} {
		b, _ := standIn(t, bookworm, `printf "%s %s" "$1" "$2"; pwd; env`)
		b.uid = uid
		t.Setenv("MCP_BRIDGE_SECRET", "hidden")
		var out bytes.Buffer
		if err := b.build(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want+" --variant=essential/\n") {
			t.Errorf("as %d it began %q, want %q", uid, strings.SplitN(out.String(), "\n", 2)[0], want)
		}
		if strings.Contains(out.String(), "hidden") {
			t.Error("the caller's environment was passed on")
		}
	}
}

func TestBuildWithoutMmdebstrap(t *testing.T) {
	for _, tt := range []struct {
		name string
		root fs.FS
		want string
	}{
		{"Debian", bookworm, "sudo apt-get install mmdebstrap"},
		{"Fedora", fstest.MapFS{"etc/os-release": &fstest.MapFile{Data: []byte("ID=fedora\n")}},
			"MCP_BRIDGE_IMAGE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := builder{apt: noApt, program: "mmdebstrap-that-is-not-there", root: tt.root, progress: func(string) {}}
			var e *Error
			if err := b.build(t.Context(), io.Discard); !errors.As(err, &e) || !strings.Contains(e.Next, tt.want) {
				t.Errorf("got %v, %+v; want the next step to name %q", err, e, tt.want)
			}
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestBuildToAFullDisk(t *testing.T) {
	b, _ := standIn(t, bookworm, `head -c 10000000 /dev/zero`)
	if err := b.build(t.Context(), fullDisk{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
}

// A named pipe that the whole group holds open for writing ends when the last of them is gone.
func TestBuildCancelledLeavesNothing(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"polite", `sleep 1000 & echo "I: ready" >&2; wait`},
		{"with a stubborn child", `trap "exit 1" TERM; (trap "" TERM; echo "I: ready" >&2; while :; do sleep ` +
			`1000; done) & wait`},
		{"stubborn itself", `trap "" TERM; sleep 1000 & echo "I: ready" >&2; while :; do wait; done`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "alive")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			b, _ := standIn(t, bookworm, `exec 3>`+fifo+"\n"+tt.script)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.progress = func(line string) {
				if line == "ready" {
					cancel()
				}
			}
			gone := make(chan error, 1)
			go func() {
				_, err := os.ReadFile(fifo) // opens when the script does, ends with the last of its group
				gone <- err
			}()
			if err := b.build(ctx, io.Discard); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
			select {
			case err := <-gone:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("something of the group is still there")
			}
		})
	}
}

// TestBuildForReal downloads a distribution. MCP_BRIDGE_TEST_RUNTIME asks for tests of that kind.
func TestBuildForReal(t *testing.T) {
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") == "" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not set")
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(Build(t.Context(), w, Options{Progress: func(line string) { t.Log(line) }})) }()
	defer r.Close()
	found := map[string]bool{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Clean("/" + h.Name)
		found[name] = true
		if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
			t.Errorf("%s is a device", name)
		}
		if name == "/etc/passwd" {
			if b, _ := io.ReadAll(tr); !strings.Contains(string(b), ":65534:65534:") {
				t.Errorf("/etc/passwd has no user 65534:\n%s", b)
			}
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/usr/bin/python3", "/usr/bin/python", "/etc/passwd",
		"/usr/share/zoneinfo/Europe/Vienna"} {
		if !found[name] {
			t.Errorf("the image has no %s", name)
		}
	}
}
