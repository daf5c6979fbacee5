package environments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// fresh is how long what List returned last is used without asking the engine.
const fresh = time.Minute

// List returns the environments that the engine has, by name, or those that were pushed for a
// cluster. It asks the engine.
func (e *Environments) List(ctx context.Context) ([]Environment, error) {
	is, err := e.cluster(ctx)
	if err != nil {
		return nil, err
	}
	var all []Environment
	if is {
		all = e.pushed()
	} else if all, err = e.onEngine(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Environment) int { return cmp.Compare(a.Name, b.Name) })
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listed, e.at = all, time.Now()
	return slices.Clone(all), nil
}

// onEngine returns the environments of which the engine has an image.
func (e *Environments) onEngine(ctx context.Context) ([]Environment, error) {
	images, err := e.driver.ListImages(ctx, labelName)
	if err != nil {
		return nil, err
	}
	all := []Environment{}
	for _, i := range images {
		env, ok := read(i)
		if !ok {
			continue
		}
		if d, err := e.definition(env.Name); err == nil {
			env.Imports, env.Limits = d.Imports, d.Limits
			if env.Outdated, err = e.outdated(ctx, env, d); err != nil {
				return nil, err
			}
		}
		all = append(all, env)
	}
	return all, nil
}

// lockChanged is why an environment is outdated whose lock isn't that of its image.
const lockChanged = "its lock has changed"

// outdated returns why an environment isn't what a build would make now.
func (e *Environments) outdated(ctx context.Context, env Environment, d Definition) (string, error) {
	base, err := e.base(ctx, d)
	if err != nil && !errors.As(err, new(*runtime.ImageError)) {
		return "", err
	}
	l, lockErr := e.lock(d, env.Interpreter)
	switch {
	case err == nil && base.ID != env.Base:
		return "its base image is another one now", nil
	case lockErr == nil && l.Digest != env.Lock:
		return lockChanged, nil
	}
	return "", nil
}

// base returns the image that an environment is built on, or an *runtime.ImageError.
func (e *Environments) base(ctx context.Context, d Definition) (runtime.Image, error) {
	images := e.images
	if d.Image != "" {
		images = []string{d.Image}
	}
	if i, err := runtime.FirstImage(ctx, e.driver, images); i.ID != "" || err != nil {
		return i, err
	}
	return runtime.Image{}, &runtime.ImageError{Ref: images[0], Err: errors.New("the engine doesn't have it"),
		Next: "get it with: mcp-bridge image ensure; one that NAME.toml names, with your engine's own pull"}
}

// known returns what List returned last if that is fresh, and else calls it.
func (e *Environments) known(ctx context.Context) (all []Environment, asked bool, err error) {
	e.mu.Lock()
	all, at := slices.Clone(e.listed), e.at
	e.mu.Unlock()
	if !at.IsZero() && time.Since(at) < fresh {
		return all, false, nil
	}
	all, err = e.List(ctx)
	return all, true, err
}

// Forget makes the next Find or ByName ask the engine: an image that they named is gone.
func (e *Environments) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = time.Time{}
}

// ByName returns the environment of that name, a *NotBuiltError or an *UnknownError. It asks the
// engine if the last answer is a minute old, so it finds what another process builds within that.
func (e *Environments) ByName(ctx context.Context, name string) (Environment, error) {
	all, _, err := e.known(ctx)
	if err != nil {
		return Environment{}, err
	}
	if i := slices.IndexFunc(all, func(env Environment) bool { return env.Name == name }); i >= 0 {
		return all[i], e.pull(ctx, all[i])
	}
	d, err := e.definition(name)
	if err != nil {
		return Environment{}, err
	}
	return Environment{}, e.unbuilt(ctx, d)
}

// Find returns the environment that has all that a block asks for, and the fewest packages beside.
// Without one it asks the engine, and then returns a *MissingError. Other errors are the
// engine's, or from a marker in the block.
func (e *Environments) Find(ctx context.Context, b *wheels.Block) (Environment, error) {
	all, asked, err := e.known(ctx)
	if err != nil {
		return Environment{}, err
	}
	env, missing, err := choose(all, b)
	if err == nil && missing != nil && !asked {
		if all, err = e.List(ctx); err == nil {
			env, missing, err = choose(all, b)
		}
	}
	if err != nil {
		return env, err
	}
	if missing == nil {
		return env, e.pull(ctx, env)
	}
	lacks := &MissingError{Missing: missing, Built: all, Buildable: e.buildable(all, b), Meant: e.meant(all, b)}
	for _, dependency := range b.Dependencies {
		lacks.Asked = append(lacks.Asked, dependency.Text)
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(env Environment) bool { return b.Runs(env.Interpreter) }) {
		lacks.Python = b.RequiresPython
	}
	lacks.Cluster, err = e.cluster(ctx)
	return Environment{}, cmp.Or[error](err, lacks)
}

