package runtime

import (
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
)

func TestOrphaned(t *testing.T) {
	self := Self()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	other := func(change func(*Owner)) Owner {
		o := Self()
		change(&o)
		return o
	}
	tests := []struct {
		name  string
		owner Owner
		want  bool
	}{
		{"oneself", self, false},
		{"another living bridge", other(func(o *Owner) { o.PID = os.Getppid(); o.Started = startMark(o.PID) }),
			false},
		{"a process that is gone", other(func(o *Owner) { o.PID = dead.Process.Pid; o.Started = "1" }), true},
		{"a reused pid", other(func(o *Owner) { o.Started = "1" }), true},
		{"another boot or machine", other(func(o *Owner) { o.PID = dead.Process.Pid; o.BootID = "elsewhere" }),
			false},
		{"another PID namespace", other(func(o *Owner) {
			o.PID = dead.Process.Pid
			o.BootID = o.BootID[:strings.LastIndexByte(o.BootID, '-')] + "-1"
		}), false},
		{"somewhere unknown", other(func(o *Owner) { o.PID = dead.Process.Pid; o.BootID = "" }), false},
		{"no pid", other(func(o *Owner) { o.PID = 0 }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			read, ok := OwnerOf(tt.owner.Labels())
			if !ok && tt.owner.PID > 0 {
				t.Fatalf("OwnerOf(%v) found no owner", tt.owner.Labels())
			}
			if got := read.Orphaned(self); got != tt.want {
				t.Errorf("Orphaned = %v, want %v", got, tt.want)
			}
			name := tt.owner.NewName()
			named, ok := OwnerNamed(name, self)
			if got := named.Orphaned(self); !ok || got != tt.want {
				t.Errorf("by the name %q, Orphaned = %v, %v, want %v", name, got, ok, tt.want)
			}
			nowhere := self
			nowhere.BootID = ""
			if read.Orphaned(nowhere) {
				t.Error("one that doesn't know where it is calls it dead")
			}
			if named, _ := OwnerNamed(name, nowhere); named.Orphaned(nowhere) {
				t.Error("one that doesn't know where it is calls it dead by its name")
			}
		})
	}
}

func TestOwnerOfForeign(t *testing.T) {
	if o, ok := OwnerOf(map[string]string{"app": "web"}); ok {
		t.Errorf("a foreign container has the owner %v", o)
	}
}

// TestZombie: an owner that has ended is dead, though its parent never asks how.
func TestZombie(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait() //nolint:errcheck // it was killed
	o := Self()
	o.PID, o.Started = child.Process.Pid, startMark(child.Process.Pid)
	if o.Orphaned(Self()) {
		t.Error("a living process is dead")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !o.Orphaned(Self()); {
		if time.Now().After(deadline) {
			t.Fatal("it was killed and is alive after a minute")
		}
	}
}

func TestOwnerNamedForeign(t *testing.T) {
	for _, name := range []string{"", "web", "mcp-bridge", "mcp-bridge-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"mcp-bridge-x-1-a-b", "mcp-bridge--1-1-a-b", "mcp-bridge-1-2-3-4-5", "my-mcp-bridge-1-2-3-4"} {
		if o, ok := OwnerNamed(name, Self()); ok {
			t.Errorf("%q has the owner %v", name, o)
		}
	}
}

// TestNewName: names differ, and are short enough for a socket below them.
func TestNewName(t *testing.T) {
	o := Owner{PID: 4194304, Started: "1234567890", BootID: "anywhere"}
	a, b := o.NewName(), o.NewName()
	if a == b || len(a) > 60 {
		t.Errorf("got %q and %q", a, b)
	}
}
