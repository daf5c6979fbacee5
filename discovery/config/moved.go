package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// OwnEntry is an entry of a file of the bridge's own directory.
type OwnEntry struct {
	Type           string            `json:"type,omitempty"`
	Description    string            `json:"description,omitempty"`
	Command        string            `json:"command,omitempty"`
	Args           []string          `json:"args,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	EnvFile        string            `json:"envFile,omitempty"`
	Dir            string            `json:"cwd,omitempty"`
	URL            string            `json:"url,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	HeadersHelper  string            `json:"headersHelper,omitempty"`
	BearerTokenEnv string            `json:"bearerTokenEnv,omitempty"`
	OAuth          any               `json:"oauth,omitempty"`
	AllowedTools   []string          `json:"allowedTools,omitzero"` // empty, but not nil: none
	DisabledTools  []string          `json:"disabledTools,omitempty"`
}

// JSON returns the entry as it is written.
func (e OwnEntry) JSON() json.RawMessage { return text.JSON(e) }

// hiddenPart stands for what isn't shown.
const hiddenPart = "…"

// plainArgument matches arguments that are no secret: options, and names of packages.
var plainArgument = regexp.MustCompile(`^(-[A-Za-z]|--[A-Za-z-]+|@[a-z0-9-]+/[a-z0-9.-]+(@[a-z0-9.]+)?|` +
	`[a-z-]*mcp[a-z-]*)$`)

// Shown returns the entry as it may be shown. What could be a secret is left out.
func (e OwnEntry) Shown() OwnEntry {
	shown := func(v string) string {
		if reference.MatchString(v) && !strings.Contains(v, ":-") {
			return v
		}
		return hiddenPart
	}
	members := func(in map[string]string) map[string]string {
		out := maps.Clone(in)
		for name, v := range out {
			out[name] = shown(v)
		}
		return out
	}
	e.Args = slices.Clone(e.Args)
	for i, a := range e.Args {
		if !plainArgument.MatchString(a) {
			e.Args[i] = shown(a)
		}
	}
	if word, rest, more := strings.Cut(e.Command, " -"); more && rest != "" {
		e.Command = word + " " + hiddenPart
	}
	if u, err := url.Parse(e.URL); e.URL != "" && err == nil {
		e.URL = u.Scheme + "://" + u.Host + "/" + hiddenPart
	} else if e.URL != "" {
		e.URL = hiddenPart
	}
	if e.HeadersHelper != "" {
		e.HeadersHelper = hiddenPart
	}
	e.Env, e.Headers = members(e.Env), members(e.Headers)
	return e
}

// Asked is a secret that a moved entry asks for. It prints as its name.
type Asked struct {
	Name  string
	About string // what the user is asked where the value isn't known
	value string
}

// Value returns what the host's file has in plain text; empty: the user has to be asked.
func (a Asked) Value() string { return a.value }

// String returns the name.
func (a Asked) String() string { return a.Name }

// GoString returns the name.
func (a Asked) GoString() string { return a.Name }

// LogValue returns the name.
func (a Asked) LogValue() slog.Value { return slog.StringValue(a.Name) }

// Clone returns a copy of an entry, whose texts can be changed.
func (e *Entry) Clone() Entry {
	c := *e
	c.Args, c.Env, c.Headers = slices.Clone(e.Args), maps.Clone(e.Env), maps.Clone(e.Headers)
	return c
}

// mover rewrites the texts of one entry.
type mover struct {
	entry   *Entry
	env     Env
	inputs  []Input
	secrets map[string]Asked
	bad     Refusal
}

