package runtime

import (
	"os"
	"os/exec"
	"strings"
	"testing"
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
		{"another living bridge", other(func(o *Owner) { o.PID = os.Getppid(); o.Started = startMark(o.PID) }), false},
		{"a process that is gone", other(func(o *Owner) { o.PID = dead.Process.Pid; o.Started = "1" }), true},
		{"a reused pid", other(func(o *Owner) { o.Started = "1" }), true},
		{"another boot or machine", other(func(o *Owner) { o.PID = dead.Process.Pid; o.BootID = "elsewhere" }), false},
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
				t.Fatalf("OwnerOf(%v) is none", tt.owner.Labels())
			}
			if got := read.Orphaned(self); got != tt.want {
				t.Errorf("Orphaned = %v, want %v", got, tt.want)
			}
			nowhere := self
			nowhere.BootID = ""
			if read.Orphaned(nowhere) {
				t.Error("one that doesn't know where it is calls it dead")
			}
		})
	}
}

func TestOwnerOfForeign(t *testing.T) {
	if o, ok := OwnerOf(map[string]string{"app": "web"}); ok {
		t.Errorf("a foreign container has the owner %v", o)
	}
}
