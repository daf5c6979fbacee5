// Package runtime holds the words that every container engine shares: what a locked-down container
// is asked for (Spec), what an engine says of itself (Facts), how a container ended (Exit), and
// what it means that no engine is there (UnavailableError). It knows no engine, no guest program
// and no MCP; it imports nothing of this module.
//
// The conformance suite in runtime/runtimetest is the definition of a correct Driver.
package runtime

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A Driver runs containers on one engine. All methods may be called concurrently.
type Driver interface {
	// Name is the engine's name as the user types it: "podman", "docker".
	Name() string

	// Facts asks the engine what it is and which limits it enforces. An engine that can't be reached,
	// or that can't run containers as needed, is an *UnavailableError. The answer may be cached while
	// the engine stays reachable.
	Facts(ctx context.Context) (Facts, error)

	// FindImage is the image that the engine has under ref, a name or an id; ok is false when it has
	// none. A short name means a local image of that name, or Docker Hub's.
	FindImage(ctx context.Context, ref string) (i Image, ok bool, err error)

	// PullImage asks the image's registry for ref, newer than the engine's own if there is one.
	// Progress lines go to p, which may be nil. An image that can't be had is an *ImageError.
	PullImage(ctx context.Context, ref string, p Progress) (Image, error)

	// Run creates, attaches, starts, waits and removes one container. It returns only once the
	// container is gone, on every path; when ctx ends it kills the container, by id, and still waits
	// for its removal, for at most a bound of its own. A container that ran and ended in whatever way,
	// killed by ctx included, is an Exit and a nil error; an error means that the container did not
	// start or that the engine went away while it ran.
	Run(ctx context.Context, s Spec, std Stdio) (Exit, error)

	// AddLayer makes an image of a base and of files that are put onto it. It creates a container,
	// copies the files into it without starting it, and commits it under the layer's name and labels.
	// As that is the last step, an image with that name or those labels is whole. The container is
	// gone when AddLayer returns, or later if the engine takes minutes to remove it; one that a dead
	// bridge left is an Orphan. AddLayer reads the tar to its end, and its caller closes it. When ctx
	// ends, AddLayer returns, and the image may exist or not. If the engine lacks the base, the error
	// is an *ImageError.
	AddLayer(ctx context.Context, l Layer) (Image, error)

	// ListImages are the images that have the label, whatever its value.
	ListImages(ctx context.Context, label string) ([]ListedImage, error)

	// RemoveImage removes an image by id, with its names. It fails if a container uses the image, and
	// succeeds if there is no such image.
	RemoveImage(ctx context.Context, id string) error

	// SaveImage writes an image as an archive that other engines load: an OCI layout if the engine can
	// write one. Where ref is a name and no id, the loaded image has that name.
	SaveImage(ctx context.Context, ref string, w io.Writer) error

	// Orphans are the containers, running or not, whose owner is dead, on this machine and boot as
	// seen by owner. Labels tell the owner, or the name where an engine has lost those. A container of
	// a living owner is never one, nor one whose owner can't be told.
	Orphans(ctx context.Context, owner Owner) ([]Orphan, error)

	// Remove ends and removes containers by id, of those that Orphans named. One that is gone already
	// is no error.
	Remove(ctx context.Context, ids ...string) error

	// Close ends what the driver itself has started. No other method may be called after it.
	Close() error
}

// Orphan is a container whose owner is dead.
type Orphan struct {
	ID      string
	Name    string
	Owner   Owner
	Created time.Time
	Running bool
}

// Reap removes the containers of dead owners and says which those were.
func Reap(ctx context.Context, d Driver, owner Owner) ([]Orphan, error) {
	found, err := d.Orphans(ctx, owner)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	ids := make([]string, len(found))
	for i, o := range found {
		ids[i] = o.ID
	}
	return found, d.Remove(ctx, ids...)
}

// A Starter is a Driver whose engine may be at rest, as a virtual machine is. Start starts it,
// which may take minutes, and does nothing when it runs. It is tried when Facts has returned an
// *UnavailableError that is Dormant.
type Starter interface {
	Start(ctx context.Context, p Progress) error
}

// Hardening is what a driver adds to the lock-down of every container where its engine can. What
// the engine can't do is left out, and named in Facts.Lacks.
type Hardening struct {
	Seccomp *SeccompProfile // nil: the engine's default profile
	// "runc", "crun", "runsc", "krun"; empty: the engine's default. One that the engine doesn't have
	// is an *UnavailableError
	OCIRuntime string
}

