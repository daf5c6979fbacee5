package discovery

import (
	"path"
	"strings"

	"github.com/tailscale/hujson"
)

// listedPlugin is an installed plugin as its marketplace has it. Claude Code loads none that isn't listed in a marketplace it knows;
// where that is a directory of the user's, it takes the plugin from there rather than from where it was installed.
func (s *scan) listedPlugin(id, root string) plugin {
	p := plugin{id: id, name: id, root: root}
	market := ""
	if i := strings.LastIndexByte(id, '@'); i > 0 {
		p.name, market = id[:i], id[i+1:]
	}
	p.unlisted = refusal{"its plugin " + display(id) + " is in no marketplace that Claude Code knows", "look at /plugin in Claude Code"}
	for _, file := range s.places.expand(all("{claude}/plugins/known_marketplaces.json")) {
		f := s.load(Source{claudeCode, pluginScope, file}, true, false)
		if f.root == nil {
			continue
		}
		known := objectIn(f.root, market)
		at, _ := stringOf(get(known, "installLocation"))
		dir := s.places.clean(at)
		entry := s.marketEntry(dir, p.name)
		if entry == nil {
			continue
		}
		p.manifest, p.unlisted = entry, refusal{}
		if kind, _ := stringOf(get(objectIn(known, "source"), "source")); kind == "directory" {
			s.inPlace(&p, dir, entry)
		}
	}
	return p
}

// marketEntry is what the marketplace in a directory says of a plugin, nil for nothing.
func (s *scan) marketEntry(dir, name string) *hujson.Object {
	if dir == "" || name == "" {
		return nil
	}
	f := s.load(Source{claudeCode, pluginScope, s.places.native(dir + "/.claude-plugin/marketplace.json")}, true, false)
	if f.root == nil {
		return nil
	}
	list, ok := arrayOf(get(f.root, "plugins"))
	if !ok {
		return nil
	}
	for i := range list.Elements {
		if o, ok := objectOf(&list.Elements[i]); ok {
			if n, _ := stringOf(get(o, "name")); n == name {
				return o
			}
		}
	}
	return nil
}

// inPlace is where a plugin of a marketplace lies that is a directory of the user's. One that its entry takes from elsewhere is
// where it was installed.
func (s *scan) inPlace(p *plugin, dir string, entry *hujson.Object) {
	from, ok := stringOf(get(entry, "source"))
	if !ok {
		return
	}
	root := path.Join(dir, from)
	if !strings.HasPrefix(from, "./") || root != dir && !strings.HasPrefix(root, dir+"/") {
		p.unlisted = refusal{"where its plugin " + display(p.id) + " lies in its marketplace can't be told", "list the server in a file of MCP_BRIDGE_CONFIG"}
		return
	}
	p.root = root
}
