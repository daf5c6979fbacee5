package environments_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// fake is an engine that keeps images in memory. Its containers are plain subprocesses, so that the
// programs of a build are run by this machine's python3.
type fake struct {
	runtimetest.Local
	compiles func(context.Context, runtime.Stdio) (runtime.Exit, error) // instead of the compiler; nil for none
	loses    bool                                                       // what the first run prints
	addErr   error                                                      // of AddLayer, when it has read half
	inUse    map[string]bool                                            // images by id

	mu     sync.Mutex
	images []runtime.ListedImage
	layers map[string][]byte // tars by image id
	runs   int
	bases  map[string]string // ids of base images by name; nil for one of every name
}

func (f *fake) FindImage(ctx context.Context, ref string) (runtime.Image, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bases == nil {
		return f.Local.FindImage(ctx, ref)
	}
	id, has := f.bases[ref]
	return runtime.Image{Ref: ref, ID: id}, has, nil
}

func (f *fake) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	f.mu.Lock()
	f.runs++
	lost := f.loses && f.runs == 1
	f.mu.Unlock()
	if lost {
		return runtime.Exit{}, nil
	}
	if f.compiles != nil && strings.Contains(s.Command[len(s.Command)-2], "RLIMIT_AS") {
		return f.compiles(ctx, std)
	}
	s.Env = append(s.Env, "PATH="+os.Getenv("PATH"))
	return f.Local.Run(ctx, s, std)
}

func (f *fake) AddLayer(_ context.Context, l runtime.Layer) (runtime.Image, error) {
	if f.addErr != nil {
		_, _ = io.CopyN(io.Discard, l.Tar, 1024)
		return runtime.Image{}, f.addErr
	}
	content, err := io.ReadAll(l.Tar)
	if err != nil {
		return runtime.Image{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.images {
		f.images[i].Names = slices.DeleteFunc(f.images[i].Names, func(n string) bool { return n == l.Ref })
	}
	id := fmt.Sprintf("sha256:%064d", len(f.layers)+1)
	f.images = append(f.images, runtime.ListedImage{ID: id, Names: []string{l.Ref},
		Labels: maps.Clone(l.Labels)})
	if f.layers == nil {
		f.layers = map[string][]byte{}
	}
	f.layers[id] = content
	return runtime.Image{Ref: l.Ref, ID: id}, nil
}

func (f *fake) ListImages(_ context.Context, label string) (all []runtime.ListedImage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.images {
		if _, has := i.Labels[label]; has {
			i.Names = slices.Clone(i.Names)
			all = append(all, i)
		}
	}
	return all, nil
}

func (f *fake) RemoveImage(_ context.Context, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse[id] {
		return errors.New("a container uses it")
	}
	f.images = slices.DeleteFunc(f.images, func(i runtime.ListedImage) bool { return i.ID == id })
	return nil
}
