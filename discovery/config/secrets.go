package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Secret is a place in a server's texts for a secret that the user keeps. Its value is no part of
// a Server: it is read when the server is started, and what a server is named by stays the same
// whatever the value is.
type Secret struct {
	Name string
	In   string    // the text, such as env.TOKEN
	At   int       // where in it the reference begins
	Set  time.Time // when the user has set it last
}

// reference is what stands in the text in the secret's place.
func (s Secret) reference() string { return "${secret:" + s.Name + "}" }

// place says what stands where, for what a server is named by.
func (s Secret) place() string { return fmt.Sprintf("%s at %d of %s", s.reference(), s.At, s.In) }

var (
	goodSecret = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	secretRef  = regexp.MustCompile(`\$\{secret:([^}]*)\}`)
)

// maxSecretName bounds the name of a secret, in bytes.
const maxSecretName = 64

// IsSecretName reports whether a secret may have this name.
func IsSecretName(name string) bool {
	return len(name) <= maxSecretName && goodSecret.MatchString(name)
}

// takesSecrets reports whether a text may have secrets: of the kind of texts, and of what name
// among them.
func takesSecrets(kind, name string) bool {
	return slices.Contains([]string{"env", "args", "url", "headers"}, kind) && (kind != "env" || !steers(name))
}

// SetSecret is what to type for a secret that isn't set.
func SetSecret(name string) string { return "type: mcp-bridge secret set " + name }

// whole fills in a text, and notes the places of secrets in it, which only the bridge's own files
// have. What is filled in isn't looked through for references, since others may have written it.
func (f *filling) whole(in string) (string, Refusal) {
	if f.entry.Source.Host != Own {
		return f.text(in)
	}
	var b strings.Builder
	last := 0
	var secrets []Secret
	for _, at := range secretRef.FindAllStringSubmatchIndex(in, -1) {
		before, bad := f.text(in[last:at[0]])
		if bad.Refused() {
			return in, bad
		}
		b.WriteString(before)
		s := Secret{Name: in[at[2]:at[3]], In: f.name, At: b.Len()}
		if s.Set, bad = f.secret(s.Name); bad.Refused() {
			return in, bad
		}
		secrets = append(secrets, s)
		b.WriteString(s.reference())
		last = at[1]
	}
	rest, bad := f.text(in[last:])
	if bad.Refused() {
		return in, bad
	}
	for _, s := range secrets {
		f.entry.Secrets = append(f.entry.Secrets, s)
		f.entry.take(s.place()) // elsewhere the same text is no more than that
	}
	return b.String() + rest, Refusal{}
}

// secret returns when a secret was set last, or why the text may not have it.
func (f *filling) secret(name string) (set time.Time, bad Refusal) {
	part, variable, _ := strings.Cut(f.name, ".")
	part, _, _ = strings.Cut(part, "[")
	shown := Display(name)
	switch {
	case !f.entry.File.Secrets:
		return set, f.refuse(" asks for the secret "+shown+", which only a file of mcp-bridge's own directory "+
			"of servers is given", "move the server to a file in ~/.config/mcp/servers")
	case !IsSecretName(name):
		return set, f.refuse(" asks for a secret by a name that none can have",
			"name it with letters, digits and . _ -")
	case !takesSecrets(part, variable):
		return set, f.refuse(" asks for the secret "+shown+", which only its arguments, headers, url and those "+
			"variables are given that don't decide which code is run", "write the value itself")
	}
	r := f.reader
	if r.Env.SecretFile != nil {
		if info, err := r.Stat(r.Env.SecretFile(name)); err == nil { // a watcher sees when it is set
			return info.ModTime(), Refusal{}
		}
	}
	return set, f.refuse(" asks for the secret "+shown+", which is not set", SetSecret(name))
}

