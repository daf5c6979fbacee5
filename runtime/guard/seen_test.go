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
func other(t *testing.T, cmd *exec.Cmd) Seen {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for o := range Processes {
		if o.PID == cmd.Process.Pid {
			return o
		}
	}
	t.Fatal("it isn't there")
	return Seen{}
}

func TestOther(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	o := other(t, cmd)
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
	if err := o.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("a signal: %v", err)
	}
	if _ = cmd.Wait(); o.Alive() {
		t.Error("it is alive after SIGKILL")
	}
	if err := o.Signal(syscall.SIGKILL); !errors.Is(err, errNotThere) && err != nil {
		t.Errorf("a signal to one that has ended: %v", err)
	}
}

// TestNotOurs: a process in a PID namespace of its own, as a container's are, isn't one of ours.
func TestNotOurs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make such a namespace everywhere")
	}
	outer := other(t, exec.Command("unshare", "--pid", "--fork", "--kill-child", "sleep", "600"))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for o := range Processes {
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
