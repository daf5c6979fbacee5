package upstream

import (
	"regexp"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

var (
	// token matches what well-known services issue as keys and tokens, wherever it stands.
	token = regexp.MustCompile(`\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|AIza|hf_|lin_|eyJ)[A-Za-z0-9_.-]{4,}`)

	queryValue = regexp.MustCompile(`([?&][^=&#\s]+=)[^&#\s]+`)
	fragment   = regexp.MustCompile(`#\S+`)
)

// Shown returns a function that masks the secrets of a server in its command line or its address:
// values of its variables and headers, of options whose names say that they are secret, everything
// in addresses that may be, and what looks like a token.
func Shown(s discovery.Server) func(string) string {
	args := slices.Clone(s.Args)
	for i, a := range args { // of addresses only parts are masked
		args[i] = address.ReplaceAllString(a, "")
	}
	m := newMask(s.Env, args)
	for _, a := range s.Args {
		m.configure(hidden(a)...)
	}
	for _, v := range s.Headers {
		m.configure(v)
	}
	m.configure(slices.Concat(hidden(s.URL), []string{s.OAuth.ClientSecret})...)
	return func(text string) string {
		text = address.ReplaceAllStringFunc(m.text(text), func(a string) string {
			return fragment.ReplaceAllString(queryValue.ReplaceAllString(a, "${1}***"), "#***")
		})
		return token.ReplaceAllString(text, "***")
	}
}
