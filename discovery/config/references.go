package config

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// References is how a host fills in references within the texts of an entry. A host that fills in
// nothing has none: its texts stand as they are.
//
// Every host does something else with a variable that isn't set: Claude Code leaves the reference
// as it stands, VS Code puts nothing in its place. The bridge, whose environment may be another one
// than the host's, doesn't use such a server: a literal ${TOKEN} or nothing is never the token. A
// variable that is set to nothing counts as one that isn't set.
type References struct {
	pattern *regexp.Regexp
	resolve func(f *filling, groups []string) (value string, bad Refusal)
}

// filling is one text that is being filled in.
type filling struct {
	reader *Reader
	entry  *Entry
	name   string            // what messages call the text
	env    map[string]string // variables that come before the bridge's own
}

func (f *filling) text(in string) (out string, bad Refusal) {
	refs := f.entry.File.Format.References
	if refs == nil {
		return in, Refusal{}
	}
	var b strings.Builder
	last := 0
	for _, at := range refs.pattern.FindAllStringSubmatchIndex(in, -1) {
		groups := make([]string, len(at)/2)
		for i := range groups {
			if at[2*i] >= 0 {
				groups[i] = in[at[2*i]:at[2*i+1]]
			}
		}
		b.WriteString(in[last:at[0]])
		last = at[1]
		value, bad := refs.resolve(f, groups)
		if bad.Refused() {
			return in, bad
		}
		b.WriteString(value)
		if b.Len() > maxFilled {
			return in, f.refuse(fmt.Sprintf(" is longer than %d bytes when it is filled in", maxFilled),
				"shorten it")
		}
	}
	b.WriteString(in[last:])
	return b.String(), Refusal{}
}

func (f *filling) refuse(what, next string) Refusal { return Refusal{"its " + f.name + what, next} }

// What to do about texts that only the host can fill in, and about variables.
const (
	writeIt = "write the value itself into a file of MCP_BRIDGE_CONFIG"
	setIt   = "set it in the environment that mcp-bridge is started with"
)

// variable returns the value of one, or the default of a reference such as ${VAR:-default}.
func (f *filling) variable(name, defaults, value string) (string, Refusal) {
	if v := f.env[name]; v != "" {
		return v, Refusal{}
	}
	if f.entry.Plugin != nil && f.entry.Plugin.Variables[name] != "" {
		return f.entry.Plugin.Variables[name], Refusal{}
	}
	if v := f.reader.Env.Getenv(name); v != "" {
		return v, Refusal{}
	}
	if defaults != "" {
		return value, Refusal{}
	}
	return "", f.refuse(" needs the variable "+Display(name)+", which is not set here", setIt)
}

// file returns what a file holds, without blanks around it. A path counts from the home directory
// after ~, else from the directory of the entry's file.
func (f *filling) file(name string) (string, Refusal) {
	r := f.reader
	p := r.Clean(name)
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		p = r.Clean(r.Env.Home + "/" + rest)
	} else if p == "" {
		p = r.Clean(path.Join(path.Dir(r.Clean(f.entry.Source.Path)), name))
	}
	if p == "" {
		return "", f.refuse(" takes its value from a file whose path isn't absolute", "write the whole path")
	}
	text, bad := f.entry.read(r, p)
	if bad.Refused() {
		return "", f.refuse(" takes its value from "+Show(r.Native(p))+", and of that: "+bad.Reason, bad.Next)
	}
	return strings.TrimSpace(text), Refusal{}
}

// read reads a file that the entry takes values from.
func (e *Entry) read(r *Reader, p string) (string, Refusal) {
	e.Files = append(e.Files, p)
	text, err := r.value(p)
	bad := Unreadable(err, true)
	if missing(err) {
		bad.Next = "make it, or take its name out"
	}
	return text, bad
}

// only refuses a reference that the host alone can fill in.
func (f *filling) only(what string) Refusal {
	return f.refuse(" asks for "+what+", which only "+f.entry.Source.Host+" can fill in", writeIt)
}

func pattern(text string, resolve func(f *filling, g []string) (string, Refusal)) *References {
	return &References{regexp.MustCompile(text), resolve}
}

