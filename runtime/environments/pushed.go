package environments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

// A cluster makes and lists no images. An environment for one is built and exported where podman or
// docker is, and pushed to a registry by the user's own tool. Here NAME.toml then names the image,
// and labels.NAME.json has the labels that an engine would have told.

// pushedPattern is the form of an image's name with its digest, which never names a later image. A
// name of what was loaded onto the nodes has no digest.
var pushedPattern = regexp.MustCompile(
	`^(localhost/[a-z0-9._:/-]+|[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64})$`,
)

const maxLabels = 1 << 20 // bytes of labels.NAME.json

// labelsFile returns the file with the labels of an environment's image.
func (s settings) labelsFile(name string) string {
	return filepath.Join(s.dir, "labels."+name+".json")
}

// WriteLabels writes the labels of an environment's image to a file beside NAME.toml, and returns
// its path. A bridge of a cluster reads it there. Without such a directory it does nothing.
func (s settings) WriteLabels(env Environment) (path string, err error) {
	if s.dir == "" {
		return "", nil
	}
	labels, err := env.labels()
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(labels, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	path = s.labelsFile(env.Name)
	return path, filelock.Replace(path, ".labels-*", text, []byte("\n"))
}

// pushed returns the environments whose NAME.toml names an image in a registry. One whose labels
// can't be read is left out, and the log says why.
func (e *Environments) pushed() (all []Environment) {
	for _, d := range e.Definitions() {
		if d.Err != nil || d.Pushed == "" {
			continue
		}
		env, err := e.readLabels(d)
		if err != nil {
			e.log.Warn("environment can't be used", "environment", d.Name, "err", err)
			continue
		}
		if l, err := e.lock(d, env.Interpreter); err == nil && l.Digest != env.Lock {
			env.Outdated = lockChanged
		}
		all = append(all, env)
	}
	return all
}

// readLabels returns the environment that labels.NAME.json describes.
func (s settings) readLabels(d Definition) (env Environment, err error) {
	path := s.labelsFile(d.Name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return env, &text.HintError{
			Err:  fmt.Errorf("the environment %s can't be used: %s is missing", d.Name, path),
			Next: "mcp-bridge env export " + d.Name + " --oci FILE writes it, where podman or docker is: copy it here"}
	case err == nil && info.Size() > maxLabels:
		err = fmt.Errorf("%s has more than %d bytes", path, maxLabels)
	case err == nil:
		err = s.trust.File(path)
	}
	if err != nil {
		return env, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return env, err
	}
	i := runtime.ListedImage{ID: d.Pushed, Names: []string{ref(d.Name)}}
	if err := json.Unmarshal(text, &i.Labels); err != nil {
		return env, fmt.Errorf("%s: %w", path, err)
	}
	env, ok := read(i)
	if !ok || env.Name != d.Name {
		return env, fmt.Errorf("%s doesn't describe the environment %s", path, d.Name)
	}
	env.Image = runtime.Image{
		Ref:    d.Pushed,
		ID:     d.Pushed,
		Digest: runtime.DigestOf(d.Pushed, []string{d.Pushed}),
	}
	env.Imports, env.Limits = d.Imports, d.Limits
	return env, nil
}

// unbuilt returns why an environment isn't listed: it is not built, or what tells a cluster of it
// can't be read.
func (e *Environments) unbuilt(ctx context.Context, d Definition) error {
	is, err := e.cluster(ctx)
	if is && d.Pushed != "" {
		_, err = e.readLabels(d)
	}
	return cmp.Or[error](err, &NotBuiltError{d.Name})
}

// cluster reports whether the engine is a cluster, whose environments are those that were pushed.
func (e *Environments) cluster(ctx context.Context) (bool, error) {
	f, err := e.driver.Facts(ctx)
	return f.Cluster, err
}

// pull has an image that was pushed pulled, if no node has it yet: the first run in it has no time
// for that. For other engines it does nothing.
func (e *Environments) pull(ctx context.Context, env Environment) error {
	is, err := e.cluster(ctx)
	if err != nil || !is {
		return err
	}
	_, has, err := e.driver.FindImage(ctx, env.Image.ID)
	if err == nil && !has {
		_, err = e.driver.PullImage(ctx, env.Image.ID, nil)
	}
	return err
}

// errCluster says why an environment of a cluster isn't built, nor its image removed.
func errCluster(name, next string) error {
	return &text.HintError{Err: fmt.Errorf("the environment %s: a cluster makes and removes no images", name),
		Next: next}
}

// elsewhere is how a cluster gets an environment.
func elsewhere(name string) string {
	return "build and export it where podman or docker is, push it, and name it in " + name +
		".toml: pushed = \"REGISTRY/IMAGE@sha256:…\" (docs/kubernetes.md)"
}
