package discovery

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// dialect is how a host fills in references within the texts of an entry. Its zero value is of a host that fills in nothing:
// its texts stand as they are.
//
// Every host does something else with a variable that isn't set: Claude Code leaves the reference as it stands, VS Code puts
// nothing in its place. The bridge, whose environment may be another one than the host's, doesn't use such a server: a
// literal ${TOKEN} or nothing is never the token. A variable that is set to nothing counts as one that isn't set.
type dialect struct {
	ref  *regexp.Regexp
	fill func(f *filling, groups []string) (value string, bad refusal)
}

// filling is one text that is being filled in.
type filling struct {
	scan *scan
	row  row
	src  Source
	name string            // what messages call the text
	env  map[string]string // variables that come before the bridge's own
}

const maxFilled = 1 << 20 // bytes of one text, so that many references to a large file stay bounded

func (f *filling) text(in string) (out string, bad refusal) {
	d := f.row.form.dialect
	if d.ref == nil {
		return in, refusal{}
	}
	var b strings.Builder
	last := 0
	for _, at := range d.ref.FindAllStringSubmatchIndex(in, -1) {
		groups := make([]string, len(at)/2)
		for i := range groups {
			if at[2*i] >= 0 {
				groups[i] = in[at[2*i]:at[2*i+1]]
			}
		}
		b.WriteString(in[last:at[0]])
		last = at[1]
		value, bad := d.fill(f, groups)
		if bad != (refusal{}) {
			return in, bad
		}
		b.WriteString(value)
		if b.Len() > maxFilled {
			return in, refusal{fmt.Sprintf("its %s is longer than %d bytes when it is filled in", f.name, maxFilled), "shorten it"}
		}
	}
	b.WriteString(in[last:])
	return b.String(), refusal{}
}

// variable is the value of one, or of a default where there is one.
func (f *filling) variable(name string, fallback *string) (string, refusal) {
	if v := f.env[name]; v != "" {
		return v, refusal{}
	}
	if v := f.row.form.given[name]; v != "" {
		return v, refusal{}
	}
	if v := f.scan.env.Getenv(name); v != "" {
		return v, refusal{}
	}
	if fallback != nil {
		return *fallback, refusal{}
	}
	return "", refusal{"its " + f.name + " needs the variable " + display(name) + ", which is not set here", "set it in the environment that mcp-bridge is started with"}
}

// file is what a file holds, without blanks around it.
func (f *filling) file(name string) (string, refusal) {
	p := f.scan.places.clean(f.path(name))
	if p == "" {
		return "", refusal{"its " + f.name + " takes its value from a file whose path isn't absolute", "write the whole path"}
	}
	text, err := f.scan.value(p)
	if err != nil {
		reason, next := unreadable(err, true)
		if missing(err) {
			next = "make it, or take its name out"
		}
		return "", refusal{"its " + f.name + " takes its value from " + show(f.scan.places.native(p)) + ", and of that: " + reason, next}
	}
	return strings.TrimSpace(text), refusal{}
}

// path is a path in a host's file: from the home directory after ~, else from the directory of that file.
func (f *filling) path(p string) string {
	s := f.scan
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return s.env.Home + "/" + rest
	}
	if s.places.clean(p) != "" {
		return p
	}
	return path.Join(path.Dir(s.places.clean(f.src.Path)), p)
}

// only is a reference that nobody but the host can fill in.
func (f *filling) only(what string) refusal {
	return refusal{"its " + f.name + " asks for " + what + ", which nobody but " + f.row.host + " can fill in", "write the value itself into a file of MCP_BRIDGE_CONFIG"}
}

