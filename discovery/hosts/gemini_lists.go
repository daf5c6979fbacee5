package hosts

import (
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// geminiLists is mcp.excluded and mcp.allowed of all files. A list of any file takes away: a server
// has to be in every one of the allowed.
type geminiLists struct {
	host              string
	patterns          bool           // names in the lists are patterns
	unclear           config.Refusal // an administrator's file can't be read, or has a rule of a wrong kind
	excluded, allowed []geminiList
}

type geminiList struct {
	source config.Source
	names  []string
}

func readGeminiLists(r *config.Reader, host string, files []config.File) *geminiLists {
	g := &geminiLists{host: host}
	for _, s := range r.Settings(host, files) {
		if strings.HasPrefix(s.File.Scope, "system") && (s.Broken || misruled(s.Root)) {
			g.unclear = config.Unclear(host, s.Source)
		}
		lists := s.Rules.Object("mcp")
		g.excluded = append(g.excluded, geminiList{s.Source, r.Strings(s.Source, lists, "excluded")})
		if !lists.Get("allowed").Absent() {
			g.allowed = append(g.allowed, geminiList{s.Source, r.Strings(s.Source, lists, "allowed")})
		}
	}
	return g
}

// misruled reports whether a rule of a settings file is of a kind that it can't be.
func misruled(root config.Object) bool {
	for at, kinds := range map[string][]string{
		"mcp": {"an object"}, "mcp/allowed": {"an array"}, "mcp/excluded": {"an array"},
		"security": {"an object"}, "security/folderTrust": {"an object"},
		"security/folderTrust/enabled": {"true", "false"},
	} {
		v := root.At(at)
		_, names := v.Strings()
		if !v.Absent() && (!slices.Contains(kinds, v.Kind()) || v.Is("an array") && !names) {
			return true
		}
	}
	return false
}

// geminiName returns a server's name as Gemini CLI compares it.
func geminiName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// has reports whether a server is in a list.
func (g *geminiLists) has(list geminiList, server string) bool {
	return slices.ContainsFunc(list.names, func(name string) bool {
		name = geminiName(name)
		return name == geminiName(server) || g.patterns && config.MatchStars(name, geminiName(server))
	})
}

func (g *geminiLists) denied(e *config.Entry) config.Refusal {
	if g.unclear.Refused() {
		return g.unclear
	}
	for _, list := range g.excluded {
		if g.has(list, e.Name) {
			return config.Refuse(g.host+" excludes it, in "+list.source.String(),
				"take it out of mcp.excluded there to use it")
		}
	}
	for _, list := range g.allowed {
		if !g.has(list, e.Name) {
			return config.Refuse(g.host+" doesn't allow it: it is not in mcp.allowed of "+
				list.source.String(), "add it there to use it")
		}
	}
	return config.Refusal{}
}
