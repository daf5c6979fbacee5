package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// environmentsLimit bounds the bytes of all environments on the engine's disk, without base images.
const environmentsLimit = 8 << 30

// environments returns the environments of this configuration.
func (p *parts) environments() *environments.Environments {
	cfg := environments.Config{
		Driver: p.driver, Images: p.cfg.Images(), User: p.cfg.ContainerUser, Owner: runtime.Self(),
		Dir:   p.cfg.EnvironmentsDir(),
		Trust: trust.System(), Limit: environmentsLimit, Log: p.log,
	}
	rules := p.policy.Packages()
	cfg.Index, cfg.MinAge = rules.Index, rules.MinAge
	if dir := settings.CacheDir(); dir != "" {
		cfg.CacheDir = filepath.Join(dir, "environments")
	}
	if p.guard != nil {
		cfg.File = p.guard.File
	}
	return environments.New(cfg)
}

func envCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Show, build and remove environments: the packages that code can import",
		Long: "Show, build and remove environments: the packages that code can import. data comes with the\n" +
			"program; yours are files NAME.toml in mcp-bridge/environments of your configuration directory, or\n" +
			"in MCP_BRIDGE_ENVS. See docs/environments.md.",
	}
	var asJSON, files bool
	var file string
	list := envAction(a.io, "list", "Show all environments, built or not", cobra.NoArgs,
		func(c envCommands, ctx context.Context, _ []string) error { return c.list(ctx, asJSON) })
	list.Flags().BoolVar(&asJSON, "json", false, "print one JSON document instead of the table")
	build := envAction(a.io, "build NAME", "Build an environment from its lock", cobra.ExactArgs(1),
		func(c envCommands, ctx context.Context, args []string) error { return c.build(ctx, args[0]) })
	add := envAction(a.io, "add NAME PACKAGE…",
		"Add packages to an environment, or make it, choose versions with uv, and build it", cobra.MinimumNArgs(2),
		func(c envCommands, ctx context.Context, args []string) error { return c.add(ctx, args[0], args[1:]) })
	lock := envAction(a.io, "lock NAME",
		"Choose the versions of an environment's packages again, with uv; none is younger than a week",
		cobra.ExactArgs(1),
		func(c envCommands, ctx context.Context, args []string) error { return c.lock(ctx, args[0]) })
	remove := envAction(a.io, "remove NAME", "Remove an environment's image from the engine", cobra.ExactArgs(1),
		func(c envCommands, ctx context.Context, args []string) error { return c.remove(ctx, args[0], files) })
	remove.Flags().BoolVar(&files, "files", false, "remove its settings, list of packages and lock too")
	export := envAction(a.io, "export NAME", "Write an environment's image to a file, for another machine",
		cobra.ExactArgs(1),
		func(c envCommands, ctx context.Context, args []string) error { return c.export(ctx, args[0], file) })
	export.Flags().StringVar(&file, "oci", "", "the file, an OCI image archive")
	export.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if file == "" {
			return exit.Usage(fmt.Errorf("%s lacks --oci FILE, the file to write", cmd.CommandPath()))
		}
		return nil
	}
	cmd.AddCommand(list, build, add, lock, remove, export)
	return cmd
}

// envCommands are what the user does with environments.
type envCommands struct {
	*parts
	io *terminal.Streams
}

// envAction returns a command that runs f with the wired program.
func envAction(io *terminal.Streams, use, short string, args cobra.PositionalArgs,
	f func(envCommands, context.Context, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, ValidArgsFunction: completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withParts(cmd.Context(), io.Err, once,
				func(ctx context.Context, p *parts) error { return f(envCommands{p, io}, ctx, args) })
		}}
}

