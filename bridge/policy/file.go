package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Bounds of a policy file.
const (
	maxFile     = 1 << 20 // bytes
	maxRules    = 1000    // rules, and limits
	maxPatterns = 10_000  // of all of them
	maxMistakes = 100     // that are told of one file
)

// A FileError says what is wrong with a policy file.
type FileError struct {
	Path string
	Line int    // 0 where it is about the whole file
	Key  string // such as rule.tools; empty where it is about none
	Err  error
	More []*FileError // the other mistakes of the file, which have none of their own
}

func (e *FileError) Error() string {
	more := ""
	if n := len(e.More); n > 0 {
		more = fmt.Sprintf(" (the first of %d mistakes)", n+1)
	}
	return "the policy can't be used: " + e.Mistake() + more
}

// Mistake returns the place and what is wrong there, of this mistake alone.
func (e *FileError) Mistake() string {
	place := e.Path
	if e.Line > 0 {
		place += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Key != "" {
		place += ", key " + e.Key
	}
	return fmt.Sprintf("%s: %v", place, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *FileError) Hint() string {
	if bad, ok := errors.AsType[*trust.Error](e.Err); ok {
		return bad.Hint()
	}
	if errors.Is(e.Err, fs.ErrPermission) {
		return "give the user that runs mcp-bridge leave to read " + e.Path + " and to enter its directories"
	}
	return "correct the file that MCP_BRIDGE_POLICY names; mcp-bridge policy check lists all mistakes"
}

// Read reads a policy file, whose path is absolute. Every error is a *FileError: a policy that is
// not understood as a whole is not used.
func Read(path string) (*Policy, error) {
	text, err := readFile(path)
	if err == nil {
		err = trust.System().File(path) // others could have written it, and then it allows what they want
	}
	if err != nil {
		if p, ok := errors.AsType[*os.PathError](err); ok {
			err = p.Err // the path is said already
		}
		return nil, &FileError{Path: path, Err: err}
	}
	return Parse(path, text)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return os.ReadFile(path)
}

// Parse reads the text of a policy file; path is what it is called in decisions and errors. A byte
// order mark before it is no part of it, as in the files that name servers.
func Parse(path string, text []byte) (*Policy, error) {
	whole := text
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		out := &FileError{Path: path, Err: errors.New(strings.TrimPrefix(err.Error(), "toml: "))}
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			out.Line, _ = bad.Position()
			out.Key = strings.Join(bad.Key(), ".")
		}
		return nil, out
	}
	r := reader{path: path, lines: linesOf(text)}
	p := r.policy(values)
	if r.errs == nil {
		p.text = whole
		return p, nil
	}
	slices.SortStableFunc(r.errs, func(a, b *FileError) int { return cmp.Compare(a.Line, b.Line) })
	r.errs[0].More = r.errs[1:]
	return nil, r.errs[0]
}

// reader makes a policy of what TOML has, and keeps the mistakes.
type reader struct {
	path     string
	lines    map[string]int
	patterns int
	errs     []*FileError
}

// fail keeps a mistake.
func (r *reader) fail(key string, format string, a ...any) {
	if len(r.errs) < maxMistakes {
		r.errs = append(r.errs, &FileError{Path: r.path, Line: r.line(key), Key: withoutNumbers(key),
			Err: fmt.Errorf(format, a...)})
	}
}

// line returns where a key or its table stands.
func (r *reader) line(key string) int {
	line := r.lines[key]
	for line == 0 && strings.Contains(key, ".") {
		key = key[:strings.LastIndexByte(key, '.')]
		line = r.lines[key]
	}
	return line
}

func (r *reader) policy(values map[string]any) *Policy {
	p := &Policy{path: r.path}
	file := &table{reader: r, values: values}
	base, rules := file.verdict("default"), file.tables("rule")
	hints, limits := file.table("hints"), file.tables("limit")
	packages := file.table("packages")
	file.end()
	p.packages = packages.packages()
	packages.end()
	if len(rules) > maxRules || len(limits) > maxRules {
		r.fail("", "there are %d rules and %d limits; at most %d of each are read", len(rules), len(limits),
			maxRules)
		return nil
	}
	p.file = &tables{}
	for _, t := range rules {
		p.file.rules = append(p.file.rules, t.rule())
	}
	for _, t := range limits {
		p.file.limits = append(p.file.limits, t.limit())
	}
	for _, known := range hintKeys { // in this order, so that no map's order shows
		if v := hints.verdict(known.key); v != 0 {
			p.hints = append(p.hints, hint{known.key, known.says, v, r.lines["hints."+known.key]})
		}
	}
	hints.end()
	p.base = Decision{Verdict: base, Source: p.at("default", r.lines["default"])}
	if base == 0 {
		const silent = "nothing in the file speaks of it, and it sets no default"
		p.base = Decision{Verdict: Allow, Source: p.at(silent, 0)}
	}
	p, _ = p.For(Local)
	return p
}

