package runtime

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	good := func() Spec {
		return Spec{
			Image: "i", Command: []string{"true"}, User: "65534:65534", MaxAge: time.Minute,
			Limits: Limits{Memory: 1, PIDs: 1, NoFile: 1, Shm: 1},
			Tmpfs:  []Tmpfs{{Path: "/tmp", Size: 1}},
		}
	}
	tests := []struct {
		name   string
		change func(*Spec)
		want   string // in the error; empty for none
	}{
		{"complete", func(*Spec) {}, ""},
		{"no image", func(s *Spec) { s.Image = "" }, "image"},
		{"no command", func(s *Spec) { s.Command = nil }, "command"},
		{"no age", func(s *Spec) { s.MaxAge = 0 }, "age"},
		{"no user", func(s *Spec) { s.User = "" }, "uid:gid"},
		{"user by name", func(s *Spec) { s.User = "nobody:nogroup" }, "numbers"},
		{"user without group", func(s *Spec) { s.User = "65534" }, "uid:gid"},
		{"root", func(s *Spec) { s.User = "0:65534" }, "never"},
		{"root's group", func(s *Spec) { s.User = "65534:0" }, "never"},
		{"root in disguise", func(s *Spec) { s.User = "00:65534" }, "never"},
		{"no memory limit", func(s *Spec) { s.Limits.Memory = 0 }, "memory"},
		{"negative pids limit", func(s *Spec) { s.Limits.PIDs = -1 }, "pids"},
		{"no nofile limit", func(s *Spec) { s.Limits.NoFile = 0 }, "nofile"},
		{"no shm limit", func(s *Spec) { s.Limits.Shm = 0 }, "shm"},
		{"negative cpus", func(s *Spec) { s.Limits.CPUs = -1 }, "cpus"},
		{"tmpfs without size", func(s *Spec) { s.Tmpfs[0].Size = 0 }, "/tmp"},
		{"tmpfs with a relative path", func(s *Spec) { s.Tmpfs[0].Path = "tmp" }, "absolute"},
		{"tmpfs with options smuggled in", func(s *Spec) { s.Tmpfs[0].Path = "/tmp:exec" }, "clean"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := good()
			tt.change(&s)
			err := s.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("Validate() = %v, want nil", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Validate() = %v, want an error with %q", err, tt.want)
			}
		})
	}
}
