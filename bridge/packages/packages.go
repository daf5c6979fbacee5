// Package packages chooses the environment that code runs in: the one that has what the code asks
// for in a comment (PEP 723), or the configured one. It builds an environment if the code needs it
// and the policy allows that.
//
// Code that asks for anything else is refused before it runs. The error says what there is, and
// what the user can type.
package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// fresh is how long an answer about the configured environment is used without asking again.
const fresh = time.Minute

// maxTold is how long a name is that a model is told: then it takes 8 tokens at the most.
const maxTold = 6

// Base is the name of having no environment.
const Base = environments.Base

// A Source has the environments; *environments.Environments is one. All methods are used
// concurrently.
type Source interface {
	List(ctx context.Context) ([]environments.Environment, error)
	Find(ctx context.Context, b *wheels.Block) (environments.Environment, error)
	ByName(ctx context.Context, name string) (environments.Environment, error)
	Build(ctx context.Context, name string, p environments.Progress) (environments.Environment, error)
	Add(ctx context.Context, name string, packages []string) error
	// Locked returns the packages in the lock of an environment.
	Locked(name string) ([]wheels.Distribution, error)
	Forget()
	// Follow replaces where packages come from, and how old a release must be.
	Follow(index string, minAge time.Duration)
	Used(name string)
	// Expected reports whether the engine had the environment when it was last used on this machine,
	// without asking it.
	Expected(name string) bool
}

// Config has what New needs.
type Config struct {
	Source Source          // required
	Policy policy.Packages // which environments may be built for code, beside data

	// Default is the environment of code that asks for nothing: a name, or environments.Base. Empty
	// means data if it is built.
	Default string

	// Ready starts an engine that is at rest, and makes the configured image present. Required.
	Ready func(ctx context.Context, p runtime.Progress) error

	Log *slog.Logger // nil means silence
}

// Chooser chooses environments. It is safe for concurrent use. A nil *Chooser chooses none.
type Chooser struct {
	cfg    Config
	ctx    context.Context // of builds: it ends with Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // the builds

	mu     sync.Mutex
	usual  *sandbox.Environment // of code that asks for nothing
	asked  time.Time            // when that was looked up; zero for never
	builds map[string]*underway // by name; maxBuilds at most
}

