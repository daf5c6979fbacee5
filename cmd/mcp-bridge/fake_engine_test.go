package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// fakeEngine is a healthy engine, except for what a test breaks. Its containers are plain
// subprocesses.
type fakeEngine struct {
	runtimetest.Local
	facts    runtime.Facts
	err      error // of Facts
	startErr error
	image    runtime.Image
	missing  bool // it has no image
	pullErr  error
	says     string // what the guest says before it ends
	end      runtime.Exit
	endErr   error // of a run; with end it doesn't take place
	orphans  []runtime.Orphan
	reapErr  error
	removed  []string
	listed   []runtime.ListedImage
	reached  bool              // by a container without the guest
	tryErr   error             // of looking whether it reaches anything
	looked   func(*fakeEngine) // called when an image is looked for

	hold          chan struct{} // a pull goes on until it is closed; nil: it doesn't
	starts, pulls int
}

func healthy() *fakeEngine {
	return &fakeEngine{
		facts: runtime.Facts{
			Engine: "podman", Version: "5.4.2", APIVersion: "5.4.2",
			Endpoint: "unix:///run/user/1000/podman/podman.sock", OCIRuntime: "crun",
			Rootless: true, CgroupVersion: 2, Arch: "amd64", Enforces: runtime.Enforced{Memory: true, PIDs: true,
				CPUs: true},
			Seccomp: "strict", LSM: []string{"selinux"}, OwnUsers: true,
		},
		image: runtime.Image{ID: "sha256:" + strings.Repeat("1", 64), Digest: "sha256:" + strings.Repeat("2", 64),
			Arch: "amd64"},
	}
}

func (e *fakeEngine) Facts(context.Context) (runtime.Facts, error) {
	if e.err != nil {
		return runtime.Facts{}, e.err
	}
	return e.facts, nil
}

func (e *fakeEngine) Start(_ context.Context, p runtime.Progress) error {
	e.starts++
	p("booting the virtual machine")
	if e.startErr == nil {
		e.err = nil
	}
	return e.startErr
}

func (e *fakeEngine) FindImage(_ context.Context, ref string) (runtime.Image, bool, error) {
	if e.looked != nil {
		e.looked(e)
	}
	i := e.image
	i.Ref = ref
	return i, !e.missing, nil
}

func (e *fakeEngine) PullImage(_ context.Context, ref string, p runtime.Progress) (runtime.Image, error) {
	e.pulls++
	p("pulling " + ref)
	if e.hold != nil {
		<-e.hold
	}
	if e.pullErr != nil {
		return runtime.Image{}, runtime.PullError(ref, e.pullErr)
	}
	i := e.image
	i.Ref = ref
	return i, nil
}

func (e *fakeEngine) Reaches(context.Context, string) (bool, error) { return e.reached, e.tryErr }

func (e *fakeEngine) Run(ctx context.Context, s runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if (e.end != runtime.Exit{} || e.endErr != nil) {
		_, err := io.WriteString(std.Stderr, e.says)
		return e.end, errors.Join(e.endErr, err)
	}
	return e.Local.Run(ctx, s, std)
}

func (e *fakeEngine) SaveImage(_ context.Context, _ string, w io.Writer) error {
	archive := tar.NewWriter(w)
	return errors.Join(archive.WriteHeader(&tar.Header{Name: "oci-layout"}), archive.Close())
}

func (e *fakeEngine) ListImages(context.Context, string) ([]runtime.ListedImage, error) {
	return e.listed, nil
}

func (e *fakeEngine) Orphans(context.Context, runtime.Owner) ([]runtime.Orphan, error) {
	return e.orphans, e.reapErr
}

func (e *fakeEngine) Remove(_ context.Context, ids ...string) error {
	e.removed = append(e.removed, ids...)
	e.orphans = nil
	return nil
}