// The ways of hosts to write references.
var (
	// Braces is ${VAR} and ${VAR:-default}; $VAR is no reference.
	Braces = pattern(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`,
		func(f *filling, g []string) (string, Refusal) {
			return f.variable(g[1], g[2], g[3])
		})

	// Options is Braces and ${user_config.NAME}, an option of a plugin.
	Options = pattern(`\$\{(user_config\.)?([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`,
		func(f *filling, g []string) (string, Refusal) {
			if g[1] == "" {
				return f.variable(g[2], g[3], g[4])
			}
			if v, ok := f.entry.Plugin.Option(g[2]); ok {
				return v, Refusal{}
			}
			return "", f.refuse(" needs the plugin's option "+Display(g[2])+", which isn't in Claude Code's "+
				"settings: "+
				"it isn't set, or kept where nothing else can read it", "list the server in a file of "+
				"MCP_BRIDGE_CONFIG, with the value")
		})

	// Dollars is Braces and $VAR.
	Dollars = pattern(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\})`,
		func(f *filling, g []string) (string, Refusal) {
			return f.variable(g[1]+g[2], g[3], g[4])
		})

	// Shell is Dollars and what else a shell expands, which the bridge doesn't run.
	Shell = pattern("\\$(?:([A-Za-z_][A-Za-z0-9_]*)|\\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\\}|[({])|`",
		func(f *filling, g []string) (string, Refusal) {
			if g[1]+g[2] == "" {
				return "", f.refuse(" has a command or an expansion of a shell in it, "+
					"which the bridge doesn't run",
					writeIt)
			}
			return f.variable(g[1]+g[2], g[3], g[4])
		})

	// Editor is ${env:VAR} and what editors name so.
	Editor = pattern(`\$\{([^}]*)\}`, fillEditor)

	// Prefixed is ${env:VAR} and nothing else.
	Prefixed = pattern(`\$\{(env):([^}]*)\}`, fillPrefixed)

	// PrefixedFiles is ${env:VAR} and ${file:path}.
	PrefixedFiles = pattern(`\$\{(env|file):([^}]*)\}`, fillPrefixed)

	// Curly is {env:VAR} and {file:path}; ${VAR} is no reference.
	Curly = pattern(`\{(env|file):([^}]*)\}`, fillPrefixed)

	// Templates is ${{ secrets.VAR }}.
	Templates = pattern(`\$\{\{\s*([^}]*?)\s*\}\}`, func(f *filling, g []string) (string, Refusal) {
		if name, ok := strings.CutPrefix(g[1], "secrets."); ok {
			return f.variable(name, "", "")
		}
		return "", f.only("${{ … }}")
	})

	// Undocumented is of hosts of which it isn't known whether they fill in anything.
	Undocumented = pattern(`\$\{[^}]*\}`, func(f *filling, _ []string) (string, Refusal) {
		return "", f.refuse(" has a ${…} in it, and what "+f.entry.Source.Host+" makes of that isn't known",
			"write the value itself")
	})
)

// ExpandBraces fills in a text as Braces has it; what isn't set and has no default stays as it is.
func ExpandBraces(text string, getenv func(string) string) string {
	return Braces.pattern.ReplaceAllStringFunc(text, func(ref string) string {
		m := Braces.pattern.FindStringSubmatch(ref)
		if v := getenv(m[1]); v != "" {
			return v
		}
		if m[2] != "" {
			return m[3]
		}
		return ref
	})
}

func fillPrefixed(f *filling, g []string) (string, Refusal) {
	if g[1] == "file" {
		return f.file(g[2])
	}
	return f.variable(g[2], "", "")
}

func fillEditor(f *filling, g []string) (string, Refusal) {
	env := f.reader.Env
	kind, name, _ := strings.Cut(g[1], ":")
	switch kind {
	case "env":
		return f.variable(name, "", "")
	case "userHome":
		return env.Home, Refusal{}
	case "pathSeparator", "/":
		return f.reader.Native("/"), Refusal{}
	case "workspaceFolder", "workspaceFolderBasename":
		if env.Dir == "" {
			return "", f.refuse(" is about the workspace, and there is no working directory",
				"write the path itself")
		}
		if kind == "workspaceFolder" {
			return env.Dir, Refusal{}
		}
		return path.Base(f.reader.Clean(env.Dir)), Refusal{}
	case "input":
		return "", f.refuse(" asks for an input of "+f.entry.Source.Host+", which nothing else can read",
			writeIt)
	}
	return "", f.only("${" + Display(kind) + "}")
}
