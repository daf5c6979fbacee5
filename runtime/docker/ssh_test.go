package docker

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// groups counts the process groups that the guard was told of.
type groups struct {
	mu         sync.Mutex
	told, left int
}

func (g *groups) Group(int) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told++
	g.left++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.left--
	})
}

// standIn puts a program named ssh on the PATH that writes down its arguments and then runs script.
func standIn(t *testing.T, script string) (arguments string) {
	t.Helper()
	dir := t.TempDir()
	arguments = filepath.Join(dir, "arguments")
	text := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$*\" >>'%s'\n%s\n", arguments, script)
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return arguments
}

// TestSSH: a run through docker's relay, in processes of which none is left.
func TestSSH(t *testing.T) {
	alone(t)
	f := newFake()
	f.instant = true
	socket := strings.TrimPrefix(f.listen(t), "unix://")
	arguments := standIn(t, fmt.Sprintf("%s='%s' exec '%s'", relayVar, socket, os.Args[0]))
	g := new(groups)
	d := New(Config{Endpoint: "ssh://me@there:2222/run/it's/docker.sock", Guard: g})
	exit, out, err := play(t, t.Context(), d)
	if err != nil || exit.Code != 7 || out != "out" {
		t.Errorf("got %+v, %q, %v", exit, out, err)
	}
	facts, err := d.Facts(t.Context())
	if err != nil || !facts.Remote {
		t.Errorf("facts are %+v, %v", facts, err)
	}
	d.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told == 0 || g.left > 0 {
		t.Errorf("%d process groups were started and %d are left", g.told, g.left)
	}
	b, err := os.ReadFile(arguments)
	if err != nil {
		t.Fatal(err)
	}
	const want = `-T -o BatchMode=yes -o ForwardAgent=no -o ForwardX11=no -o PermitLocalCommand=no -o ` +
		`ControlMaster=no` +
		` -o ControlPath=none -o ConnectTimeout=30 -o ClearAllForwardings=yes -l me -p 2222 -- there docker ` +
		`--host='unix:///run/it'\''s/docker.sock' system dial-stdio`
	for line := range strings.Lines(string(b)) {
		if strings.TrimSpace(line) != want {
			t.Errorf("ssh got %s, want %s", line, want)
		}
	}
}

// TestSSHFails: what ssh says is in the error, with what to try.
func TestSSHFails(t *testing.T) {
	alone(t)
	tests := []struct{ name, script, want string }{
		{"refused", "echo 'Host key verification failed.' >&2; exit 255", "Host key verification failed."},
		{"no docker there", "echo 'sh: docker: not found' >&2; exit 127", "docker: not found"},
		{"silent", "exit 1", "ssh ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			standIn(t, tt.script)
			d := New(Config{Endpoint: "ssh://there"})
			defer d.Close()
			_, err := d.Facts(t.Context())
			var un *runtime.UnavailableError
			if !errors.As(err, &un) || !strings.Contains(un.Error(), tt.want) || !strings.Contains(un.Hint(), "ssh") {
				t.Errorf("got %v, want an *UnavailableError with %q and a hint", err, tt.want)
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		d := New(Config{Endpoint: "ssh://there"})
		defer d.Close()
		var un *runtime.UnavailableError
		if _, err := d.Facts(t.Context()); !errors.As(err, &un) {
			t.Errorf("got %v", err)
		}
	})
}

// TestSSHGivesNothing: whatever the user's settings hand to every host, ssh reads our options as an
// end of it.
func TestSSHGivesNothing(t *testing.T) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("there is no ssh here, and what is tested is how it reads its own settings")
	}
	settings := filepath.Join(t.TempDir(), "config")
	write(t, settings, "Host *\n ForwardAgent yes\n ForwardX11 yes\n PermitLocalCommand yes\n LocalCommand"+
		" touch /x\n ControlMaster auto\n"+
		" LocalForward 9999 localhost:1\n RemoteForward 9998 localhost:1\n DynamicForward 9997\n")
	u, err := url.Parse("ssh://me@there")
	if err != nil {
		t.Fatal(err)
	}
	args, err := sshArgs(u)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(args ...string) []string {
		out, err := exec.CommandContext(t.Context(), ssh,
			append([]string{"-G", "-F", settings}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	theirs, ours := reads("there"), reads(args...)
	for option, want := range map[string]string{"forwardagent": "no", "forwardx11": "no",
		"permitlocalcommand": "no", "controlmaster": "false", "clearallforwardings": "yes"} {
		line := option + " " + want
		if slices.Contains(theirs, line) {
			t.Errorf("the settings say %q by themselves, so that this test can't fail", line)
		}
		if !slices.Contains(ours, line) {
			t.Errorf("ssh doesn't read %q", line)
		}
	}
}

func TestSSHArgs(t *testing.T) {
	for endpoint, want := range map[string]string{
		"ssh://host":           "host docker system dial-stdio",
		"ssh://host/":          "host docker system dial-stdio",
		"ssh://[fe80::1]:22":   "fe80::1 docker system dial-stdio",
		"ssh://me:secret@host": "",
		"ssh:///socket":        "",
		"ssh://host?x=y":       "",
	} {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		args, err := sshArgs(u)
		got := ""
		if i := slices.Index(args, "--"); i > 0 {
			got = strings.Join(args[i+1:], " ")
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", endpoint, got, err, want)
		}
	}
}