// Move returns an entry that nothing was filled in of, as a file of the bridge's own directory has
// it, without filters, and the secrets that it asks for there: for inputs of its host's, for what
// its host's keyring has, and for values in plain text whose names say that they are secret, also
// in arguments and URLs. It refuses what would mean something else there.
func (e *Entry) Move(env Env, inputs []Input) (OwnEntry, []Asked, Refusal) {
	m := &mover{entry: e, env: env, inputs: inputs, secrets: map[string]Asked{}}
	own := OwnEntry{
		Description: e.Description, Command: m.text("command", e.Command), Env: m.values("env", e.Env),
		Dir: m.text("cwd", e.Dir), URL: m.url(), Headers: m.values("headers", e.Headers),
		EnvFile: m.envFile(), HeadersHelper: e.HeadersHelper, BearerTokenEnv: e.BearerTokenEnv, OAuth: m.login(),
	}
	for i := range e.Args {
		own.Args = append(own.Args, m.argument(i))
	}
	switch {
	case e.Transport != Stdio:
		own.Type = string(e.Transport)
		if e.File.Format.Remote.Sockets && strings.HasPrefix(e.URL, "unix:") {
			m.refuse("it is at a Unix socket, which the bridge's own files can't name", "")
		}
	case e.Dir != "" && !absolute(e.Dir) && e.Dir[0] != '$':
		m.refuse("its directory counts from the one that "+e.Source.Host+" is started in",
			"write the whole path there")
	}
	for _, name := range e.Forward { // one that isn't set is nothing to the host
		if _, said := e.Env[name]; !said {
			set(&own.Env, name, "${"+name+":-}")
		}
	}
	for _, name := range e.Keyring {
		set(&own.Env, name, m.secret("env."+name, e.Name+"."+name, name+" of the server "+e.Name, ""))
	}
	for header, name := range e.HeaderEnv {
		set(&own.Headers, header, "${"+name+"}")
	}
	var secrets []Asked
	for _, name := range slices.Sorted(maps.Keys(m.secrets)) {
		secrets = append(secrets, m.secrets[name])
	}
	return own, secrets, m.bad
}

func (m *mover) refuse(reason, next string) {
	if !m.bad.Refused() {
		m.bad = Refusal{reason, next}
	}
}

var windowsPath = regexp.MustCompile(`^([A-Za-z]:)?[\\/]`)

// absolute reports whether a path is one, on any system.
func absolute(p string) bool { return windowsPath.MatchString(p) }

