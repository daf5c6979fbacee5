package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// PullPolicy says when an image is asked for from its registry.
type PullPolicy string

// The policies. With PullAlways the registry is asked once after each start of the bridge, and
// whenever the engine was away; if it can't be reached then, nothing runs.
const (
	PullMissing PullPolicy = "missing" // when the engine has none of the images
	PullNever   PullPolicy = "never"
	PullAlways  PullPolicy = "always"
)

// UnfitError says that the engine has an image, and that code can't be run in it.
type UnfitError struct {
	Image runtime.Image
	Err   error
	Next  string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("image %s can't be used: %v", e.Image.Ref, e.Err)
}

func (e *UnfitError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *UnfitError) Hint() string { return e.Next }

// findImage returns the image that runs will have, by policy.
func (s *Sandbox) findImage(ctx context.Context, f runtime.Facts, p runtime.Progress) (runtime.Image, error) {
	i, err := runtime.FirstImage(ctx, s.driver, s.cfg.Images)
	if err != nil {
		return i, err
	}
	first := s.cfg.Images[0]
	switch {
	case runtime.IsLocal(first) && i.ID == "":
		return i, runtime.LocalError(first)
	case runtime.IsLocal(first):
	case s.cfg.Pull == PullAlways || i.ID == "" && s.cfg.Pull == PullMissing:
		if i, err = s.driver.PullImage(ctx, first, p); err != nil {
			return i, err
		}
	}
	if i.ID == "" {
		return i, &runtime.ImageError{
			Ref:  strings.Join(s.cfg.Images, ", or "),
			Err:  errors.New("the engine has none, and MCP_BRIDGE_PULL=never forbids to pull one"),
			Next: "get it yourself (mcp-bridge image pull, or mcp-bridge image build), or set MCP_BRIDGE_PULL=missing",
		}
	}
	return i, cmp.Or(pinned(i), suits(i, f))
}

// pinned returns an error when the image was asked for by a digest and hasn't got it. The engine
// found it under that name, so this can only be an engine that is wrong or lies, or a name that it
// takes to mean something else.
func pinned(i runtime.Image) error {
	_, want, ok := strings.Cut(i.Ref, "@")
	if !ok || i.Digest == want || i.ID == want {
		return nil
	}
	return &UnfitError{
		Image: i,
		Err: fmt.Errorf("the engine has another one under that name: its digest is %s and its id %s",
			cmp.Or(i.Digest, "not known"), i.ID),
		Next: "remove that image from the engine and pull it again: mcp-bridge image pull",
	}
}

// also are the architectures whose programs a machine runs beside its own.
var also = map[string]string{"amd64": "386", "arm64": "arm"}

// suits returns an error when the image is made for another machine than the engine's. Emulation is
// no way out: system call filters are written for the real machine.
func suits(i runtime.Image, f runtime.Facts) error {
	if i.Arch == "" || f.Arch == "" || i.Arch == f.Arch || also[f.Arch] == i.Arch {
		return nil
	}
	return &UnfitError{
		Image: i,
		Err:   fmt.Errorf("it is made for %s, and the engine's machine is %s", i.Arch, f.Arch),
		Next: fmt.Sprintf("name an image for %s in MCP_BRIDGE_IMAGE, or remove this one and let it be pulled "+
			"again: mcp-bridge image pull", f.Arch),
	}
}

// strongProfile reports whether the engine itself denies what the guest's own filter would.
func strongProfile(f runtime.Facts) bool { return f.Seccomp != "" && f.Seccomp != "engine" }

// oldPython is what the guest says of a Python that it doesn't run on.
var oldPython = regexp.MustCompile(`its Python is [0-9.]+, and [0-9.]+ or newer is needed`)

// unfit returns what the end of a container that was never ready says against its image, in the
// words of the engines and their runtimes; nil for nothing.
func unfit(exit runtime.Exit, err error, stderr string) error {
	text := stderr
	if err != nil {
		text += " " + err.Error()
	}
	text = strings.ToLower(text)
	missing := strings.Contains(text, "not found") || strings.Contains(text, "no such file")
	switch {
	case strings.Contains(text, "exec format error"):
		return errors.New("its programs are made for another architecture than this machine's")
	case err != nil && strings.Contains(text, "python3") && missing, err == nil && exit.Code == 127:
		return errors.New("there is no python3 on its PATH")
	case oldPython.MatchString(stderr):
		return errors.New(oldPython.FindString(stderr))
	}
	return nil
}
