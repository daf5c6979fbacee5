package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// FilledIn holds, by name, what the file has in the place of those variables and headers whose
// values come from elsewhere, such as ${TOKEN}.
type FilledIn struct{ Env, Headers map[string]string }

// filledIn returns the FilledIn of an entry that was as written before.
func filledIn(written, e *Entry) FilledIn {
	differ := func(was, is map[string]string) map[string]string {
		refs := map[string]string{}
		for name, text := range was {
			if value, ok := is[name]; ok && (value != text || len(e.Secrets) > 0 && secretRef.MatchString(text)) {
				refs[name] = text
			}
		}
		return refs
	}
	f := FilledIn{differ(written.Env, e.Env), differ(written.Headers, e.Headers)}
	for _, name := range slices.Concat(e.Forward, e.Keyring) {
		if value, ok := e.Env[name]; ok && value != written.Env[name] {
			f.Env[name] = "${" + name + "}"
		}
	}
	for header, name := range e.HeaderEnv {
		f.Headers[header] = "${" + name + "}"
	}
	return f
}

// Describe returns what is started or connected to, line by line, for the user who decides about
// it. Every text is quoted as in Go's source, so that none can look like another line. A value that
// is filled in is told by what the file has in its place, and one whose name says that it is a
// secret by its length; see steers for those that are always told. The caller escapes the
// characters that a screen doesn't show.
func (s Server) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "File: %s", s.Source)
	line := func(what, value string) {
		if value != "" {
			fmt.Fprintf(&b, "\n%s: %s", what, text.Quoted(value))
		}
	}
	if s.Transport != Stdio { // what is started is told as a program
		line("Transport", string(s.Transport))
	}
	line("URL", s.URL)
	line("Socket", s.Socket)
	line("Program", s.Command)
	for i, a := range s.Args {
		fmt.Fprintf(&b, "\nArgument %d: %s", i+1, text.Quoted(a))
	}
	line("Program for its headers", s.HeadersHelper)
	line("In", s.Dir)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		fmt.Fprintf(&b, "\nVariable %s: %s", text.Quoted(name), describeValue(name, s.Env[name], s.FilledIn.Env))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		fmt.Fprintf(&b, "\nHeader %s: %s", text.Quoted(name),
			describeValue(name, s.Headers[name], s.FilledIn.Headers))
	}
	line(`Header "Authorization", from the variable`, s.BearerTokenEnv)
	s.OAuth.describe(&b, line)
	for _, name := range s.Given() {
		line("Secret of yours that it is given", name)
	}
	return b.String()
}

// describe writes what is set of a login.
func (o OAuth) describe(b *strings.Builder, line func(what, value string)) {
	if o.Off {
		b.WriteString("\nLogin: none")
	}
	line("Login as the client", o.ClientID)
	if o.ClientSecret != "" {
		b.WriteString("\nSecret of the client: " + notShown(o.ClientSecret))
	}
	line("Login, as described at", o.MetadataURL)
	line("Login for the resource", o.Resource)
	for _, scope := range o.Scopes {
		line("Login for the scope", scope)
	}
	if o.CallbackPort != 0 {
		fmt.Fprintf(b, "\nLogin returns to the port: %d", o.CallbackPort)
	}
}

func describeValue(name, value string, filledIn map[string]string) string {
	written, isFilledIn := filledIn[name]
	isSecret := text.SecretName(name)
	switch {
	case steers(name), !isFilledIn && !isSecret:
		return text.Quoted(value)
	case isFilledIn && (!isSecret || reference.MatchString(written) && !strings.Contains(written, ":-")):
		return "filled in for " + text.Quoted(written)
	}
	told := notShown(value)
	if likeCommand(value) {
		told += "; it reads like a command or a path"
	}
	return told
}

func notShown(value string) string {
	return fmt.Sprintf("not shown, %d characters", utf8.RuneCountInString(value))
}

var (
	// reference matches a text that is one reference of a dialect, perhaps after an authentication
	// scheme, and so holds no secret itself.
	reference = regexp.MustCompile(`(?i)^((bearer|basic|token) +)?(\$?\{\{?[^{}]*\}?\}|\$[a-z_][a-z0-9_]*)$`)

	// steering matches the names of variables that have programs load or run something, or look for
	// it elsewhere.
	steering = regexp.MustCompile(`(?i)^(path|pathext|comspec|env|bash_env|ifs|shell|shellopts|bashopts|` +
		`zdotdir|prompt_command|editor|visual|pager|browser|home|xdg_config_home|` +
		`(ld|dyld|bash_func|git_config)_.*|git_(ssh|ssh_command|exec_path|proxy_command|` +
		`external_diff|pager|editor|askpass|template_dir)|ssh_askpass|` +
		`glibc_tunables|gconv_path|node_(options|path|extra_ca_certs)|electron_run_as_node|` +
		`deno_.*|bun_options|python[a-z].*|python_basic_repl|perl5.*|perllib|ruby(opt|lib)|gem_(home|path)|` +
		`bundle_gemfile|(_java|java_tool|jdk_java)_options|java_home|classpath|` +
		`lua_(init|path|cpath).*|php(rc|_ini_scan_dir)|dotnet_startup_hooks|coreclr_.*|r_profile.*|` +
		`(npm|pnpm|yarn|bun)_config_(registry|node_options|userconfig|globalconfig|prefix|` +
		`script_shell|shell|ignore_scripts)|` +
		`(pip|uv)_.*(index|find_links|config|python|constraint|override).*|(http|https|all|no)_proxy|` +
		`docker_(host|config|context)|ssl_cert_(file|dir))$`)
)

// steers reports whether a variable decides which code is run, so that its value is always told.
func steers(name string) bool { return steering.MatchString(name) }

// likeCommand reports whether a value is more than one word, or a path.
func likeCommand(value string) bool {
	return text.HasBlank(value) || strings.ContainsAny(value, ";|&`<>") ||
		strings.Contains(value, "${") ||
		strings.HasPrefix(strings.TrimLeft(value, ".~"), "/")
}
