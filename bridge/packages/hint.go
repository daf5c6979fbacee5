package packages

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/environments"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

var noModule = regexp.MustCompile(`^No module named '([A-Za-z0-9_]+)`)

// noLibrary matches the loader's message, which packages wrap in text of their own.
var noLibrary = regexp.MustCompile(`\b(lib[A-Za-z0-9_+-]+\.so[0-9.]*): cannot open shared object file`)

// imports maps modules to packages of data whose names differ: they are known before it is built.
var imports = map[string]string{
	"PIL": "pillow", "bs4": "beautifulsoup4", "yaml": "pyyaml", "dateutil": "python-dateutil",
}

// Hint returns the next step if code that ran in e, which may be nil, lacked a module or a library:
// the comment that gets it an environment with the module, or how e gets the library. It returns ""
// if no environment has the module, or the code failed otherwise.
func (c *Chooser) Hint(ctx context.Context, code string, e *sandbox.Environment, f *sandbox.Failure) string {
	if c == nil || f == nil {
		return ""
	}
	if m := noLibrary.FindStringSubmatch(f.Message); m != nil && f.Type == "ImportError" && e != nil {
		return fmt.Sprintf("the base image of the environment %s lacks %s; the user can set MCP_BRIDGE_IMAGE to "+
			"another, or make one (mcp-bridge image build), and then type mcp-bridge env build %[1]s", e.Name, m[1])
	}
	if f.Type != "ModuleNotFoundError" {
		return ""
	}
	m := noModule.FindStringSubmatch(f.Message)
	if m == nil {
		return ""
	}
	built, err := c.cfg.Source.List(ctx)
	if err != nil {
		return ""
	}
	var wanted []string // what the code asked for already
	if b, err := block(code); err == nil && b != nil {
		for _, d := range b.Dependencies {
			wanted = append(wanted, d.Text)
		}
	}
	for _, name := range distributions(m[1], built) {
		all := append(slices.Clone(wanted), name)
		if where := c.having(ctx, all); where != "" {
			quoted := make([]string, 0, len(all))
			for _, text := range all {
				quoted = append(quoted, fmt.Sprintf("%q", text))
			}
			return fmt.Sprintf("the environment %s has %s; to run in it, begin the code with these three lines:\n"+
				"# /// script\n# dependencies = [%s]\n# ///\n", where, m[1], strings.Join(quoted, ", "))
		}
	}
	return ""
}

// distributions returns the packages that code may mean by a module's name.
func distributions(module string, built []environments.Environment) (names []string) {
	for _, env := range built {
		for _, d := range env.Distributions {
			if slices.Contains(d.Imports, module) && !slices.Contains(names, d.Name) {
				names = append(names, d.Name)
			}
		}
	}
	if name, ok := imports[module]; ok {
		return append(names, name)
	}
	return append(names, wheels.Normalize(module))
}

// having returns the environment that code with these dependencies would get; "" for none.
func (c *Chooser) having(ctx context.Context, dependencies []string) string {
	b := &wheels.Block{}
	for _, text := range dependencies {
		r, err := wheels.ParseRequirement(text)
		if err != nil {
			return ""
		}
		b.Dependencies = append(b.Dependencies, r)
	}
	env, err := c.cfg.Source.Find(ctx, b)
	var missing *environments.MissingError
	ok := errors.As(err, &missing)
	switch {
	case err == nil:
		return env.Name
	case ok && slices.Contains(missing.Buildable, environments.Data):
		return environments.Data
	case ok && c.policy().OnDemand && len(missing.Buildable) > 0:
		return missing.Buildable[0]
	}
	return ""
}
