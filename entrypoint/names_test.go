package entrypoint

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// oddNames are names from Unicode's own tables: of each script and each category the first, a
// middle and the last character, as they are and within a word; and those that mean something to
// Python or to the guest.
func oddNames() []string {
	names := []string{
		"", " ", "_", "__", "___", "-", ".", "/", "1", "1_", "__1", "a", "A", "ａ", "K", "\u212a", "ſ", "ﬁ", "İ",
		"ß", "été", "e\u0301te\u0301", "读", "写", "读 file",
		"__class__", "__dict__", "__getattr__", "__init__", "__CLASS__", "--class--", "__x", "x__", "_load",
		"_made", "_name", "import", "class", "None", "print", "any",
		"list_tools", "resources", "prompts", "tool", "tool__2", "server", "github", "GitHub", "GITHUB", "git hub",
		"git_hub", "git-hub", "a\x00b", "a\nb", "\xff", "👩‍💻", "🇪🇺",
	}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Scripts, unicode.Categories} {
		for _, table := range tables {
			var all []rune
			for _, r := range table.R16 {
				all = append(all, rune(r.Lo), rune(r.Hi))
			}
			for _, r := range table.R32 {
				all = append(all, rune(r.Lo), rune(r.Hi))
			}
			for _, r := range []rune{all[0], all[len(all)/2], all[len(all)-1]} {
				if utf8.ValidRune(r) {
					names = append(names, string(r), "get"+string(r)+"all", string(r)+"_x")
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestNames: whatever tools and servers are called, each has an alias of its own that Python takes
// as a name, and the guest has each under that alias, by attribute, by item, in dir() and by
// import.
func TestNames(t *testing.T) {
	names := oddNames()
	if len(names) < 400 {
		t.Fatalf("only %d names", len(names))
	}
	valid := regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	tools, servers := Aliases(names), ServerAliases(names)
	alone := map[string]func([]string) map[string]string{"tools": Aliases, "servers": ServerAliases}
	for what, aliases := range map[string]map[string]string{"tools": tools, "servers": servers} {
		by := map[string]string{}
		for _, name := range names {
			a := aliases[name]
			switch other, taken := by[a]; {
			case taken:
				t.Errorf("%s: %q and %q are both %q", what, other, name, a)
			case !valid.MatchString(a),
				strings.HasPrefix(a, "__") && strings.HasSuffix(a, "__"),
				strings.Trim(a, "_") == "":
				t.Errorf("%s: %q is %q", what, name, a)
			}
			by[a] = name
			if a != name && alone[what]([]string{name})[name] == name {
				t.Errorf("%s: %q would be its own alias and is %q", what, name, a)
			}
		}
	}
	const check = `
import builtins, json, keyword, sys
from guest import mcp_runtime
given = json.load(sys.stdin)
namespace = {}
tools = {
    alias: {"safeName": alias, "originalName": name, "inputSchema": {}} for name, alias in given["tools"]
}
providers = [
    {"name": name, "alias": alias, "tools": tools if i < 3 else {}, "stub": ""}
    for i, (name, alias) in enumerate(given["servers"])
]
runtime = mcp_runtime.Runtime(None, namespace)
runtime.install({"providers": providers, "options": {}})
def same(what, a, b):
    if a is not b: print(what, "differ")
for name, alias in given["servers"]:
    if not ("mcp_" + alias).isidentifier() or keyword.iskeyword(alias):
        print("server", ascii(name), "is", alias)
    if alias != "servers": same(f"server {alias}", namespace["mcp_" + alias], namespace["mcp_servers"][name])
    exec(f"from mcp.servers import {alias} as module", namespace)
    same(f"module {alias}", namespace["module"], namespace["mcp_servers"][name])
for name, alias in given["servers"][:3]:
    server = namespace["mcp_" + alias]
    if set(dir(server)) != {*tools, "prompts", "resources"}: print("dir of", alias)
    for real, tool in given["tools"]:
        if not tool.isidentifier() or keyword.iskeyword(tool) or tool in dir(builtins):
            print("tool", ascii(real), "is", tool)
        same(f"tool {tool}", getattr(server, tool), server[tool])
        if getattr(server, tool).__name__ != tool:
            print("tool", tool, "is called", getattr(server, tool).__name__)
        exec(f"from mcp.servers.{alias} import {tool} as one", namespace)
        same(f"import of {tool}", namespace["one"], server[tool])
`
	var pairs [2][][2]string
	for i, aliases := range []map[string]string{tools, servers} {
		for _, name := range names {
			pairs[i] = append(pairs[i], [2]string{strings.ToValidUTF8(name, "�"), aliases[name]})
		}
	}
	given, err := json.Marshal(map[string]any{"tools": pairs[0], "servers": pairs[1]})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python(t), "-c", check)
	cmd.Stdin = strings.NewReader(string(given))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("the guest: %v\n%.4000s", err, out)
	}
}
