package engine

import (
	"context"
	"io"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A Client is one reached engine, as its driver speaks to it. Its methods may be called
// concurrently. Except where a comment says otherwise, each is one request, and returns when its
// context ends.
type Client interface {
	// Facts returns what the engine said of itself when it was reached.
	Facts() runtime.Facts

	// Home identifies the engine. A container that is owed to one engine is never looked for in
	// another, which would not know it and say that it is gone.
	Home() string

	// There reports whether the engine's socket still takes connections. It asks the engine nothing
	// and takes microseconds. Where there is no socket on this machine it returns true.
	There() bool

	// Ping returns nil once the engine has answered anything.
	Ping(ctx context.Context) error

	// Close ends the connection and the programs that carry it.
	Close()

	// Create makes a container of that name, and returns its id. An image that is missing is an
	// *runtime.ImageError.
	Create(ctx context.Context, name string, s runtime.Spec) (id string, err error)

	// Attach connects to the streams of a container that was created and not started.
	Attach(ctx context.Context, id string) (Stream, error)

	// Wait blocks until the container has ended, and returns its exit code. It calls begun once the
	// container may be started without its end being missed.
	Wait(ctx context.Context, id string, begun func()) (code int, err error)

	Start(ctx context.Context, id string) error
	Kill(ctx context.Context, id string) error

	// Inspect returns how the container ended, if it has and the engine still knows.
	Inspect(ctx context.Context, id string) (runtime.Exit, State, error)

	// OutOfMemory reports whether a container that is gone was killed because it was out of memory,
	// as far as the engine remembers.
	OutOfMemory(ctx context.Context, id string) bool

	// Remove asks the engine once to end and remove a container. One that is gone is no error.
	// Where nothing listens any more, the error is ErrUnreachable, or that of dialling.
	Remove(ctx context.Context, id string) error

	// List returns all containers that have an owner's label, running or not, and perhaps others whose
	// labels the engine has lost.
	List(ctx context.Context) ([]Container, error)

	// Images returns the engine's images. It asks the engine nothing.
	Images() Images
}

// Images are those of one reached engine, and the making of others. Its methods are as a Client's.
type Images interface {
	Find(ctx context.Context, ref string) (i runtime.Image, ok bool, err error)

	// Pull asks a registry for the image of that full name.
	Pull(ctx context.Context, name, registry string, p runtime.Progress) error

	Import(ctx context.Context, ref string, tar io.Reader) error

	// List returns those that have the label.
	List(ctx context.Context, label string) ([]runtime.ListedImage, error)

	// Remove removes an image, but no container that uses it. One that is gone is no error.
	Remove(ctx context.Context, id string) error

	Save(ctx context.Context, ref string, w io.Writer) error

	// CreateBare makes a container of that name for a layer, with the layer's and its owner's labels.
	// It is never started, and its files can be changed. A base that is missing is an
	// *runtime.ImageError.
	CreateBare(ctx context.Context, name string, l runtime.Layer) (container string, err error)

	// Extract copies files into a container that was never started, by their paths below /.
	Extract(ctx context.Context, container string, tar io.Reader) error

	// Commit makes an image of a container, with the layer's name and labels, and those of NoOwner.
	Commit(ctx context.Context, container string, l runtime.Layer) (image string, err error)
}

// Container is one of those that an engine lists.
type Container struct {
	ID      string
	Names   []string
	Labels  map[string]string
	Created time.Time
	Running bool
	// the engine knows that its owner is dead, where that can't be told from the labels
	Forsaken bool
	// the engine has lost its labels, so that only its name tells the owner
	Unlabelled bool
}

// State is what an inspection found.
type State int

// A container that is Unknown runs, or is on its way to its end.
const (
	Unknown State = iota
	Ended
	Removed
)
