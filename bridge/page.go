package bridge

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/stubs"
)

// Bounds of what one call of search_tools answers.
const (
	maxPage      = 200      // tools
	maxFull      = 50       // tools that are declared in full
	maxPageBytes = 24 << 10 // of them together, though one is always there
	maxSignature = 300      // characters of a signature in brief
	maxLine      = 160      // and of what the tool does
	maxAbout     = 2560     // bytes of a description that are looked at for that
	maxReasons   = 5        // servers of which it is said why they were not searched, or how old what is known of them is
	maxReason    = 200      // characters of each
)

// page is a part of what a search has found, as a model reads it.
type page struct {
	a       searchArguments
	hits    []hit // of all pages
	from    int
	unknown []unsearched
}

// text is a page with these hits, which body tells.
func (p page) text(shown []hit, body string) string {
	var out strings.Builder
	if len(shown) > 0 && shown[0].near {
		fmt.Fprintf(&out, "Nothing fits %q. The nearest, which may do something else:\n", p.asked())
	}
	out.WriteString(body)
	if cursor := p.next(len(shown)); cursor != "" {
		fmt.Fprintf(&out, "[%d to %d of %d; cursor=%q goes on]\n", p.from+1, p.from+len(shown), len(p.hits), cursor)
	}
	if len(p.hits) == 0 {
		out.WriteString(p.nothing())
	}
	out.WriteString(ages(shown))
	out.WriteString(reasons(p.unknown))
	return strings.TrimSuffix(out.String(), "\n")
}

// next is the cursor of the page behind this one, which shows so many hits; empty where there is none.
func (p page) next(shown int) string {
	to := p.from + shown
	if to >= len(p.hits) {
		return ""
	}
	return fmt.Sprintf("%d-%s", to, fingerprint(p.hits))
}

// fitting are the hits of this page, fewer than asked for where they would be too long, and their text.
func (p page) fitting() ([]hit, string) {
	shown := p.hits[p.from:min(len(p.hits), p.from+p.a.limit)]
	for {
		told := p.tell(shown)
		if len(told) <= maxPageBytes {
			return shown, told
		}
		if len(shown) == 1 {
			h := shown[0]
			rest := fmt.Sprintf("\n… cut here; in run_python, help(mcp_%s.%s) has all of it\n", h.box.server.alias, h.box.aliases[h.tool.Name])
			return shown, text.First(told, maxPageBytes-len(rest)) + rest
		}
		shown = shown[:len(shown)/2]
	}
}

func (p page) tell(shown []hit) string {
	var out strings.Builder
	if p.a.detail == detailFull {
		for _, b := range serversOf(shown) {
			out.WriteString(b.declarations(shown))
		}
		return text.Safe(out.String())
	}
	for _, h := range shown {
		if out.Len() > maxPageBytes {
			break // too long already
		}
		if p.a.detail == detailNames {
			fmt.Fprintf(&out, "mcp_%s.%s\n", h.box.server.alias, h.box.aliases[h.tool.Name])
			continue
		}
		out.WriteString(text.Brief(text.Line(h.box.signature(h.tool)), maxSignature) + "\n")
		if about := text.Line(text.First(firstOf(h.tool.Description, h.tool.Title), maxAbout)); about != "" {
			out.WriteString("  " + text.Brief(about, maxLine) + "\n")
		}
	}
	return text.Safe(out.String())
}

// declarations are the Python declarations of those hits that are the server's.
func (b *toolbox) declarations(hits []hit) string {
	p := provider(b.server)
	p.Tools = map[string]entrypoint.Tool{}
	for _, h := range hits {
		if h.box == b {
			told := b.told(h.tool)
			p.Tools[told.SafeName] = told
		}
	}
	declared, plain := stubs.Declarations(p), ""
	if strings.Contains(declared, ") -> Any:") {
		plain = "; a result of type Any is a dict or list where its text is JSON, else a str"
	}
	return fmt.Sprintf("# called as mcp_%s.<name>(…)%s\n%s", b.server.alias, plain, declared)
}

// firstOf is the first of two texts that says something.
func firstOf(a, b string) string {
	if strings.TrimSpace(a) != "" {
		return a
	}
	return b
}

// nothing says what to do when there is no hit.
func (p page) nothing() string {
	if p.a.query == "" {
		return "There are no tools.\n"
	}
	return fmt.Sprintf("Nothing fits %q. Try other words for what the tool does, or no query to see all.\n", p.asked())
}

// asked is the query as an answer repeats it.
func (p page) asked() string { return text.Brief(text.Line(p.a.query), maxLine) }

// ages names the servers that have not been asked for their tools since another process has.
func ages(shown []hit) string {
	var old []string
	for _, b := range serversOf(shown) {
		if !b.asOf.IsZero() {
			old = append(old, fmt.Sprintf("%s (%s old)", text.Line(b.server.name), age(b.asOf)))
		}
	}
	if len(old) == 0 {
		return ""
	}
	return "[cached, the server not asked since: " + some(old) + "]\n"
}

// reasons says of which servers the tools are not known.
func reasons(unknown []unsearched) string {
	if len(unknown) == 0 {
		return ""
	}
	var all []string
	for _, u := range unknown {
		all = append(all, text.Brief(text.Line(u.Server+": "+u.Reason), maxReason))
	}
	return "[not searched: " + some(all) + "]\n"
}

// some is the first of some clauses, and how many more there are.
func some(clauses []string) string {
	if n := len(clauses); n > maxReasons {
		return fmt.Sprintf("%s; and %d more", strings.Join(clauses[:maxReasons], "; "), n-maxReasons)
	}
	return strings.Join(clauses, "; ")
}
