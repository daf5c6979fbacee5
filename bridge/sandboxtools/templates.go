package sandboxtools

import (
	"cmp"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// disk is the size of /workspace in a sandbox, in MiB.
const disk = 128

const createTemplate = "sandbox_template_create"

func templateTools() []tool {
	return []tool{
		{"sandbox_template_list", "List templates", "List the templates for sandbox_create: the Python packages " +
			"that a sandbox has.",
			[]field{{"name_prefix", "string", "", false}}, []field{{"templates", "objects", "", true}},
			hints(true, false, true), (*call).templates},
		{createTemplate, "Create a template",
			"Make a template with Python packages, which may take minutes. It is ready then.",
			[]field{{"name", "string", "", true}, {"from", "string", "base", false},
				{"packages", "strings", `such as "pandas>=2"`, false},
				{"run_steps", "strings", `only "pip install NAME…"`, false}},
			[]field{{"template", "object", "", true}}, hints(false, false, false), (*call).newTemplate},
	}
}

// templateName returns the name of a sandbox's template.
func templateName(e *sandbox.Environment) string {
	if e == nil {
		return packages.Base
	}
	return e.Name
}

// template is one in results.
type template struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Status   string   `json:"status"` // ready: others aren't listed
	CPUs     float64  `json:"vcpu"`
	Memory   int64    `json:"memoryMib"`
	Disk     int      `json:"diskMib"`
	Packages []string `json:"packages"`
}

func (c *call) shown(t packages.Template) template {
	s := template{ID: t.Name, Name: t.Name, Status: "ready", Disk: disk, Packages: t.Packages,
		CPUs:   cmp.Or(t.Limits.CPUs, c.cfg.Limits.CPUs, float64(goruntime.NumCPU())),
		Memory: cmp.Or(t.Limits.Memory, c.cfg.Limits.Memory) >> 20}
	if s.Packages == nil {
		s.Packages = []string{}
	}
	return s
}

func (c *call) templates() (any, error) {
	prefix := c.text("name_prefix")
	if c.wrong != nil {
		return nil, c.wrong
	}
	built, err := c.cfg.Templates.Built(c.ctx, c.caller.Progress)
	if err != nil {
		return nil, err
	}
	all := []template{}
	for _, t := range append([]packages.Template{{Name: packages.Base}}, built...) {
		if strings.HasPrefix(t.Name, prefix) {
			all = append(all, c.shown(t))
		}
	}
	return map[string]any{"templates": all}, nil
}

func (c *call) newTemplate() (any, error) {
	name, from, wanted := c.text("name"), c.text("from"), c.words("packages")
	for _, step := range c.words("run_steps") {
		names, err := installed(step)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, names...)
	}
	if from != "" && from != packages.Base {
		c.fail(`argument "from" must be %q: a template has the packages that are named, and those that they need`,
			packages.Base)
	}
	if len(wanted) == 0 {
		c.fail(`argument "packages" is missing: name the Python packages that the template is to have`)
	}
	if c.wrong != nil {
		return nil, c.wrong
	}
	t, err := c.cfg.Templates.Create(c.ctx, name, wanted, c.pass, c.caller.Progress)
	if err != nil {
		return nil, err
	}
	return map[string]any{"template": c.shown(t)}, nil
}

// installed returns the packages that a run step installs. No step is run.
func installed(step string) (names []string, err error) {
	words := strings.Fields(step)
	for _, head := range [][]string{{"python3", "-m"}, {"python", "-m"}} {
		if len(words) > 2 && words[0] == head[0] && words[1] == head[1] {
			words = words[2:]
		}
	}
	if len(words) < 3 || words[0] != "pip" && words[0] != "pip3" || words[1] != "install" {
		return nil, args.Errorf("run step %.80q can't be taken: a template is Python packages, and nothing is "+
			`run to make it; the only step is "pip install NAME…"`, step)
	}
	for _, w := range words[2:] {
		if strings.HasPrefix(w, "-") {
			return nil, args.Errorf("run step %.80q: pip's option %.40q can't be taken; name packages alone", step, w)
		}
		names = append(names, strings.Trim(w, `"'`))
	}
	return names, nil
}
