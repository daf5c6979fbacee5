package runtime

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

// Spec is what may vary from one container to the next. It has no field for network, privileges,
// capabilities, mounts of the host or a writable root: what can't be said can't be asked for. Every
// driver adds the rest of the lock-down by itself.
type Spec struct {
	Image string
	// replaces the image's entry point and command; Command[0] is looked up in the container's PATH
	Command []string
	Env     []string // "K=V"; the whole environment: nothing of the image's or of the host's is added but PATH
	User    string   // "uid:gid", numbers, neither 0
	Limits  Limits
	Tmpfs   []Tmpfs
	Owner   Owner

	// Answers says that the program reads a line before it writes anything, and answers an empty line
	// with an empty line. An engine whose containers start before there is a stream holds any other
	// program back until then. This one has started meanwhile, and such a line shows that it is there.
	Answers bool

	// MaxAge is the container's longest life as enforced by the engine itself, whatever becomes of the
	// client, where the engine can do so. It is rounded up to whole seconds.
	MaxAge time.Duration
}

// Limits bound what one container may use. None may be zero except CPUs: there is no other way to
// say "unlimited".
type Limits struct {
	Memory int64   // bytes, swap counted in
	PIDs   int64   // processes and threads
	CPUs   float64 // cores; 0 means all there are
	NoFile int64   // descriptors of one process
	Shm    int64   // bytes of /dev/shm
}

// Tmpfs is one directory that all may write to, always mounted nosuid, nodev and noexec.
type Tmpfs struct {
	Path string // absolute and clean
	Size int64  // bytes
}

// Validate returns what is wrong with a Spec, if anything. Drivers call it first.
func (s Spec) Validate() error {
	switch {
	case s.Image == "":
		return errors.New("spec: no image")
	case len(s.Command) == 0:
		return errors.New("spec: no command")
	case s.MaxAge <= 0:
		return errors.New("spec: no maximum age")
	}
	if err := ValidUser(s.User); err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	for _, l := range []struct {
		name string
		v    int64
	}{{"memory", s.Limits.Memory}, {"pids", s.Limits.PIDs}, {"nofile", s.Limits.NoFile}, {"shm", s.Limits.Shm}} {
		if l.v <= 0 {
			return fmt.Errorf("spec: the %s limit is %d; it must be positive", l.name, l.v)
		}
	}
	if s.Limits.CPUs < 0 {
		return fmt.Errorf("spec: the cpus limit is %v; it must not be negative", s.Limits.CPUs)
	}
	for _, t := range s.Tmpfs {
		if !path.IsAbs(t.Path) || path.Clean(t.Path) != t.Path || strings.ContainsAny(t.Path, ":,") || t.Size <= 0 {
			return fmt.Errorf("spec: tmpfs %q of %d bytes: the path must be absolute and clean and the size"+
				" positive", t.Path, t.Size)
		}
	}
	return nil
}

// ValidUser accepts "uid:gid" with two positive numbers. User 0 is refused: inside a container it
// is still the one user that kernel bugs are written for.
func ValidUser(u string) error {
	uid, gid, ok := strings.Cut(u, ":")
	if !ok {
		return fmt.Errorf("user %q is not of the form uid:gid", u)
	}
	for _, s := range []string{uid, gid} {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return fmt.Errorf("user %q is not of the form uid:gid with two numbers", u)
		}
		if n == 0 {
			return fmt.Errorf("user %q: code never runs as uid or gid 0", u)
		}
	}
	return nil
}
