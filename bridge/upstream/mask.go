package upstream

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	minSecret = 4 // shorter values are masked nowhere: they occur in any text
	minHidden = 6 // shorter ones aren't hidden from who decides: such a word may mean something else
	longPart  = 8 // of a URL's path: what is so long may be the secret of a webhook
)

// mask hides the values that a server's configuration gives it, and those learned later, from every
// text that is shown. It may be used concurrently.
type mask struct {
	replacer atomic.Pointer[strings.Replacer]

	mu      sync.Mutex
	first   []string // of the configuration
	learned []string // the maxLearned that came up last
}

// maxLearned bounds the values that come up in the course of a session: tokens, and what a program
// prints.
const maxLearned = 64

var (
	// plainValue are paths, numbers, locales and short words: they tell nothing, and an error without
	// them doesn't tell what is wrong. So do addresses in which nothing is hidden; see plainURL.
	plainValue = regexp.MustCompile(`^([.~]{0,2}/.*|[A-Za-z]:\\.*|[-+]?[0-9]*\.?[0-9]+|` +
		`(?i:true|false)|[a-z-]{1,5}|` +
		`[a-z]{2,3}_[A-Z]{2}(\.[A-Za-z0-9-]{3,10})?(@[a-z]+)?|C\.(UTF-8|utf8))$`)

	// headerOption matches an option that takes a header whole.
	headerOption = regexp.MustCompile(`(?i)^-+headers?$`)

	// pathValue matches paths as a user decides on them.
	pathValue = regexp.MustCompile(`^([.~]{1,2}/.*|/.*/.*|[A-Za-z]:\\.*)$`)

	address    = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://\S+`)
	userinfo   = regexp.MustCompile(`://(\S*)@`)
	word       = regexp.MustCompile(`^[a-z]+([-_.][a-z]+)*$`)
	authScheme = regexp.MustCompile(`(?i)\b(?:bearer|basic|token)\s+(\S+)`)
	assignment = regexp.MustCompile(`^(-*[A-Za-z_][A-Za-z0-9_.-]*)=((?s:.*))$`)
)

// newMask returns a mask of some values.
func newMask(values []string) *mask {
	m := &mask{first: values}
	m.build()
	return m
}

// maskOf returns the mask of what a server's configuration gives it, and of the proxies in an
// environment.
func maskOf(s discovery.Server, environ ...string) *mask {
	return newMask(append(secrets(s, mayBeSecret), proxySecrets(environ)...))
}

// mayBeSecret reports whether the value of a variable or a header may be a secret: its name says
// so, or it isn't a plain one.
func mayBeSecret(name, value string) bool {
	return isNamed(name, value) || !plainValue.MatchString(value) && !plainURL(value)
}

// isNamed reports whether the name of a variable or a header says that its value is a secret.
func isNamed(name, _ string) bool { return text.SecretName(name) }

// secrets returns what may be secret of a server's configuration: values of variables and headers,
// as isSecret has it; of its arguments, what an option or a variable is given whose name says so,
// and every address with a user, a query or a long part in its path. What is hidden in an address
// is returned besides, since it may come alone.
func secrets(s discovery.Server, isSecret func(name, value string) bool) (values []string) {
	add := func(v string) {
		values = append(values, v)
		values = append(values, strings.Split(v, "\n")...)
	}
	for _, given := range []map[string]string{s.Env, s.Headers} {
		for name, v := range given {
			if isSecret(name, v) {
				add(v)
			}
			values = append(values, hidden(v)...)
		}
	}
	for i, a := range s.Args {
		name, value := "", a
		if m := assignment.FindStringSubmatch(a); m != nil {
			name, value = m[1], m[2]
		}
		switch {
		case text.SecretName(name), headerOption.MatchString(name), address.MatchString(value) && !plainURL(value):
			add(value)
			values = append(values, hidden(value)...)
		case strings.HasPrefix(a, "-") && (text.SecretName(a) || headerOption.MatchString(a)) && i+1 < len(s.Args):
			add(s.Args[i+1])
			values = append(values, hidden(s.Args[i+1])...)
		}
	}
	return append(append(values, hidden(s.URL)...), s.OAuth.ClientSecret)
}

// HideNamed returns a function that hides, in what a person is shown before deciding on it, what
// the configuration of some servers says to be secret: the values of variables, headers, options
// and arguments whose names say so, a registered client's secret, and what is hidden in addresses.
// Plain values, short ones and paths stay: hidden, they would leave nothing to decide on. The
// function may be used concurrently.
func HideNamed(servers map[string]discovery.Server) func(text string) string {
	var all []string
	for _, s := range servers {
		all = append(all, secrets(s, isNamed)...)
	}
	all = slices.DeleteFunc(all, func(v string) bool { return len(v) < minHidden || pathValue.MatchString(v) })
	return newMask(all).text
}

// configure hides one more value of the configuration, for good.
func (m *mask) configure(value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = append(append(m.first, value), hidden(value)...)
	m.build()
}