// New returns a Chooser. It asks nothing yet. Close ends what it builds.
func New(cfg Config) *Chooser {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	c := &Chooser{cfg: cfg, builds: map[string]*underway{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// SetPolicy replaces Config.Policy.
func (c *Chooser) SetPolicy(p policy.Packages) {
	if c == nil {
		return
	}
	c.cfg.Source.Follow(p.Index, p.MinAge)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Policy = p
}

// policy returns which environments may be built for code now.
func (c *Chooser) policy() policy.Packages {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg.Policy
}

// Choose returns the environment for code, nil for the standard library alone. It calls slow before
// it builds one, and p while it does. The error is an args.Error if the code is at fault; all
// others have a hint, or are the engine's.
func (c *Chooser) Choose(ctx context.Context, code string, slow func(),
	p runtime.Progress) (*sandbox.Environment, error) {
	if c == nil {
		return nil, nil
	}
	b, err := block(code)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return c.fallback(ctx, slow, p)
	}
	find := func() (environments.Environment, error) { return c.cfg.Source.Find(ctx, b) }
	env, err := c.ask(ctx, slow, p, find)
	var missing *environments.MissingError
	lacks := errors.As(err, &missing)
	switch {
	case len(b.Dependencies) == 0 && (err == nil || lacks && missing.Python == ""):
		return c.fallback(ctx, slow, p)
	case lacks && len(b.Dependencies) > 0:
		env, err = c.make(ctx, b, missing, slow, p)
	}
	return forRuns(env), err
}

// block returns what code asks for, nil for nothing.
func block(code string) (*wheels.Block, error) {
	b, err := wheels.ParseBlock(code)
	if err == nil && b != nil {
		_, err = b.Missing(wheels.Interpreter{Version: "3.13.0"}, nil) // reads its markers
	}
	if err != nil {
		return nil, args.Errorf("%v", err)
	}
	if b == nil || len(b.Dependencies) == 0 && b.RequiresPython == "" {
		return nil, nil
	}
	return b, nil
}

// Asks reports whether code may ask for packages.
func Asks(code string) bool {
	b, err := block(code)
	return err == nil && b != nil && len(b.Dependencies) > 0
}

// About returns what a model is told that code can import; empty for Python's own modules alone.
func (c *Chooser) About() string {
	if c == nil {
		return ""
	}
	name := cmp.Or(c.cfg.Default, environments.Data)
	c.mu.Lock()
	has, known := c.usual != nil, !c.asked.IsZero()
	c.mu.Unlock()
	if !known {
		has = name != environments.Base && (c.cfg.Default != "" || c.cfg.Source.Expected(name))
	}
	switch {
	case !has:
		return "stdlib, PEP 723 packages"
	case name == environments.Data:
		return "numpy, pandas, matplotlib and more"
	case len(name) > maxTold:
		return "other packages"
	}
	return "packages of " + name
}

// fallback returns the environment of code that asks for none.
func (c *Chooser) fallback(ctx context.Context, slow func(),
	p runtime.Progress) (*sandbox.Environment, error) {
	if c.cfg.Default == environments.Base {
		return nil, nil
	}
	c.mu.Lock()
	usual, known := c.usual, !c.asked.IsZero()
	c.mu.Unlock()
	if known {
		return usual, nil
	}
	env, err := c.ask(ctx, slow, p, func() (environments.Environment, error) {
		return c.cfg.Source.ByName(ctx, cmp.Or(c.cfg.Default, environments.Data))
	})
	var unbuilt *environments.NotBuiltError
	switch {
	case errors.As(err, &unbuilt) && c.cfg.Default == "":
		c.remember(nil)
		return nil, nil
	case errors.As(err, &unbuilt) && (c.cfg.Default == environments.Data || c.policy().OnDemand):
		env, err = c.build(ctx, c.cfg.Default, slow, p)
	}
	if err != nil {
		return nil, err
	}
	usual = forRuns(env)
	c.remember(usual)
	return usual, nil
}

// ask calls find. If the engine is at rest, ask starts it and calls find again.
func (c *Chooser) ask(ctx context.Context, slow func(), p runtime.Progress,
	find func() (environments.Environment, error)) (environments.Environment, error) {
	env, err := find()
	if away, ok := errors.AsType[*runtime.UnavailableError](err); ok && (away.Dormant || away.Gone) {
		slow()
		if err := c.cfg.Ready(ctx, p); err != nil {
			return env, err
		}
		return find()
	}
	return env, err
}

func (c *Chooser) remember(e *sandbox.Environment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usual, c.asked = e, time.Now()
}

// Forget makes the next Choose ask the engine: the image of an environment is gone.
func (c *Chooser) Forget() {
	c.cfg.Source.Forget()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = time.Time{}
}

// Ran records that code ran in e, which may be nil. If the last answer is no longer fresh, it asks
// the engine for the configured environment, so it is called when nothing waits for it.
func (c *Chooser) Ran(ctx context.Context, e *sandbox.Environment) {
	if c == nil {
		return
	}
	if e != nil {
		c.cfg.Source.Used(e.Name)
	}
	c.mu.Lock()
	due := !c.asked.IsZero() && time.Since(c.asked) > fresh
	if due {
		c.asked = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	env, err := c.cfg.Source.ByName(ctx, cmp.Or(c.cfg.Default, environments.Data))
	switch {
	case err == nil:
		c.remember(forRuns(env))
	case errors.As(err, new(*environments.NotBuiltError)) && c.cfg.Default == "":
		c.remember(nil)
	}
}

// make builds an environment with what a block asks for, or returns why not. The policy must allow
// what the lock has before any of it is downloaded.
func (c *Chooser) make(ctx context.Context, b *wheels.Block, missing *environments.MissingError, slow func(),
	p runtime.Progress) (environments.Environment, error) {
	refuses, name := c.policy().Allows, ""
	switch {
	case slices.Contains(missing.Buildable, environments.Data):
		name, refuses = environments.Data, c.policy().Denies
	case !c.policy().OnDemand:
		return environments.Environment{}, missing
	case len(missing.Buildable) > 0:
		name = missing.Buildable[0]
	}
	for _, d := range b.Dependencies {
		if err := refuses(d.Name, ""); err != nil {
			return environments.Environment{}, &refusal{missing, err}
		}
	}
	if name == "" {
		var err error
		if name, err = c.add(ctx, b, slow, p); err != nil {
			return environments.Environment{}, err
		}
	}
	if err := c.permits(b, name); err != nil {
		return environments.Environment{}, &refusal{missing, err}
	}
	if _, err := c.build(ctx, name, slow, p); err != nil {
		return environments.Environment{}, err
	}
	return c.cfg.Source.Find(ctx, b) // the lock of data for another Python may have other versions
}

// permits returns why the policy doesn't let an environment be built for code.
func (c *Chooser) permits(b *wheels.Block, name string) error {
	if name == environments.Data {
		return nil
	}
	all, err := c.cfg.Source.Locked(name)
	if err != nil {
		return err
	}
	for _, d := range all {
		refuses := c.policy().Denies
		if slices.ContainsFunc(b.Dependencies, func(r wheels.Requirement) bool { return r.Name == d.Name }) {
			refuses = c.policy().Allows
		}
		if err := refuses(d.Name, d.Version); err != nil {
			return err
		}
	}
	return nil
}

// add makes the settings and the lock of an environment for a block, and returns its name.
func (c *Chooser) add(ctx context.Context, b *wheels.Block, slow func(), p runtime.Progress) (string, error) {
	var wanted []string
	for _, d := range b.Dependencies {
		wanted = append(wanted, d.Text)
	}
	slices.Sort(wanted)
	sum := sha256.Sum256([]byte(strings.Join(wanted, "\n")))
	name := environments.Auto + hex.EncodeToString(sum[:5])
	return name, c.lock(ctx, name, wanted, slow, p)
}

// lock makes the settings and the lock of an environment.
func (c *Chooser) lock(ctx context.Context, name string, wanted []string, slow func(),
	p runtime.Progress) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	slow()
	if err := c.cfg.Ready(ctx, p); err != nil {
		return err
	}
	p("choosing versions of " + strings.Join(wanted, ", "))
	return c.cfg.Source.Add(ctx, name, wanted)
}

// refusal says that the policy doesn't let an environment be built for code.
type refusal struct {
	missing *environments.MissingError
	err     error
}

func (e *refusal) Error() string {
	return fmt.Sprintf("%v; none may be built for code: %v", e.missing, e.err)
}

func (e *refusal) Unwrap() error { return e.err }

// Hint names the next step for a person.
func (e *refusal) Hint() string { return e.missing.Hint() }

// forRuns returns an environment as the sandbox takes it; nil for the zero one.
func forRuns(env environments.Environment) *sandbox.Environment {
	if env.Image.ID == "" {
		return nil
	}
	e := &sandbox.Environment{Name: env.Name, Image: env.Image, Path: environments.Path, Ahead: env.Imports,
		Limits: env.Limits}
	for _, d := range env.Distributions {
		e.Modules = append(e.Modules, d.Imports...)
	}
	return e
}