// completeEnvironments completes the name of an environment; the engine isn't asked.
func completeEnvironments(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if cfg, err := settings.Read(); err == nil && len(args) == 0 {
		for _, d := range (&parts{cfg: cfg}).environments().Definitions() {
			out = append(out, d.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// build builds an environment, and pulls its base image if that is missing.
func (c envCommands) build(ctx context.Context, name string) error {
	if err := c.base(ctx, name); err != nil {
		return err
	}
	bar := c.io.Err.Bar()
	env, err := c.environments().Build(ctx, name, func(s environments.Step) { bar.Show(s.Percent, s.Text) })
	bar.End()
	if err != nil {
		return err
	}
	fmt.Fprintln(c.io.Out, environmentLine(env, time.Now()))
	for _, d := range env.Distributions {
		if len(d.LeftOut) > 0 {
			c.io.Say(fmt.Sprintf("left out of %s, since Python would run it at every start: %s", d.Name,
				strings.Join(d.LeftOut, ", ")))
		}
	}
	return nil
}

// base pulls the base image of an environment if it is missing.
func (c envCommands) base(ctx context.Context, name string) error {
	for _, d := range c.environments().Definitions() {
		if d.Name != name || d.Image == "" {
			continue
		}
		_, has, err := c.driver.FindImage(ctx, d.Image)
		if err == nil && !has {
			_, err = c.driver.PullImage(ctx, d.Image, c.io.Say)
		}
		return err
	}
	_, _, err := c.sandbox.Look(ctx, c.io.Say)
	return err
}

func (c envCommands) lock(ctx context.Context, name string) error {
	if err := c.base(ctx, name); err != nil {
		return err
	}
	if err := c.environments().Lock(ctx, name); err != nil {
		return err
	}
	c.io.Say("locked; next: mcp-bridge env build " + name)
	return nil
}

func (c envCommands) add(ctx context.Context, name string, packages []string) error {
	switch {
	case name == environments.Data:
		return exit.Usage(errors.New("what data has comes with the program; make an environment of another name"))
	case !environments.ValidName(name):
		return exit.Usage(environments.ErrName)
	}
	if err := c.base(ctx, name); err != nil {
		return err
	}
	c.io.Say("choosing versions")
	if err := c.environments().Add(ctx, name, packages); err != nil {
		return err
	}
	return c.build(ctx, name)
}

func (c envCommands) remove(ctx context.Context, name string, files bool) error {
	e := c.environments()
	err := e.Remove(ctx, name)
	if err == nil {
		fmt.Fprintln(c.io.Out, "removed the image of "+name)
	}
	if unknown, ok := errors.AsType[*environments.UnknownError](err); ok {
		return exit.Usage(errors.New(unknown.Error())) // without the hint to make one
	}
	if !files || err != nil && !errors.As(err, new(*environments.NotBuiltError)) {
		return err
	}
	if err := e.Delete(name); err != nil {
		return err
	}
	fmt.Fprintf(c.io.Out, "%s has no settings, list of packages or lock any more\n", name)
	return nil
}

// export writes an image to a temporary file beside the given one, which must not exist, and
// then renames it.
func (c envCommands) export(ctx context.Context, name, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return exit.Usage(fmt.Errorf("%s exists already; remove it, or name another file", file))
	}
	e := c.environments()
	env, err := e.ByName(ctx, name)
	if err != nil {
		return err
	}
	labels, err := e.WriteLabels(env)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer c.guard.File(f.Name())()
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), file)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return
		}
		fmt.Fprintln(c.io.Out, "wrote "+file)
		if labels != "" {
			fmt.Fprintf(c.io.Out, "wrote %s, which a cluster needs beside %s.toml: docs/kubernetes.md\n", labels, name)
		}
	}()
	// By its name: what is loaded without one is no environment.
	if err := c.driver.SaveImage(ctx, env.Image.Ref, f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	layout, err := isLayout(f)
	if err == nil && !layout {
		c.io.Say("this engine writes docker's own archive, not an OCI layout: docker load and podman load read it")
	}
	return err
}

// isLayout reports whether an archive is an OCI image layout.
func isLayout(r io.Reader) (bool, error) {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil || filepath.Clean(h.Name) == "oci-layout" {
			return err == nil, err
		}
	}
}

// environmentJSON describes an environment to a program.
type environmentJSON struct {
	Name     string            `json:"name"`
	State    string            `json:"state"`
	Why      string            `json:"why,omitempty"`
	Image    string            `json:"image,omitempty"`
	Layer    string            `json:"layer,omitempty"`
	Bytes    int64             `json:"bytes,omitempty"`
	Built    *time.Time        `json:"built,omitempty"`
	Python   string            `json:"python,omitempty"`
	Packages map[string]string `json:"packages,omitempty"`
	Slow     string            `json:"slow,omitempty"` // what has no bytecode
	File     string            `json:"file,omitempty"`
}