// Given returns the names of the secrets that a server is given, each once.
func (s Server) Given() (names []string) {
	for _, secret := range s.Secrets {
		if !slices.Contains(names, secret.Name) {
			names = append(names, secret.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Reveal returns the server with its secrets, as it is started or connected to, and their values,
// which must be hidden in whatever is shown or kept. read returns the value of one, or an error
// that says what to do next. No error has a value in it.
func (s Server) Reveal(read func(name string) (string, error)) (Server, []string, error) {
	if len(s.Secrets) == 0 {
		return s, nil, nil
	}
	e := Entry{Server: s}
	e.Args, e.Env, e.Headers = slices.Clone(s.Args), maps.Clone(s.Env), maps.Clone(s.Headers)
	var values []string
	for _, secret := range slices.Backward(s.Secrets) { // the last first, so that offsets stay right
		value, err := read(secret.Name)
		if err != nil {
			return s, nil, fmt.Errorf("its secret %s: %w", secret.Name, err)
		}
		if why := e.put(secret, value); why != "" {
			return s, nil, fmt.Errorf("its secret %s %s; %s", secret.Name, why, SetSecret(secret.Name))
		}
		values = append(values, value)
	}
	if !sameOrigin(s.URL, e.URL) {
		return s, nil, errors.New("a secret in its url would change the host; correct " + s.Source.String())
	}
	e.Secrets = nil
	return e.Server, values, nil
}

// MovedFrom reports whether s may be what adopt has made of a host's entry, which is switched off
// there: the same server with other texts in the places of the secrets of s, whose values that
// entry or the host's keyring still has.
func (s Server) MovedFrom(t Entry) bool {
	was := Entry{Server: s}
	e, t := was.Clone(), t.Clone()
	for _, name := range t.Forward {
		if _, set := t.Env[name]; !set {
			t.SetEnv(name, "") // as Move has it
		}
	}
	for _, name := range t.Keyring {
		if t.Env[name] == "" {
			t.SetEnv(name, hiddenPart) // the host alone can read it
		}
	}
	theirs := t.texts()
	for _, p := range e.texts() {
		i := slices.IndexFunc(theirs, func(o part) bool { return o.name == p.name })
		switch like := s.pattern(p); {
		case like == nil:
			continue
		case i < 0 || !like.MatchString(theirs[i].text):
			return false
		}
		p.set(theirs[i].text)
		if p.name == "url" {
			e.OAuth = t.OAuth // with a secret there it is off
		}
	}
	e.Secrets = nil
	return e.Same(t.Server)
}

// pattern returns an expression for a text of s with other values of its secrets, or nil for one
// without secrets.
func (s Server) pattern(p part) *regexp.Regexp {
	like, from := `(?s)^`, 0
	for _, secret := range s.Secrets { // in their order
		if secret.In == p.name {
			like += regexp.QuoteMeta(p.text[from:secret.At]) + ".+"
			from = secret.At + len(secret.reference())
		}
	}
	if from == 0 {
		return nil
	}
	return regexp.MustCompile(like + regexp.QuoteMeta(p.text[from:]) + `$`)
}

// put puts a secret in its place, or says why it can't stand there.
func (e *Entry) put(s Secret, value string) (why string) {
	i := slices.IndexFunc(e.texts(), func(p part) bool {
		return p.name == s.In && len(p.text) >= s.At && strings.HasPrefix(p.text[s.At:], s.reference())
	})
	switch {
	case i < 0:
		return "has no place in it"
	case strings.ContainsRune(value, 0):
		return "has a NUL character in it"
	case (s.In == "url" || strings.HasPrefix(s.In, "headers.")) && strings.ContainsAny(value, "\r\n"):
		return "has a line break in it, with which it can't be sent"
	}
	p := e.texts()[i]
	p.set(p.text[:s.At] + value + p.text[s.At+len(s.reference()):])
	return ""
}

func sameOrigin(before, after string) bool {
	u, err := url.Parse(before)
	v, other := url.Parse(after)
	return err == nil && other == nil && u.Scheme == v.Scheme && u.Host == v.Host &&
		u.User.String() == v.User.String()
}