// SeccompProfile is a filter of system calls in the JSON that Docker and podman share.
type SeccompProfile struct {
	Name string // as the user chose it: "strict", or a path
	JSON []byte // empty for a file that a cluster's nodes have
}

// Progress takes one line of what an engine says while it works on something slow, such as a pull.
type Progress func(line string)

// Stdio is what a container's process is connected to. The three streams are required.
//
// Run copies from Stdin until it ends or the container does, and doesn't return before it has
// stopped writing to Stdout and Stderr. A Stdin that blocks in Read is the caller's to end; Run
// doesn't wait for it.
type Stdio struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Ended, which may be nil, is called once nothing more comes on Stdout and Stderr: the container
	// has ended, or the engine went away. Run calls it before it asks for more, and removes the
	// container, which takes the engine its time; it doesn't call it where there were no streams. It
	// must not block.
	Ended func()

	// ExitUnneeded, which may be nil, is asked after that. Where it returns true, how the container
	// ended no longer matters: Run spares the engine the question, removes the container,
	// running or not, and gives an Exit whose Code is -1. It must not block.
	ExitUnneeded func() bool
}

// End calls Ended, if there is one. It is for drivers.
func (s Stdio) End() {
	if s.Ended != nil {
		s.Ended()
	}
}

// NeedsExit reports whether Run has to find out how the container ended. It is for drivers.
func (s Stdio) NeedsExit() bool { return s.ExitUnneeded == nil || !s.ExitUnneeded() }

// Exit is how a container's first process ended.
type Exit struct {
	// exit status; 128+n after signal n; -1 when the engine had forgotten it before it could be asked,
	// or wasn't asked
	Code      int
	OOMKilled bool // the engine saw the kernel kill a process of the container that was out of memory
}

// Facts is what an engine says of itself.
type Facts struct {
	Engine        string // "podman"
	Version       string // the server's
	APIVersion    string
	Endpoint      string // as the user would write it in CONTAINER_HOST; never with credentials
	OCIRuntime    string // "runc", "crun"
	Rootless      bool
	Remote        bool   // the engine is on another machine or in a VM
	CgroupVersion int    // 1 or 2
	Arch          string // of the engine's machine, GOARCH's names; empty when it doesn't say
	Enforces      Enforced

	// the filter that the engine sets: "strict", a path, "engine" for its default; empty for none
	Seccomp string
	LSM     []string // "apparmor", "selinux": those that the engine applies to containers
	Cluster bool     // containers run on the machines of a cluster, which keeps the users apart
	Desktop bool     // the engine runs in a VM of its own, which is the wall, rootful inside or not
	// each container has a user namespace of its own, so that RLIMIT_NPROC counts its processes alone
	OwnUsers bool
	// each container has a kernel of its own, so that the engine's control groups don't see its
	// processes
	OwnKernel  bool
	OwnDevices []string // files in each container's /dev that are of its own kernel, and not the machine's
	Lacks      []string // what was asked for and can't be had here, one plain sentence each
}

// Enforced says which of Limits the engine enforces by cgroup. What it doesn't, the guest limits by
// itself, with setrlimit and by watching: see sandbox.
type Enforced struct {
	Memory bool
	PIDs   bool
	CPUs   bool
}

// UnavailableError says that an engine can't be used on this machine as it is now. It is news for a
// person: Hint is what to type next.
type UnavailableError struct {
	Engine   string // "podman"; empty when no engine was found at all
	Endpoint string // what was tried; may be empty
	Err      error  // why
	Next     string // the next step, as a command or a sentence; empty for none known
	Dormant  bool   // the engine is there, and at rest; see Starter
	Gone     bool   // the engine was there, and ended meanwhile: another try may start it, or find another one
}

func (e *UnavailableError) Error() string {
	switch {
	case e.Engine == "":
		return fmt.Sprintf("no container engine can be used: %v", e.Err)
	case e.Endpoint != "":
		return fmt.Sprintf("%s at %s is not available: %v", e.Engine, e.Endpoint, e.Err)
	}
	return fmt.Sprintf("%s is not available: %v", e.Engine, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *UnavailableError) Hint() string { return e.Next }