// States of an environment.
const (
	stateBuilt    = "built"
	stateOutdated = "outdated" // it can be used all the same
	stateNotBuilt = "not built"
	stateBroken   = "broken" // its settings can't be read
)

// envRows returns all environments that are built or defined, by name.
func envRows(built []environments.Environment, known []environments.Definition) (rows []environmentJSON) {
	of := map[string]environments.Environment{}
	for _, env := range built {
		of[env.Name] = env
		named := func(d environments.Definition) bool { return d.Name == env.Name }
		if !slices.ContainsFunc(known, named) {
			known = append(known, environments.Definition{Name: env.Name})
		}
	}
	for _, d := range known {
		r := environmentJSON{Name: d.Name, State: stateNotBuilt, File: d.File}
		if env, is := of[d.Name]; is {
			r.State, r.Why, r.Image, r.Layer, r.Bytes, r.Built = stateBuilt, env.Outdated, env.Image.ID, env.Layer,
				env.Size, &env.Built
			r.Python, r.Packages, r.Slow = env.Interpreter.String(), map[string]string{}, withoutBytecode(env)
			for _, p := range env.Distributions {
				r.Packages[p.Name] = p.Version
			}
			if env.Outdated != "" {
				r.State = stateOutdated
			}
		}
		if d.Err != nil {
			r.State, r.Why = stateBroken, d.Err.Error()
		}
		rows = append(rows, r)
	}
	return rows
}

func (c envCommands) list(ctx context.Context, asJSON bool) error {
	e := c.environments()
	built, err := e.List(ctx)
	if err != nil {
		return err
	}
	rows := envRows(built, e.Definitions())
	if asJSON {
		return terminal.JSON(c.io.Out, rows)
	}
	table := [][]string{{"NAME", "STATE", "SIZE", "AGE", "PACKAGES", "LAYER"}}
	for _, r := range rows {
		row := []string{r.Name, r.State, "", "", "", ""}
		if r.Image != "" {
			row = []string{r.Name, r.State, units.HumanSize(float64(r.Bytes)), age(*r.Built, time.Now()),
				strconv.Itoa(len(r.Packages)), short(r.Layer)}
		}
		table = append(table, row)
	}
	s := c.io.Out.Screen()
	s.Table(terminal.Table{Rows: table, Spare: 5, Word: 1})
	for _, r := range rows {
		if r.Slow != "" {
			s.Lines(0, 2, fmt.Sprintf("%s: %s; runs that import those compile them", r.Name, r.Slow))
		}
		switch {
		case r.State == stateOutdated:
			s.Lines(0, 2, fmt.Sprintf("%s: %s; next: mcp-bridge env build %s", r.Name, r.Why, r.Name))
		case r.Why != "":
			s.Lines(0, 2, fmt.Sprintf("%s: %s", r.Name, r.Why))
		}
	}
	return nil
}

// short returns enough of a digest to tell it from others.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 12)]
}

// environmentLine describes an environment that is built, in one line.
func environmentLine(env environments.Environment, now time.Time) string {
	line := fmt.Sprintf("%s, %s, %s, %s, layer %s", env.Image.Ref, units.HumanSize(float64(env.Size)),
		text.Plural(len(env.Distributions), "package"), age(env.Built, now), short(env.Layer))
	if slow := withoutBytecode(env); slow != "" {
		line += ", " + slow
	}
	return line
}

// withoutBytecode says how many sources have none; "" if all have.
func withoutBytecode(env environments.Environment) string {
	if env.Bytecode.Without == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d sources without bytecode", env.Bytecode.Without, env.Bytecode.Sources)
}

// packages returns the chooser of environments for code.
func (p *parts) packages() *packages.Chooser {
	return packages.New(packages.Config{
		Source: p.environments(), Default: p.cfg.Env, Policy: p.policy.Packages(), Log: p.log,
		Ready: func(ctx context.Context, progress runtime.Progress) error {
			if p.guard != nil { // a build starts containers
				if err := p.guard.Begin(); err != nil {
					return err
				}
			}
			_, _, err := p.sandbox.Look(ctx, progress)
			return err
		},
	})
}