// choose returns the environment with the fewest packages that has all of b, or what the nearest of
// them lacks.
func choose(all []Environment, b *wheels.Block) (best Environment, missing []string, err error) {
	for _, d := range b.Dependencies {
		missing = append(missing, d.Text)
	}
	if missing == nil {
		missing = []string{"Python " + b.RequiresPython}
	}
	found := false
	for _, env := range all {
		lacks, err := b.Missing(env.Interpreter, env.Distributions)
		switch {
		case err != nil:
			return env, nil, err
		case len(lacks) == 0 && (!found || len(env.Distributions) < len(best.Distributions)):
			found, best = true, env
		case len(lacks) > 0 && len(lacks) < len(missing):
			missing = lacks
		}
	}
	if found {
		missing = nil
	}
	return best, missing, nil
}

// Used records that code runs in an environment. Those unused for longest are removed first when
// all together exceed their bound.
func (e *Environments) Used(name string) { e.cache.use(name) }

// Expected reports whether an environment was built or used from this machine, and not removed
// since. It doesn't ask the engine.
func (e *Environments) Expected(name string) bool {
	_, err := os.Stat(e.cache.mark(name))
	return err == nil && e.cache.path != ""
}

// Remove removes an environment's images from the engine, not its file and its lock. If the engine
// has none, the error is a *NotBuiltError or an *UnknownError.
func (e *Environments) Remove(ctx context.Context, name string) error {
	defer e.Forget()
	n, err := e.remove(ctx, func(i runtime.ListedImage) bool { return i.Labels[labelName] == name })
	var hinted interface{ Hint() string }
	switch {
	case errors.As(err, &hinted):
		return err
	case err != nil:
		return &text.HintError{Err: fmt.Errorf("the environment %s can't be removed: %w", name, err),
			Next: "try again when no code runs in it: a guest that waits ends after MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT"}
	}
	e.cache.forget(name)
	if n > 0 {
		return nil
	}
	if is, err := e.cluster(ctx); is || err != nil {
		return cmp.Or(err, errCluster(name, "to do without it, take pushed out of "+name+".toml"))
	}
	if _, err := e.definition(name); errors.As(err, new(*UnknownError)) {
		return err
	}
	return &NotBuiltError{name}
}

// remove removes the images of environments for which which returns true, and returns their number.
func (e *Environments) remove(ctx context.Context, which func(runtime.ListedImage) bool) (n int, err error) {
	images, err := e.driver.ListImages(ctx, labelName)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, i := range images {
		if which(i) {
			errs = append(errs, e.driver.RemoveImage(ctx, i.ID))
			n++
		}
	}
	return n, errors.Join(errs...)
}

// tidy removes images whose names went to later ones. Then, while the environments exceed their
// bound, it removes the one unused for longest, but not kept, nor one that a container uses.
func (e *Environments) tidy(ctx context.Context, kept string) {
	replaced := func(i runtime.ListedImage) bool { return len(i.Names) == 0 }
	if _, err := e.remove(ctx, replaced); err != nil {
		e.log.Info("replaced environments that are still in use", "err", err)
	}
	all, err := e.List(ctx)
	if err != nil || e.limit == 0 {
		return
	}
	used := func(env Environment) time.Time { return e.cache.lastUse(env.Name, env.Built) }
	slices.SortFunc(all, func(a, b Environment) int { return used(a).Compare(used(b)) })
	var total int64
	for _, env := range all {
		total += env.Size
	}
	for _, env := range all {
		if total <= e.limit || env.Name == kept {
			continue
		}
		if err := e.Remove(ctx, env.Name); err != nil {
			e.log.Info("the environments take more than their bound", "err", err)
			continue
		}
		e.log.Info("environment removed: all of them took more than their bound", "environment", env.Name)
		total -= env.Size
	}
}

// dropAuto removes environments that were made for code, and their files, so that maxAuto are left:
// kept, and those that were used last.
func (e *Environments) dropAuto(ctx context.Context, kept string) {
	used := map[string]time.Time{}
	for _, d := range e.Definitions() {
		if info, err := os.Stat(d.File); err == nil && strings.HasPrefix(d.Name, Auto) && d.Name != kept {
			used[d.Name] = e.cache.lastUse(d.Name, info.ModTime())
		}
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range names[min(len(names), maxAuto-1):] {
		err := e.Remove(ctx, name)
		if err == nil || errors.As(err, new(*NotBuiltError)) {
			err = e.Delete(name)
		}
		if err != nil {
			e.log.Info("an environment that was made for code stays", "environment", name, "err", err)
		}
	}
}