// envFile returns the path of the file of variables, which counts from the entry's own file.
func (m *mover) envFile() string {
	p := m.text("envFile", m.entry.EnvFile)
	if p == "" || absolute(p) || p[0] == '$' {
		return p
	}
	from := m.entry.Source.Path
	return from[:strings.LastIndexAny(from, `/\`)+1] + p
}

// login returns what the entry says of a login.
func (m *mover) login() any {
	o := m.entry.OAuth
	switch {
	case o.Off:
		return false
	case o.ClientSecret != "" || o.Resource != "":
		m.refuse("it says of its login what the bridge's own files have no place for, or a secret",
			"move it by hand")
	case o.ClientID == "" && o.Scopes == nil && o.CallbackPort == 0 && o.MetadataURL == "":
		return nil
	}
	return struct {
		ClientID     string   `json:"clientId,omitempty"`
		Scopes       []string `json:"scopes,omitempty"`
		CallbackPort int      `json:"callbackPort,omitempty"`
		MetadataURL  string   `json:"authServerMetadataUrl,omitempty"`
	}{m.text("client id", o.ClientID), o.Scopes, o.CallbackPort, o.MetadataURL}
}

// text returns a text in the words of the bridge's own files.
func (m *mover) text(part, in string) string {
	var b, literal strings.Builder
	last := 0
	if refs := m.entry.File.Format.References; refs != nil {
		for _, at := range refs.pattern.FindAllStringSubmatchIndex(in, -1) {
			group := func(name string) string {
				if i := refs.pattern.SubexpIndex(name); i >= 0 && at[2*i] >= 0 {
					return in[at[2*i]:at[2*i+1]]
				}
				return ""
			}
			b.WriteString(in[last:at[0]])
			literal.WriteString(in[last:at[0]] + "\x00")
			b.WriteString(m.reference(part, group("kind"), group("name")+group("bare"), group("default")))
			last = at[1]
		}
	}
	literal.WriteString(in[last:])
	if plain := literal.String(); Braces.pattern.MatchString(plain) || secretRef.MatchString(plain) {
		m.refuse("its "+part+" has a text such as ${…} that "+m.entry.Source.Host+" takes as it stands, and the "+
			"bridge's own files would fill in", "move it by hand")
	}
	return b.String() + in[last:]
}

var variable = regexp.MustCompile(`^` + word + `$`)

// reference returns a reference of the host's in the words of the bridge's own files.
func (m *mover) reference(part, kind, name, defaults string) string {
	host := m.entry.Source.Host
	switch kind {
	case "", "env", "secrets":
		if variable.MatchString(name) {
			return "${" + name + defaults + "}"
		}
	case "userHome":
		return m.env.Home
	case "pathSeparator", "/":
		if m.env.GOOS == "windows" {
			return `\`
		}
		return "/"
	case "input":
		return m.input(part, name)
	case "file":
		m.refuse("its "+part+" is taken from a file, which the bridge's own files can't do", "move it by hand")
		return ""
	case "workspaceFolder", "workspaceFolderBasename":
		m.refuse("its "+part+" is about the project that "+host+" has open", "write a path there")
		return ""
	}
	m.refuse("its "+part+" has a reference in it that only "+host+" can fill in", "move it by hand")
	return ""
}

// secret returns the reference to one, which must be set once the entry is moved. Its name begins
// with what it is of, so that it is no other server's secret.
func (m *mover) secret(part, name, about, value string) string {
	s := Secret{Name: secretNameOf(name), In: part}
	kind, inner, _ := strings.Cut(part, ".")
	kind, _, _ = strings.Cut(kind, "[")
	before, there := m.secrets[s.Name]
	asked := Asked{s.Name, about, value}
	switch {
	case !takesSecrets(kind, inner):
		m.refuse("its "+part+" has a secret in it, which the bridge's own files can't have there",
			"move it by hand")
	case there && before != asked:
		m.refuse("two of its secrets would have one name", "move it by hand")
	}
	m.secrets[s.Name] = asked
	return s.reference()
}

var (
	userInfo = regexp.MustCompile(`^([A-Za-z][\w+.-]*://[^/:@\s]*:)([^/@\s]+)(@.*)$`)
	assigned = regexp.MustCompile(`^(-{0,2}([\w.-]+)(?:=|: *)(?:(?i:bearer|basic|token) +)?)(.+)$`)
	option   = regexp.MustCompile(`^--?([\w-]+)$`)
	query    = regexp.MustCompile(`[?&]([\w.-]+)=([^&#]+)`)
)

// argument returns an argument with a secret in the place of a URL's password, of the value in
// NAME=VALUE or "Header: value", and of what follows an option whose name says that it is one.
func (m *mover) argument(i int) string {
	at, in := fmt.Sprintf("args[%d]", i), m.entry.Args[i]
	to := m.text(at, in)
	if to != in || strings.Contains(in, "${") {
		return to
	}
	if w := userInfo.FindStringSubmatch(in); w != nil {
		return w[1] + m.plain(at, "password", w[2]) + w[3]
	}
	if w := assigned.FindStringSubmatch(in); w != nil && isSecret(w[2], w[3]) {
		return w[1] + m.plain(at, w[2], w[3])
	}
	if i > 0 && in[:min(1, len(in))] != "-" {
		if w := option.FindStringSubmatch(m.entry.Args[i-1]); w != nil && isSecret(w[1], in) {
			return m.plain(at, w[1], in)
		}
	}
	return to
}

// url returns the URL with secrets in the place of parameters whose names say that they are some.
func (m *mover) url() string {
	in := m.entry.URL
	to := m.text("url", in)
	if to != in || strings.Contains(in, "${") {
		return to
	}
	return query.ReplaceAllStringFunc(in, func(found string) string {
		w := query.FindStringSubmatch(found)
		if !isSecret(w[1], w[2]) {
			return found
		}
		return found[:len(found)-len(w[2])] + m.plain("url", w[1], w[2])
	})
}

// plain returns the reference to a secret that stands in plain text.
func (m *mover) plain(part, name, value string) string {
	return m.secret(part, m.entry.Name+"."+name, name+" of the server "+m.entry.Name, value)
}

// isSecret reports whether a value in plain text is taken for a secret, by its name and its looks.
func isSecret(name, value string) bool {
	return text.SecretName(name) && len(value) >= leastSecret && !plainValue.MatchString(value)
}

var noSecretName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// secretNameOf returns a name that a secret may have.
func secretNameOf(name string) string {
	name = strings.TrimLeft(noSecretName.ReplaceAllString(name, "-"), ".-")
	if len(name) > maxSecretName {
		sum := hash("%q", name)[:8]
		name = name[:maxSecretName-len(sum)-1] + "." + sum
	}
	return name
}

var (
	scheme     = regexp.MustCompile(`(?i)^((?:bearer|basic|token) +)?(.*)$`)
	plainValue = regexp.MustCompile(`(?i)^([.~]{0,2}/.*|[a-z]:\\.*|[0-9.+-]*|true|false|https?://[^@?#]*)$`)
)

// values returns variables or headers, with secrets in the place of what is one in plain text.
func (m *mover) values(part string, in map[string]string) (out map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		value, at := in[name], part+"."+Display(name)
		to := m.text(at, value)
		words := scheme.FindStringSubmatch(value)
		if to == value && words != nil && isSecret(name, words[2]) && !steers(name) &&
			!strings.Contains(value, "${") {
			to = words[1] + m.plain(at, name, words[2])
		}
		set(&out, name, to)
	}
	return out
}

// leastSecret is the length in bytes of what is taken for a secret.
const leastSecret = 8
