package config

import (
	"slices"
	"strings"
	"unicode"
)

// Own returns the filter as the lists of a file of the bridge's own, whose names are patterns: what
// they hide and show is the same. A host's rules of which an earlier one hides what a later one
// shows can be written only where the earlier one hides all.
func (f Filter) Own() (allow, deny []string, bad Refusal) {
	plain := func(names []string) []string {
		out := slices.Clone(names)
		if !f.Globs {
			for i, name := range out {
				out[i] = literally(name)
			}
		}
		return out
	}
	allow, deny = plain(f.Allow), plain(f.Deny)
	for _, l := range f.Rules {
		shown, hidden, ok := l.own()
		if !ok || shown != nil && allow != nil {
			return nil, nil, Refuse("its host's rules about tools can't be written into the bridge's own file: they "+
				"hide some, and then show some of those", "move it by hand")
		}
		if shown != nil {
			allow = shown
		}
		deny = append(deny, hidden...)
	}
	return allow, deny, Refusal{}
}

// own returns the patterns that a list shows, nil for all, and those that it hides. ok is false
// where that can't be said so.
func (l RuleList) own() (shown, hidden []string, ok bool) {
	for _, r := range l.Rules {
		rests := residuals(r.Pattern, l.Prefix, l.AnyCase)
		all := slices.ContainsFunc(rests, func(p string) bool { return p != "" && strings.Trim(p, "*") == "" })
		switch {
		case len(rests) == 0: // it is about other servers
		case all && r.Deny:
			shown, hidden = []string{}, nil
		case all:
			shown, hidden = nil, nil
		case r.Deny:
			hidden = append(hidden, toolPatterns(rests, l.AnyCase)...)
		case hidden != nil:
			return nil, nil, false
		case shown != nil:
			shown = append(shown, toolPatterns(rests, l.AnyCase)...)
		}
	}
	return shown, hidden, true
}

// residuals returns the patterns of what may follow a prefix, so that a name that begins with the
// prefix matches a pattern if the rest of it matches one of them.
func residuals(pattern, prefix string, anyCase bool) (rests []string) {
	p := []rune(pattern)
	at := map[int]bool{0: true} // how far the pattern may be matched
	widen := func() {
		for i, c := range p {
			if at[i] && c == '*' {
				at[i+1] = true
			}
		}
	}
	widen()
	for _, c := range prefix {
		next := map[int]bool{}
		for i := range at {
			switch {
			case i == len(p):
			case p[i] == '*':
				next[i] = true
			case p[i] == '?' || p[i] == c || anyCase && unicode.ToLower(p[i]) == unicode.ToLower(c):
				next[i+1] = true
			}
		}
		at = next
		widen()
	}
	for i := range len(p) + 1 {
		if at[i] {
			rests = append(rests, string(p[i:]))
		}
	}
	return rests
}

// toolPatterns returns patterns of tools' real names for those of the names that ToolName makes.
func toolPatterns(patterns []string, anyCase bool) (out []string) {
	for _, p := range patterns {
		var b strings.Builder
		possible := p != "" // no tool has an empty name
		for _, c := range p {
			upper, lower := unicode.ToUpper(c), unicode.ToLower(c)
			switch {
			case c == '_':
				b.WriteString(`[^0-9A-Za-z\-]`)
			case c == '*' || c == '?':
				b.WriteRune(c)
			case !InName(c):
				possible = false
			case anyCase && upper != lower:
				b.WriteString("[" + string(upper) + string(lower) + "]")
			default:
				b.WriteRune(c)
			}
		}
		if possible {
			out = append(out, b.String())
		}
	}
	return out
}

// literally returns a pattern that only a name itself matches.
func literally(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}
