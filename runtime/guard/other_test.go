//go:build linux

package guard

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// other starts a program and finds it among the others.
func other(t *testing.T, cmd *exec.Cmd) Other {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for o := range Others {
		if o.PID == cmd.Process.Pid {
			return o
		}
	}
	t.Fatal("it isn't there")
	return Other{}
}

func TestOther(t *testing.T) {
	o := other(t, exec.Command("sleep", "600"))
	if got := o.Args(); !slices.Equal(got, []string{"sleep", "600"}) {
		t.Errorf("its arguments are %q", got)
	}
	if o.Parent != os.Getpid() || !o.Ours() || !o.Alive() {
		t.Errorf("parent %d, ours %v, alive %v", o.Parent, o.Ours(), o.Alive())
	}
	later := o
	later.start++ // as if the number had been given to another process
	if err := later.Signal(syscall.SIGKILL); !errors.Is(err, errNotThere) || !o.Alive() {
		t.Errorf("another process of that number: %v, alive %v", err, o.Alive())
	}
	if err := later.End(0); err != nil {
		t.Errorf("it is gone, and its end: %v", err)
	}
	if err := o.End(time.Minute); err != nil || o.Alive() {
		t.Errorf("got %v, alive %v", err, o.Alive())
	}
	if err := o.Signal(syscall.SIGKILL); !errors.Is(err, errNotThere) && err != nil {
		t.Errorf("a signal to one that has ended: %v", err)
	}
}

// TestOtherThatIgnores: what doesn't end when it is asked is killed.
func TestOtherThatIgnores(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do read -r _; done")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o := other(t, cmd)
	if _, err := stdout.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := o.End(10 * time.Millisecond); err != nil || o.Alive() {
		t.Errorf("got %v, alive %v", err, o.Alive())
	}
}

// TestNotOurs: a process in a PID namespace of its own, as a container's are, is none of ours.
func TestNotOurs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make such a namespace everywhere")
	}
	outer := other(t, exec.Command("unshare", "--pid", "--fork", "--kill-child", "sleep", "600"))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for o := range Others {
			if o.Parent == outer.PID && slices.Equal(o.Args(), []string{"sleep", "600"}) {
				if o.Ours() {
					t.Error("it is ours")
				}
				return
			}
		}
	}
	t.Fatal("it didn't come up")
}