// The dialects, as facts about the hosts have them.
var (
	// braces is ${VAR} and ${VAR:-default}; $VAR is no reference. Of Claude Code, Kiro, Amp, Copilot CLI, and of our own files.
	braces = dialect{regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`), func(f *filling, g []string) (string, refusal) {
		return f.variable(g[1], fallback(g[2], g[3]))
	}}

	// options is ${user_config.NAME} too. Of Claude Code's plugins.
	options = dialect{regexp.MustCompile(`\$\{(user_config\.)?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`), func(f *filling, g []string) (string, refusal) {
		if g[1] == "" {
			return f.variable(g[2], fallback(g[3], g[4]))
		}
		if v, ok := f.row.form.option(g[2]); ok {
			return v, refusal{}
		}
		return "", refusal{"its " + f.name + " needs the plugin's option " + display(g[2]) + ", which isn't in Claude Code's settings: it isn't set, or kept where nobody else can read it",
			"list the server in a file of MCP_BRIDGE_CONFIG, with the value"}
	}}

	// dollars is $VAR too. Of Gemini CLI.
	dollars = dialect{regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\})`), func(f *filling, g []string) (string, refusal) {
		return f.variable(g[1]+g[2], fallback(g[3], g[4]))
	}}

	// shellWords is what a shell has, commands included. Of Crush.
	shellWords = dialect{regexp.MustCompile("\\$(?:([A-Za-z_][A-Za-z0-9_]*)|\\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\\}|[({])|`"), func(f *filling, g []string) (string, refusal) {
		if g[1]+g[2] == "" {
			return "", refusal{"its " + f.name + " has a command or an expansion of a shell in it, which the bridge doesn't run", "write the value itself into a file of MCP_BRIDGE_CONFIG"}
		}
		return f.variable(g[1]+g[2], fallback(g[3], g[4]))
	}}

	// editor is ${env:VAR} and the editor's own. Of VS Code, Cursor and Visual Studio.
	editor = dialect{regexp.MustCompile(`\$\{([^}]*)\}`), fillEditor}

	// prefixed is ${env:VAR} and nothing else. Of Cline and Roo Code.
	prefixed = dialect{regexp.MustCompile(`\$\{env:([^}]*)\}`), func(f *filling, g []string) (string, refusal) { return f.variable(g[1], nil) }}

	// prefixedFiles is ${env:VAR} and ${file:path}. Of Windsurf and Devin.
	prefixedFiles = dialect{regexp.MustCompile(`\$\{(env|file):([^}]*)\}`), fillPrefixed}

	// curly is {env:VAR} and {file:path}; ${VAR} is no reference. Of OpenCode.
	curly = dialect{regexp.MustCompile(`\{(env|file):([^}]*)\}`), fillPrefixed}

	// templates is ${{ secrets.VAR }}. Of Continue.
	templates = dialect{regexp.MustCompile(`\$\{\{\s*([^}]*?)\s*\}\}`), func(f *filling, g []string) (string, refusal) {
		if name, ok := strings.CutPrefix(g[1], "secrets."); ok {
			return f.variable(name, nil)
		}
		return "", f.only("${{ … }}")
	}}

	// undocumented is of hosts of which it isn't known whether they fill in anything.
	undocumented = dialect{regexp.MustCompile(`\$\{[^}]*\}`), func(f *filling, _ []string) (string, refusal) {
		return "", refusal{"its " + f.name + " has a ${…} in it, and what " + f.row.host + " makes of that isn't known", "write the value itself"}
	}}
)

func fallback(with, value string) *string {
	if with == "" {
		return nil
	}
	return &value
}

func fillPrefixed(f *filling, g []string) (string, refusal) {
	if g[1] == "file" {
		return f.file(g[2])
	}
	return f.variable(g[2], nil)
}

func fillEditor(f *filling, g []string) (string, refusal) {
	s := f.scan
	kind, name, _ := strings.Cut(g[1], ":")
	switch kind {
	case "env":
		return f.variable(name, nil)
	case "userHome":
		return s.env.Home, refusal{}
	case "pathSeparator", "/":
		return s.places.native("/"), refusal{}
	case "workspaceFolder", "workspaceFolderBasename":
		if s.env.Dir == "" {
			return "", refusal{"its " + f.name + " is about the workspace, and there is no working directory", "write the path itself"}
		}
		if kind == "workspaceFolder" {
			return s.env.Dir, refusal{}
		}
		return path.Base(s.places.clean(s.env.Dir)), refusal{}
	case "input":
		return "", refusal{"its " + f.name + " asks for an input of " + f.row.host + ", which nobody else can read", "write the value itself into a file of MCP_BRIDGE_CONFIG"}
	}
	return "", f.only("${" + display(kind) + "}")
}
