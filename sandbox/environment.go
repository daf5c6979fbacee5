package sandbox

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Environment is an image with packages that a run has beside the standard library. It isn't
// changed once a Request has it.
type Environment struct {
	Name  string // for logs
	Image runtime.Image
	Path  string // the directory with the packages in a container of the image

	// Modules are the names by which code imports the packages. Only these, and modules below them,
	// are ever imported ahead in guests that wait.
	Modules []string
	Ahead   []string // modules that are imported ahead until runs have shown what code imports

	Limits runtime.Limits // memory, PIDs and CPUs; a zero stands for that of Config.Limits
}

// moduleName is the form of a module's name, with the modules that it is part of.
var moduleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// has reports whether name is of a module of e, or may be one below such a module.
func (e *Environment) has(name string) bool {
	top, _, _ := strings.Cut(name, ".")
	return len(name) <= entrypoint.MaxImport && moduleName.MatchString(name) && slices.Contains(e.Modules, top)
}

// modules returns those of the names that are of modules of e, each once.
func (e *Environment) modules(names []string) []string {
	var all []string
	for _, name := range names[:min(len(names), entrypoint.MaxImports)] {
		if e.has(name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// image returns the image that a run's container has.
func (m machine) image() runtime.Image {
	if m.env != nil {
		return m.env.Image
	}
	return m.base
}

// in returns m for the runs of an environment, or of the configured image alone.
func (m machine) in(e *Environment) machine {
	m.env = e
	return m
}

// lacks reports whether err says that the image of the environment is gone. The engine, and runs in
// other images, are not affected by that.
func (m machine) lacks(err error) bool {
	return m.env != nil && errors.As(err, new(*runtime.ImageError))
}

// command returns the command of a container whose guest imports modules ahead.
func (s *Sandbox) command(m machine, ahead []string) []string {
	if m.env == nil {
		return entrypoint.Boot(nil)
	}
	e := &entrypoint.Environment{Path: m.env.Path}
	if len(ahead) > 0 {
		o := bounds(m.facts, s.limits(m.env))
		e.Imports, e.Rlimits, e.Cores, e.Watch = ahead, o.Rlimits, o.Cores, o.Watch
	}
	return entrypoint.Boot(e)
}

// limits returns the limits of a run in e, which may be nil.
func (s *Sandbox) limits(e *Environment) runtime.Limits {
	l := s.cfg.Limits
	if e != nil {
		l.Memory = cmp.Or(e.Limits.Memory, l.Memory)
		l.PIDs = cmp.Or(e.Limits.PIDs, l.PIDs)
		l.CPUs = cmp.Or(e.Limits.CPUs, l.CPUs)
	}
	return l
}

func (n *session) limits() runtime.Limits { return n.sandbox.limits(n.req.Environment) }

// setting returns where a limit is set; name is that of the setting for all runs.
func (n *session) setting(name string) string {
	if n.limits() != n.sandbox.cfg.Limits {
		return "MCP_BRIDGE_" + name + ", or the limits of the environment " + n.req.Environment.Name
	}
	return "MCP_BRIDGE_" + name
}

// name returns the name of e for logs, "" if e is nil.
func (e *Environment) name() string {
	if e == nil {
		return ""
	}
	return e.Name
}
