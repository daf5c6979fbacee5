package packages

import (
	"context"
	"errors"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Template is an environment as callers see it that choose one by its name.
type Template struct {
	Name     string
	Packages []string       // with their versions
	Limits   runtime.Limits // a zero is the bridge's own
}

// Named returns an environment by its name: nil for Base, and for no name the one of code that asks
// for none. It builds none but data and the configured one.
func (c *Chooser) Named(ctx context.Context, name string, slow func(),
	p runtime.Progress) (*sandbox.Environment, error) {
	switch {
	case name == Base, name == "" && c == nil:
		return nil, nil
	case c == nil:
		return nil, args.Errorf("there is no template %.60q; there is %s", name, Base)
	case name == "":
		return c.fallback(ctx, slow, p)
	}
	env, err := c.ask(ctx, slow, p, func() (environments.Environment, error) {
		return c.cfg.Source.ByName(ctx, name)
	})
	switch {
	case errors.As(err, new(*environments.UnknownError)):
		return nil, args.Errorf("there is no template %.60q; sandbox_template_list lists them", name)
	case errors.As(err, new(*environments.NotBuiltError)) && name == environments.Data:
		env, err = c.build(ctx, name, slow, p)
	}
	return forRuns(env), err
}

// Built returns the environments that are built, by name.
func (c *Chooser) Built(ctx context.Context, p runtime.Progress) ([]Template, error) {
	if c == nil {
		return nil, nil
	}
	var all []Template
	_, err := c.ask(ctx, func() {}, p, func() (none environments.Environment, err error) {
		built, err := c.cfg.Source.List(ctx)
		all = nil
		for _, e := range built {
			all = append(all, templateOf(e))
		}
		return none, err
	})
	return all, err
}

func templateOf(e environments.Environment) Template {
	t := Template{Name: e.Name, Limits: e.Limits}
	for _, d := range e.Distributions {
		t.Packages = append(t.Packages, d.Name+"=="+d.Version)
	}
	return t
}

// Create makes and builds an environment with packages, if the policy lets that be done for code.
// It never changes one that is there. The error is an args.Error where the caller can do something.
func (c *Chooser) Create(ctx context.Context, name string, wanted []string, slow func(),
	p runtime.Progress) (Template, error) {
	if c == nil || !c.policy().OnDemand {
		return Template{}, args.Errorf("the user hasn't allowed that templates are made for you. The user can: "+
			"mcp-bridge env add %.60s PACKAGE…, or on_demand = true in [packages] of the policy's file", name)
	}
	if !environments.ValidName(name) || name == Base || name == environments.Data {
		return Template{}, args.Errorf("no template can have the name %.60q: it takes small letters, digits and -",
			name)
	}
	b := &wheels.Block{}
	for _, text := range wanted {
		r, err := wheels.ParseRequirement(text)
		if err == nil {
			err = c.policy().Allows(r.Name, "")
		}
		if err != nil {
			return Template{}, args.Errorf("%v", err)
		}
		b.Dependencies = append(b.Dependencies, r)
	}
	_, err := c.ask(ctx, slow, p,
		func() (environments.Environment, error) { return c.cfg.Source.ByName(ctx, name) })
	switch {
	case err == nil, errors.As(err, new(*environments.NotBuiltError)):
		return Template{}, args.Errorf("there is a template %q already; choose another name", name)
	case !errors.As(err, new(*environments.UnknownError)):
		return Template{}, err
	}
	if err := c.lock(ctx, name, slices.Clone(wanted), slow, p); err != nil {
		return Template{}, err
	}
	if err := c.permits(b, name); err != nil {
		return Template{}, args.Errorf("%v", err)
	}
	env, err := c.build(ctx, name, slow, p)
	if err != nil {
		return Template{}, err
	}
	return templateOf(env), nil
}
