package config

import (
	"cmp"
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
//
// The pattern's groups are kind, name (of a variable, or what the kind asks for), a default with
// its sign, and a second name where a reference may have no braces.
type References struct{ pattern *regexp.Regexp }

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
		group := func(name string) string {
			i := refs.pattern.SubexpIndex(name)
			if i < 0 || at[2*i] < 0 {
				return ""
			}
			return in[at[2*i]:at[2*i+1]]
		}
		b.WriteString(in[last:at[0]])
		last = at[1]
		value, bad := f.resolve(group("kind"), group("name")+group("bare"), group("default"))
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
	keepIt  = "keep it by mcp-bridge secret set NAME, and have ${secret:NAME} in a file of ~/.config/mcp/servers"
	setIt   = "set it in the environment that mcp-bridge is started with"
)

// resolve returns what a reference stands for.
func (f *filling) resolve(kind, name, defaults string) (string, Refusal) {
	env, host := f.reader.Env, f.entry.Source.Host
	switch kind {
	case "":
		if name == "" {
			kind = "…"
			break
		}
		return f.variable(name, defaults)
	case "env", "secrets":
		return f.variable(name, defaults)
	case "file":
		return f.file(name)
	case "user_config":
		if v, ok := f.entry.Plugin.Option(name); ok {
			f.entry.take(v)
			return v, Refusal{}
		}
		return "", f.refuse(" needs the plugin's option "+Display(name)+", which isn't in Claude Code's "+
			"settings: it isn't set, or kept where nothing else can read it",
			"list the server in a file of MCP_BRIDGE_CONFIG, with the value")
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
		return "", f.refuse(" asks for an input of "+host+", which nothing else can read", keepIt)
	case "{":
		return "", f.refuse(" has a ${…} in it, and what "+host+" makes of that isn't known",
			"write the value itself")
	case "`", "$(", "${":
		return "", f.refuse(" has a command or an expansion of a shell in it, which the bridge doesn't run",
			writeIt)
	}
	return "", f.refuse(" asks for ${"+Display(kind)+"}, which only "+host+" can fill in", writeIt)
}

// variable returns the value of one, or the default of a reference such as ${VAR:-default}.
func (f *filling) variable(name, defaults string) (string, Refusal) {
	value := f.env[name]
	if value == "" && f.entry.Plugin != nil {
		value = f.entry.Plugin.Variables[name]
	}
	if value == "" {
		value = f.reader.Env.Getenv(name)
	}
	if value == "" && defaults == "" {
		return "", f.refuse(" needs the variable "+Display(name)+", which is not set here", setIt)
	}
	return cmp.Or(value, strings.TrimPrefix(defaults, ":-")), Refusal{}
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
	e.take(text)
	bad := Unreadable(err, true)
	if missing(err) {
		bad.Next = "make it, or take its name out"
	}
	return text, bad
}

// word is the name of a variable, with the default that may follow it.
const word, fallback = `[A-Za-z_][A-Za-z0-9_]*`, `(?P<default>:-[^}]*)?`

func references(pattern string) *References { return &References{regexp.MustCompile(pattern)} }

// The ways of hosts to write references.
var (
	// Braces is ${VAR} and ${VAR:-default}; $VAR is no reference.
	Braces = references(`\$\{(?P<name>` + word + `)` + fallback + `\}`)

	// Options is Braces and ${user_config.NAME}, an option of a plugin.
	Options = references(`\$\{(?:(?P<kind>user_config)\.)?(?P<name>` + word + `)` + fallback + `\}`)

	// Dollars is Braces and $VAR.
	Dollars = references(`\$(?:(?P<bare>` + word + `)|\{(?P<name>` + word + `)` + fallback + `\})`)

	// Shell is Dollars and what else a shell expands, which the bridge doesn't run.
	Shell = references(`\$(?P<bare>` + word + `)|\$\{(?P<name>` + word + `)` + fallback + `\}` +
		"|(?P<kind>`|\\$[({])")

	// Editor is ${env:VAR} and what editors name so.
	Editor = references(`\$\{(?P<kind>[^}:]*)(?::(?P<name>[^}]*))?\}`)

	// Prefixed is ${env:VAR} and nothing else.
	Prefixed = references(`\$\{(?P<kind>env):(?P<name>[^}]*)\}`)

	// PrefixedFiles is ${env:VAR} and ${file:path}.
	PrefixedFiles = references(`\$\{(?P<kind>env|file):(?P<name>[^}]*)\}`)

	// Curly is {env:VAR} and {file:path}; ${VAR} is no reference.
	Curly = references(`\{(?P<kind>env|file):(?P<name>[^}]*)\}`)

	// Templates is ${{ secrets.VAR }}.
	Templates = references(`\$\{\{\s*(?:(?P<kind>secrets)\.(?P<name>[^}]*?)|[^}]*?)\s*\}\}`)

	// Undocumented is of hosts of which it isn't known whether they fill in anything.
	Undocumented = references(`\$(?P<kind>\{)[^}]*\}`)
)

// ExpandBraces fills in a text as Braces has it; what isn't set and has no default stays as it is.
func ExpandBraces(text string, getenv func(string) string) string {
	return Braces.pattern.ReplaceAllStringFunc(text, func(ref string) string {
		m := Braces.pattern.FindStringSubmatch(ref)
		if m[2] == "" {
			return cmp.Or(getenv(m[1]), ref)
		}
		return cmp.Or(getenv(m[1]), strings.TrimPrefix(m[2], ":-"))
	})
}