func (t *table) rule() rule {
	out := rule{
		who: t.principals(), tools: t.selection(), verdict: t.verdict("verdict"), line: t.reader.lines[t.path],
	}
	out.reason, _ = value[string](t, "reason", "a string, in quotes")
	t.end()
	if out.verdict == 0 {
		t.lacks("verdict", "the rule has no verdict: say allow, ask or deny")
	}
	t.needsTools()
	return out
}

func (t *table) limit() limit {
	out := limit{who: t.principals(), tools: t.selection(), calls: t.bound("calls"),
		bytes: t.bound("argument_bytes"), line: t.reader.lines[t.path]}
	per, _ := value[string](t, "per", "a string, in quotes")
	t.end()
	t.needsTools()
	switch per {
	case "", "run":
		out.per = perRun
	case "server":
		out.per = perServer
	case "tool":
		out.per = perTool
	default:
		t.fail("per", "calls are counted per run, server or tool, not per %q", per)
	}
	if out.calls < 0 && out.bytes < 0 {
		t.lacks("", "it limits nothing: set calls or argument_bytes")
	}
	return out
}

func (t *table) selection() selection { return selection{t.globs("tools"), t.globs("except")} }

// needsTools keeps a mistake of a table that names no tools.
func (t *table) needsTools() {
	if list, _ := t.values["tools"].([]any); len(list) == 0 {
		t.lacks("tools", `it names no tools: say tools = ["SERVER.TOOL"], with * for any`)
	}
}

func (t *table) globs(key string) (out []glob) {
	r, path := t.reader, t.at(key)
	for _, text := range list[string](t, key, `a list of strings such as ["github.*"]`) {
		if r.patterns++; r.patterns > maxPatterns {
			r.fail(path, "there are more than %d patterns in the file", maxPatterns)
			return nil
		}
		g, err := parseGlob(text)
		if err != nil {
			r.fail(path, "%w", err)
		}
		g.line = r.line(path)
		out = append(out, g)
	}
	return out
}

// principals returns whom the table is about. An empty list is a mistake, since it could be read as
// none and as all.
func (t *table) principals() (out principals) {
	const key = "who"
	names := list[string](t, key, `a list of strings such as ["alice", "team-*"]`)
	if _, there := t.values[key]; there && len(names) == 0 && !t.wrong {
		t.fail(key, "it names no principal; leave it out for all")
	}
	for _, text := range names {
		r := t.reader
		if r.patterns++; r.patterns > maxPatterns {
			r.fail(t.at(key), "there are more than %d patterns in the file", maxPatterns)
			return nil
		}
		h, err := parsePrincipal(text)
		if err != nil {
			t.fail(key, "%w", err)
		}
		out = append(out, h)
	}
	return out
}

// bound returns a limit's number, or -1 without one.
func (t *table) bound(key string) int64 {
	n, ok := value[int64](t, key, "a whole number such as 100")
	if !ok {
		return -1
	}
	if n < 0 {
		t.fail(key, "a limit must not be negative")
	}
	return n
}

// linesOf returns on which line each key stands, as rule.0.tools, and each table, as rule.0. Its
// text has been decoded already.
func linesOf(text []byte) map[string]int {
	lines := map[string]int{}
	tables := map[string]int{} // of each array of tables, how many there were
	table := ""
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		var parts []string
		line := 0
		for k := e.Key(); k.Next(); {
			parts = append(parts, string(k.Node().Data))
			if line == 0 {
				line = p.Shape(k.Node().Raw).Start.Line
			}
		}
		key := strings.Join(parts, ".")
		switch e.Kind {
		case unstable.ArrayTable:
			table = key + "." + strconv.Itoa(tables[key])
			tables[key]++
			lines[table] = line
		case unstable.Table:
			table = key
			lines[table] = line
		case unstable.KeyValue:
			if table != "" {
				key = table + "." + key
			}
			lines[key] = line
		}
	}
	return lines
}

// withoutNumbers returns a key as the file has it: rule.tools of rule.0.tools.
func withoutNumbers(key string) string {
	parts := slices.DeleteFunc(strings.Split(key, "."), func(part string) bool {
		_, err := strconv.Atoi(part)
		return err == nil
	})
	return strings.Join(parts, ".")
}
