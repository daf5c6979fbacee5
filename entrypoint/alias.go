package entrypoint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Aliases returns for each name of a tool the one under which Python code knows it: lower case,
// every run of characters other than a–z, 0–9 and _ is one _, and "tool" where no letter or
// digit is left. A digit in front gets a _ before it, an alias that begins and ends with __ an x,
// and a name of Python's or of the guest's own a _ behind it.
//
// Names that would have the same alias get __2, __3 and so on, in the order of the names, but a
// name that is its own alias keeps it. So the same set of names always has the same aliases. Names
// given twice count once.
func Aliases(names []string) map[string]string { return aliases(names, "tool", reserved, ofGuest) }

// ServerAliases does so for the names of servers, which code knows as mcp_<alias>, where nothing is
// a builtin, and as the module mcp.servers.<alias>. Where no letter or digit is left the alias is
// "server". mcp_servers is the mapping of all servers, so the name "servers" gets a _ behind it
// too.
func ServerAliases(names []string) map[string]string {
	return aliases(names, "server", keywords, []string{"servers"})
}

func aliases(names []string, none string, taboo ...[]string) map[string]string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	aliases, bases := make(map[string]string, len(names)), make(map[string]string, len(names))
	taken := make(map[string]bool, len(names))
	for _, name := range names {
		bases[name] = alias(name, none, taboo)
		if bases[name] == name {
			aliases[name], taken[name] = name, true
		}
	}
	next := map[string]int{} // suffixes tried, by base: none of them gets free again
	for _, name := range names {
		if aliases[name] != "" {
			continue
		}
		base := bases[name]
		unique := base
		for taken[unique] {
			next[base]++
			unique = fmt.Sprintf("%s__%d", base, next[base]+1)
		}
		taken[unique] = true
		aliases[name] = unique
	}
	return aliases
}

var notInAlias = regexp.MustCompile(`[^a-z0-9_]+`)

func alias(name, none string, taboo [][]string) string {
	a := notInAlias.ReplaceAllString(strings.ToLower(name), "_")
	if strings.Trim(a, "_") == "" {
		a = none
	}
	if a[0] >= '0' && a[0] <= '9' {
		a = "_" + a
	}
	if strings.HasPrefix(a, "__") && strings.HasSuffix(a, "__") {
		a = "x" + a
	}
	for _, names := range taboo {
		if _, found := slices.BinarySearch(names, a); found {
			a += "_"
		}
	}
	return a
}

// ofGuest are the attributes of the guest's servers that tools would hide. A test compares it with
// the guest.
var ofGuest = strings.Fields(`
_alias _denied _description _extra _gone _known _link _listed _load _lock _made _name _on_load
_request _since _take _then _tool
`)

// keywords are those of Python that could be an alias. A test compares it with the Python that is
// there.
var keywords = strings.Fields(`
and as assert async await break class continue def del elif else except finally for from global
if import in is lambda nonlocal not or pass raise return try while with yield
`)

// reserved are the keywords and builtins of Python 3.10 to 3.14 that could be an alias. A test
// compares it with the Python that is there.
var reserved = strings.Fields(`
abs aiter all and anext any as ascii assert async await
bin bool break breakpoint bytearray bytes
callable chr class classmethod compile complex continue copyright credits
def del delattr dict dir divmod
elif else enumerate eval except exec exit
filter finally float for format from frozenset
getattr global globals
hasattr hash help hex
id if import in input int is isinstance issubclass iter
lambda len license list locals
map max memoryview min
next nonlocal not
object oct open or ord
pass pow print property
quit
raise range repr return reversed round
set setattr slice sorted staticmethod str sum super
try tuple type
vars
while with
yield
zip
`)
