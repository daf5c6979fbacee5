package engine

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// images are those of a fake: one of each name.
type images struct {
	Images
	f *fake
}

func (f *fake) Images() Images { return images{f: f} }

func (i images) CreateBare(ctx context.Context, name string, _ runtime.Layer) (string, error) {
	return i.f.Create(ctx, name, runtime.Spec{})
}

func (i images) Extract(ctx context.Context, _ string, tar io.Reader) error {
	if _, err := io.Copy(io.Discard, tar); err != nil {
		return err
	}
	return i.f.ask(ctx, "extract")
}

func (i images) Commit(ctx context.Context, _ string, _ runtime.Layer) (string, error) {
	return "sha256:made", i.f.ask(ctx, "commit")
}

func (i images) Find(ctx context.Context, ref string) (runtime.Image, bool, error) {
	return runtime.Image{Ref: ref, ID: ref}, true, i.f.ask(ctx, "find")
}

// Import closes what it is given, as an HTTP request does.
func (i images) Import(_ context.Context, _ string, tar io.Reader) error {
	if c, ok := tar.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// TestAddLayer has each request refused, and then unanswered until the caller goes.
// There is never a commit after another failure, and never a container left.
func TestAddLayer(t *testing.T) {
	newLayer := func() runtime.Layer {
		return runtime.Layer{Base: "base", Ref: "localhost/made:latest", Owner: runtime.Self(),
			Tar: strings.NewReader("x")}
	}
	inBubble(t, newFake(), func(t *testing.T, e *Engine[*fake]) {
		f, err := e.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := newLayer()
		if i, err := e.AddLayer(t.Context(), l); err != nil || i.ID != "sha256:made" || i.Ref != l.Ref {
			t.Errorf("got %+v, %v", i, err)
		}
		if want := []string{"look", "create", "extract", "commit", "remove", "find"}; !slices.Equal(f.asked, want) {
			t.Errorf("asked for %q, want %q", f.asked, want)
		}
		f.set(func() { f.refuses = "remove" })
		if _, err := e.AddLayer(t.Context(), newLayer()); err != nil || f.left() != 1 {
			t.Errorf("the container stays, the image is there: %v, %d containers are left", err, f.left())
		}
		f.set(func() { f.refuses = "" })
		e.Settle() // what is owed is removed
		gone := errors.New("the caller has gone")
		for _, what := range []string{"create", "extract", "commit"} {
			f.set(func() { f.asked, f.refuses = nil, what })
			_, refused := e.AddLayer(t.Context(), newLayer())
			f.set(func() { f.refuses, f.hang = "", what })
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(gone) })
			_, left := e.AddLayer(ctx, newLayer())
			f.set(func() { f.hang = "" })
			if !errors.Is(refused, errRefused) || !errors.Is(left, gone) || f.left() > 0 {
				t.Errorf("%s: refused %v, unanswered %v; %d containers are left", what, refused, left, f.left())
			}
			if what != "commit" && f.count("commit") > 0 {
				t.Errorf("there is a commit though there was no %s", what)
			}
		}
	})
}
