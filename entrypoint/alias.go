package entrypoint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Aliases gives each name, of a server or of a tool, the one under which Python code knows it: lower case, every run of
// characters other than a–z, 0–9 and _ is one _, a digit in front gets a _ before it, a keyword or builtin one behind it.
// Names that would have the same alias get __2, __3 and so on, in the order of the names, so the same set of names always has
// the same aliases. Names given twice count once.
func Aliases(names []string) map[string]string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	aliases := make(map[string]string, len(names))
	taken := make(map[string]bool, len(names))
	next := map[string]int{} // suffixes tried, by base: none of them gets free again
	for _, name := range names {
		base := alias(name)
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

func alias(name string) string {
	a := notInAlias.ReplaceAllString(strings.ToLower(name), "_")
	if a == "" {
		a = "_"
	}
	if a[0] >= '0' && a[0] <= '9' {
		a = "_" + a
	}
	if _, found := slices.BinarySearch(reserved, a); found {
		a += "_"
	}
	return a
}

// reserved are the keywords and builtins of Python 3.10 to 3.14 that could be an alias. A test compares it with the Python
// that is there.
var reserved = strings.Fields(`
__build_class__ __debug__ __doc__ __import__ __loader__ __name__ __package__ __spec__
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