// add hides values that have come up, until maxLearned others have since.
func (m *mask) add(values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	for _, v := range values {
		for _, v := range append([]string{v}, hidden(v)...) {
			if i := slices.Index(m.learned, v); i >= 0 {
				m.learned = slices.Delete(m.learned, i, i+1)
			} else {
				changed = true
			}
			m.learned = append(m.learned, v)
		}
	}
	if changed {
		m.learned = slices.Clone(m.learned[max(0, len(m.learned)-maxLearned):])
		m.build()
	}
}

func (m *mask) build() {
	var all []string
	for _, v := range slices.Concat(m.first, m.learned) {
		if len(strings.TrimSpace(v)) >= minSecret && v != "true" && v != "false" {
			all = append(all, v)
			for _, form := range escaped(v) { // and JSON within a string of JSON
				all = append(append(all, form), escaped(form)...)
			}
		}
	}
	// The longest first: one value may be the beginning of another.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range all {
		pairs = append(pairs, v, "***")
	}
	m.replacer.Store(strings.NewReplacer(pairs...))
}

// plainURL reports whether v is an address without a user, a query and long parts in its path.
func plainURL(v string) bool {
	u, err := url.Parse(v)
	return err == nil && u.Scheme != "" && u.Host != "" && !strings.ContainsAny(v, "@?# \n") &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return len(part) >= longPart })
}

// hidden returns the parts of a value that may be secret on their own: what follows an
// authentication scheme, and users, passwords, queries and long parts of paths, as written and
// decoded.
func hidden(v string) (parts []string) {
	for _, m := range authScheme.FindAllStringSubmatch(v, -1) {
		parts = append(parts, m[1])
	}
	for _, a := range address.FindAllString(v, -1) {
		rest := a
		if m := userinfo.FindStringSubmatch(a); m != nil {
			_, password, _ := strings.Cut(m[1], ":")
			parts = append(parts, m[1], password)
			rest = "://" + strings.TrimPrefix(a[strings.Index(a, m[0]):], m[0])
		}
		rest, query, _ := strings.Cut(rest, "?")
		for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == '#' }) {
			if _, value, _ := strings.Cut(pair, "="); len(value) >= longPart {
				parts = append(parts, value)
			}
		}
		_, path, _ := strings.Cut(strings.TrimPrefix(rest[strings.Index(rest, "://"):], "://"), "/")
		for part := range strings.SplitSeq(path, "/") {
			if len(part) >= longPart && (len(part) >= 3*longPart || !word.MatchString(part)) {
				parts = append(parts, part)
			}
		}
	}
	for _, p := range parts {
		if decoded, err := url.PathUnescape(p); err == nil && decoded != p {
			parts = append(parts, decoded)
		}
	}
	return parts
}

// escaped returns v as it stands in the strings of JSON and of program text, where that is
// something else.
func escaped(v string) (forms []string) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a string always encodes
	html, _ := json.Marshal(v)
	for _, quoted := range []string{strings.TrimSpace(b.String()), string(html), strconv.QuoteToASCII(v)} {
		if form := quoted[1 : len(quoted)-1]; form != v {
			forms = append(forms, form)
		}
	}
	return forms
}

func (m *mask) text(s string) string { return m.replacer.Load().Replace(s) }

// cut returns the first n bytes of a text without secrets. They are looked for in more than is
// kept, so that none is cut in two before that.
func (m *mask) cut(s string, n int) string {
	return strings.Clone(text.First(m.text(text.First(s, 4*n)), n)) // not all of a line of megabytes
}

// json masks valid JSON. What is no JSON afterwards, as a number was masked, becomes a string.
func (m *mask) json(raw json.RawMessage) json.RawMessage {
	masked := []byte(m.text(string(raw)))
	if !json.Valid(masked) {
		masked, _ = json.Marshal(string(masked)) // a string always encodes
	}
	return masked
}

var (
	// token matches what well-known services issue as keys and tokens, wherever it stands.
	token = regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|AIza|hf_|lin_|eyJ)` +
		`[A-Za-z0-9_.-]{4,}`)

	queryValue = regexp.MustCompile(`([?&][^=&#\s]+=)[^&#\s]+`)
	fragment   = regexp.MustCompile(`#\S+`)
)

// Shown returns a function that masks the secrets of a server in its command line or its address:
// values of its variables and headers, of options whose names say that they are secret, everything
// in addresses that may be, and what looks like a token.
func Shown(s discovery.Server) func(string) string {
	var parts []string // of addresses in arguments, which are not masked whole
	args := slices.Clone(s.Args)
	for i, a := range args {
		parts = append(parts, hidden(a)...)
		args[i] = address.ReplaceAllString(a, "")
	}
	s.Args = args
	m := newMask(append(secrets(s, mayBeSecret), parts...))
	return func(s string) string {
		s = address.ReplaceAllStringFunc(m.text(s), func(a string) string {
			return fragment.ReplaceAllString(queryValue.ReplaceAllString(a, "${1}***"), "#***")
		})
		return token.ReplaceAllString(s, "***")
	}
}
