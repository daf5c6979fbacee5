// Package runtime holds the words that every container engine shares: what a locked-down container is asked for
// (Spec), what an engine says of itself (Facts), how a container ended (Exit), and what it means that no engine is there
// (UnavailableError). It knows no engine, no guest program and no MCP; it imports nothing of this module.
//
// The conformance suite in runtime/runtimetest is the definition of a correct Driver.
package runtime

import (
	"context"
	"fmt"
	"io"
)

// A Driver runs containers on one engine. All methods may be called concurrently.
type Driver interface {
	// Name is the engine's name as the user types it: "podman", "docker".
	Name() string

	// Facts asks the engine what it is and which limits it enforces. An engine that can't be reached, or that can't run
	// containers as needed, is an *UnavailableError. The answer may be cached while the engine stays reachable.
	Facts(ctx context.Context) (Facts, error)

	// EnsureImage makes the image ref present on the engine, pulling it if it is missing. Progress lines go to p, which may
	// be nil. An image that can be had nowhere is an *ImageError.
	EnsureImage(ctx context.Context, ref string, p Progress) error

	// Run creates, attaches, starts, waits and removes one container. It returns only once the container is gone, on every
	// path; when ctx ends it kills the container, by id, and still waits for its removal, for at most a bound of its own.
	// A container that ran and ended in whatever way, killed by ctx included, is an Exit and a nil error; an error means that
	// the container did not start or that the engine went away while it ran.
	Run(ctx context.Context, s Spec, std Stdio) (Exit, error)

	// Reap removes the labelled containers whose owner is dead, on this machine and boot as seen by owner, and says how many
	// those were. It never touches containers of a living owner.
	Reap(ctx context.Context, owner Owner) (int, error)
}

// Progress takes one line of what an engine says while it works on something slow, such as a pull.
type Progress func(line string)

// Stdio is what a container's process is connected to. All three are required.
//
// Run copies from Stdin until it ends or the container does, and doesn't return before it has stopped writing to Stdout
// and Stderr. A Stdin that blocks in Read is the caller's to end; Run doesn't wait for it.
type Stdio struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Exit is how a container's first process ended.
type Exit struct {
	Code      int  // exit status; 128+n after signal n; -1 when the engine had forgotten it before it could be asked
	OOMKilled bool // the engine saw the kernel kill a process of the container for want of memory
}

// Facts is what an engine says of itself.
type Facts struct {
	Engine        string // "podman"
	Version       string // the server's
	APIVersion    string
	Endpoint      string // as the user would write it in CONTAINER_HOST; never with credentials
	OCIRuntime    string // "runc", "crun"
	Rootless      bool
	Remote        bool // the engine is on another machine or in a VM
	CgroupVersion int  // 1 or 2
	Enforces      Enforced
}

// Enforced says which of Limits the engine enforces by cgroup. What it doesn't, the guest limits by itself, with setrlimit
// and by watching: see sandbox.
type Enforced struct {
	Memory bool
	PIDs   bool
	CPUs   bool
}

// UnavailableError says that an engine can't be used on this machine as it is now. It is news for a person: Hint is what
// to type next.
type UnavailableError struct {
	Engine   string // "podman"; empty when no engine was found at all
	Endpoint string // what was tried; may be empty
	Err      error  // why
	Next     string // the next step, as a command or a sentence; empty for none known
}

func (e *UnavailableError) Error() string {
	engine := e.Engine
	if engine == "" {
		engine = "no container engine"
	}
	if e.Endpoint != "" {
		return fmt.Sprintf("%s at %s is not available: %v", engine, e.Endpoint, e.Err)
	}
	return fmt.Sprintf("%s is not available: %v", engine, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *UnavailableError) Hint() string { return e.Next }

// ImageError says that an image can't be had.
type ImageError struct {
	Ref  string
	Err  error
	Next string
}

func (e *ImageError) Error() string { return fmt.Sprintf("image %s can't be had: %v", e.Ref, e.Err) }

func (e *ImageError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *ImageError) Hint() string { return e.Next }
