package sandboxtools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
)

// field is an argument or a part of a result.
type field struct {
	name, kind, about string
	required          bool
}

// kinds are the types of fields as JSON schemas. Each use is a text of its own: some clients refuse
// schemas that share parts.
var kinds = map[string]string{
	"string": `"type":"string"`, "integer": `"type":"integer"`, "boolean": `"type":"boolean"`,
	"number":   `"type":"number"`,
	"limit":    `"type":["integer","null"]`,
	"map":      `"type":"object","additionalProperties":{"type":"string"}`,
	"strings":  `"type":"array","items":{"type":"string"}`,
	"object":   `"type":"object"`,
	"objects":  `"type":"array","items":{"type":"object"}`,
	"encoding": `"enum":["text","base64"]`,
}

// schema returns the JSON schema of an object with these fields.
func schema(fields []field) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:{%s", f.name, kinds[f.kind])
		if f.about != "" {
			fmt.Fprintf(&b, `,"description":%q`, f.about)
		}
		b.WriteByte('}')
		if f.required {
			required = append(required, fmt.Sprintf("%q", f.name))
		}
	}
	b.WriteByte('}')
	if required != nil {
		fmt.Fprintf(&b, `,"required":[%s]`, strings.Join(required, ","))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// without has why no tool has these arguments of the original.
var without = map[string]string{
	"from_snapshot": "sandboxes have no snapshots; sandbox_undo takes back the last run's variables",
	"secrets":       "a sandbox has no way out over which a secret could go; the user's servers have their own",
	"allow_out": "a sandbox has no network, so there is nothing to allow; its code calls the user's " +
		"servers",
	"deny_out":       "a sandbox has no network: all is denied",
	"preview_access": "a sandbox has no way in, so there are no previews",
	"vcpu": "the cores of a sandbox are the user's setting: MCP_BRIDGE_CPUS, or limits of the " +
		"environment",
	"memory_mib": "the memory of a sandbox is the user's setting: MCP_BRIDGE_MEMORY, or limits of the " +
		"environment",
	"disk_mib":  "the size of /workspace is fixed",
	"start_cmd": "a template has no processes; start them by sandbox_exec",
	"ready_cmd": "a template has no processes; start them by sandbox_exec",
}

// given are the arguments of a call. Its methods note the first that is wrong, and return a zero
// value then.
type given struct {
	values map[string]json.RawMessage
	nulls  map[string]bool // those that are null
	wrong  error
}

// decode reads the arguments of a tool. The error is an args.Error.
func (g *given) decode(t tool, raw json.RawMessage) error {
	var names []string
	for _, f := range t.args {
		names = append(names, f.name)
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(raw, &all) // Fields says what is wrong with it
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if why := without[name]; why != "" && !slices.Contains(names, name) {
			return args.Errorf("argument %q can't be taken: %s", name, why)
		}
	}
	given, err := args.Fields(raw, t.name, names)
	if err != nil {
		return err
	}
	for _, f := range t.args {
		if f.required && given[f.name] == nil {
			return args.Errorf("argument %q is missing", f.name)
		}
	}
	g.values, g.nulls = given, map[string]bool{}
	for name, v := range all {
		g.nulls[name] = string(v) == "null"
	}
	return nil
}

// fail notes what is wrong.
func (g *given) fail(format string, a ...any) {
	if g.wrong == nil {
		g.wrong = args.Errorf(format, a...)
	}
}

// has reports whether an argument is given.
func (g *given) has(name string) bool { return g.values[name] != nil }

// value returns an argument that must be what is said, the zero value if it isn't given.
func value[T any](g *given, name, what string) (is T) {
	if v := g.values[name]; v != nil && json.Unmarshal(v, &is) != nil {
		g.fail("argument %q must be "+what+", not %s", name, args.Kind(v))
	}
	return is
}

func (g *given) text(name string) string    { return value[string](g, name, "a string") }
func (g *given) yes(name string) bool       { return value[bool](g, name, "true or false") }
func (g *given) words(name string) []string { return value[[]string](g, name, "a list of strings") }

// number returns a whole number from least to most.
func (g *given) number(name string, absent, least, most int64) int64 {
	n, err := args.Integer(name, g.values[name], absent)
	if err != nil && g.wrong == nil {
		g.wrong = err
	}
	if g.has(name) && (n < least || n > most) {
		g.fail("argument %q must be from %d to %d, not %.40s", name, least, most, g.values[name])
	}
	return n
}

// Bounds of what a caller gives a sandbox, in bytes.
const (
	maxName     = 100
	maxMetadata = 16 << 10 // all names and values
	maxEnviron  = 64 << 10 // likewise
)

// texts returns an object whose values are strings, nil if it isn't given.
func (g *given) texts(name string, most int) (all map[string]string) {
	v := g.values[name]
	if v == nil {
		return nil
	}
	if json.Unmarshal(v, &all) != nil || all == nil {
		g.fail(`argument %q must be an object whose values are strings, such as {"a": "b"}`, name)
		return nil
	}
	size := 0
	for k, v := range all {
		size += len(k) + len(v)
	}
	if size > most {
		g.fail("argument %q is %d bytes long; at most %d can be kept", name, size, most)
	}
	return all
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// variables returns variables of the environment, nil if they aren't given.
func (g *given) variables(name string) map[string]string {
	all := g.texts(name, maxEnviron)
	for k, v := range all {
		if !variableName.MatchString(k) || strings.ContainsRune(v, 0) {
			g.fail("argument %q: %.60q can't be a variable of the environment", name, k)
		}
	}
	return all
}
