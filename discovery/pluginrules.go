package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// pluginWord is the last word of Claude Code's settings on a plugin.
type pluginWord struct {
	on     bool
	source Source
	by     word
}

// pluginSettings reads what one settings file says of plugins: which are enabled, and how they are configured. The settings of a
// project that isn't trusted may switch off, not on, and nobody overrules the administrator.
func (s *scan) pluginSettings(p *policy, src Source, f *file, w word) {
	for _, m := range objectIn(f.rules, "enabledPlugins").Members {
		on := kind(&m.Value) != "false" && kind(&m.Value) != "null" // a list is of versions
		if before, ok := p.plugins[nameOf(m)]; ok && before.by == manager && w != manager || on && (w == guest || !f.standard) {
			continue
		}
		p.plugins[nameOf(m)] = pluginWord{on, src, w}
	}
	if src.Scope != "user settings" && w != manager {
		return // options of a project's settings aren't taken, trusted or not
	}
	for _, m := range objectIn(f.rules, "pluginConfigs").Members {
		if o, ok := objectOf(&m.Value); ok && f.standard {
			p.pluginOptions[nameOf(m)] = onTop(objectIn(o, "options"), p.options(nameOf(m))) // the administrator's count, and were read first
		}
	}
	for _, key := range []string{"strictKnownMarketplaces", "blockedMarketplaces"} {
		if k := kind(get(f.rules, key)); w == manager && k != "nothing" && k != "null" {
			p.marketplaces = &src
		}
	}
}

// pluginOff says why none of a plugin's servers is used, if so.
func (p *policy) pluginOff(g plugin) refusal {
	if g.unlisted != (refusal{}) {
		return g.unlisted
	}
	skill := strings.HasSuffix(g.id, skillsDir)
	word, ok := p.plugins[g.id]
	if other, said := p.plugins[g.name+skillsDir]; skill && said && !other.on {
		word, ok = other, true // its directory may be called otherwise
	}
	switch {
	case ok && !word.on:
		return refusal{"its plugin " + display(g.id) + " is disabled in Claude Code, in " + word.source.String(), "enable it with /plugin in Claude Code"}
	case !ok && (!skill || kind(get(g.manifest, "defaultEnabled")) == "false"):
		return refusal{"its plugin " + display(g.id) + " is not enabled in Claude Code", "enable it with /plugin in Claude Code"}
	}
	return refusal{}
}

// pluginForbidden says why an administrator's rules keep a plugin's server back, if they do.
func (p *policy) pluginForbidden() refusal {
	if p.marketplaces == nil {
		return refusal{}
	}
	return refusal{"Claude Code's administrator limits where plugins come from, in " + p.marketplaces.String() + ", and where this one does can't be told", "ask the administrator"}
}

func (p *policy) options(id string) *hujson.Object {
	if o := p.pluginOptions[id]; o != nil {
		return o
	}
	return &hujson.Object{}
}

// option is a function for what a plugin's user has set, or else the plugin's own default. What is sensitive is kept elsewhere.
func (p *policy) option(g plugin) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		v := get(p.options(g.id), name)
		if v == nil {
			v = member(g.manifest, "userConfig/"+name+"/default")
		}
		if v == nil || kind(v) == "null" {
			return "", false
		}
		lit, ok := v.Value.(hujson.Literal)
		return lit.String(), ok
	}
}

// pluginHelper sees to the plugin's directories in the command that makes headers, which is a shell's: it finds them in its environment,
// where nothing in them is a word of the command. The one of Windows knows no such references, so that they are filled in there. Options
// would be read by the shell too, so that Claude Code doesn't take them there.
func (f *form) pluginHelper(d *definition, windows bool) refusal {
	if f.given == nil || d.HeadersHelper == "" {
		return refusal{}
	}
	if strings.Contains(d.HeadersHelper, "${user_config.") {
		return refusal{"its headersHelper has an option of the plugin in it, which Claude Code doesn't take there", "tell who made the plugin"}
	}
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		value, reference := f.given[name], "${"+name+"}"
		switch {
		case !windows:
			d.variable(name, value)
		case !strings.Contains(d.HeadersHelper, reference):
		case strings.ContainsFunc(value, cmdActsOn):
			return refusal{"its headersHelper has " + name + " in it, and in that is a character that cmd acts on", "move that directory to a path without it"}
		default:
			d.HeadersHelper = strings.ReplaceAll(d.HeadersHelper, reference, value)
		}
	}
	return refusal{}
}

// cmdActsOn says whether a character of a path can be more than a part of it to the shell of Windows, in quotes or outside.
func cmdActsOn(r rune) bool { return hidden(r) || strings.ContainsRune("&|<>^()%!\"", r) }

// toolSettings reads which tools of servers a settings file denies.
func (s *scan) toolSettings(p *policy, src Source, root *hujson.Object) {
	for _, name := range s.strings(src, objectIn(root, "permissions"), "deny") {
		if strings.HasPrefix(name, "mcp__") && !strings.Contains(name, "(") { // a rule about arguments is none about a tool
			p.tools = append(p.tools, ToolRule{name, true, src}, ToolRule{name + "__*", true, src})
		}
	}
	if len(p.tools) > maxRules {
		s.problem(src, "", fmt.Sprintf("with it there are more than %d rules about tools; all tools of Claude Code's servers are hidden", maxRules), "take out what isn't needed")
		p.tools = []ToolRule{{"*", true, src}}
	}
}

// toolRules is what is denied of one server's tools.
func (p *policy) toolRules(server string) []RuleList {
	if len(p.tools) == 0 {
		return nil
	}
	return []RuleList{{Prefix: "mcp__" + plain(server) + "__", Rules: p.tools}}
}
