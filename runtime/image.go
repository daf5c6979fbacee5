package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"strings"
)

// Image is one that an engine has.
type Image struct {
	Ref string // as it was asked for
	// the engine's own id of it, "sha256:…": a container made by it runs this image and no later one
	// of the name
	ID     string
	Digest string // of the manifest in its registry, "sha256:…"; empty for one that was made here
	Arch   string // GOARCH's names; empty when the engine doesn't say
}

// DigestOf returns the digest of an image among the names "repository@sha256:…" that an engine
// has for it: the one that ref asks for, if it is there, since an image may have one of its own and
// one of an index; else the first. Names of localhost don't count unless asked for: engines make
// digests up for images that were made here.
func DigestOf(ref string, names []string) string {
	first := ""
	_, asked, _ := strings.Cut(ref, "@")
	for _, n := range names {
		name, digest, ok := strings.Cut(n, "@")
		switch {
		case ok && digest == asked:
			return digest
		case ok && first == "" && !IsLocal(name):
			first = digest
		}
	}
	return first
}

// FirstImage returns the first of some images that the engine has, or the zero Image.
func FirstImage(ctx context.Context, d Driver, refs []string) (Image, error) {
	for _, ref := range refs {
		if i, ok, err := d.FindImage(ctx, ref); ok || err != nil {
			return i, err
		}
	}
	return Image{}, nil
}

// An ImageImporter is a Driver that can make an image from a tar of its root file system.
type ImageImporter interface {
	// ImportImage reads tar to its end, and leaves closing it to its caller.
	ImportImage(ctx context.Context, ref string, tar io.Reader) error
}

// ImageError says that an image can't be had, or that it can't be used.
type ImageError struct {
	Ref  string
	Err  error
	Next string
	// Unreached says that its registry may not have been reached, so that another image may do.
	Unreached bool
}

func (e *ImageError) Error() string { return fmt.Sprintf("image %s can't be had: %v", e.Ref, e.Err) }

func (e *ImageError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *ImageError) Hint() string { return e.Next }

// IsLocal reports whether an image's name is one that engines give to images made on this machine.
// No registry has it, though localhost with a port may be one.
func IsLocal(ref string) bool { return strings.HasPrefix(ref, "localhost/") }

// LocalError returns the error where an image of a local name is not there.
func LocalError(ref string) *ImageError {
	return &ImageError{
		Ref: ref,
		Err: errors.New("it is not here, and no registry has it: localhost/ is for images made on this machine"),
		Next: "build that image, or set MCP_BRIDGE_IMAGE=localhost/mcp-bridge/python:latest and make that one: " +
			"mcp-bridge image build",
	}
}

// makeOne is what to do where no image can be pulled.
const makeOne = "make an image from this machine's packages, which is used where neither " +
	"MCP_BRIDGE_IMAGE nor MCP_BRIDGE_PULL=always is set: mcp-bridge image build"

// pullFailures are what engines, registries and their libraries say, in lower case, and what it
// means. The first that is found counts: what went wrong on this machine comes before what a
// registry answers.
var pullFailures = []struct {
	says []string
	why  string
	next string
}{
	{[]string{"no space left", "disk quota exceeded"}, "no space left on the engine's disk",
		"free some space (podman system prune, docker system prune), then try again"},
	{[]string{"no matching manifest", "no image found in manifest list", "no image found in image index",
		"does not match the specified platform", "exec format error"},
		"there isn't one for this machine's architecture (" + goruntime.GOARCH + ")",
		"name an image that is made for " + goruntime.GOARCH + ": MCP_BRIDGE_IMAGE"},
	{[]string{"unauthorized", "authentication required", "access to the resource is denied",
		"requested access", "denied:"},
		"the registry wants a login, or has no such image",
		"check the name, or log in: podman login or docker login"},
	{[]string{"manifest unknown", "name unknown", "not found: manifest", "repository does not exist",
		"no such image", "not found"}, "the registry has no such image", "check the name: MCP_BRIDGE_IMAGE"},
	{[]string{"no such host", "connection refused", "dial tcp", "i/o timeout", "tls handshake",
		"network is unreachable", "server misbehaving", "no route to host", "x509", "proxyconnect", "eof"},
		"its registry can't be reached", "check the network and the proxy, or " + makeOne},
}

// PullError words an engine's refusal to pull ref.
func PullError(ref string, err error) *ImageError {
	text := OneLine(err.Error())
	low := strings.ToLower(text)
	for _, f := range pullFailures {
		for _, s := range f.says {
			if strings.Contains(low, s) {
				return &ImageError{Ref: ref, Err: fmt.Errorf("%s: %s", f.why, text), Next: f.next,
					Unreached: strings.Contains(f.next, makeOne)}
			}
		}
	}
	return &ImageError{Ref: ref, Err: errors.New(text),
		Next: "check the name and the network, or " + makeOne, Unreached: true}
}
