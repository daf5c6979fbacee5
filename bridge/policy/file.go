package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Bounds of a policy file.
const (
	maxFile     = 1 << 20 // bytes
	maxRules    = 1000    // rules, and limits
	maxPatterns = 10_000  // of all of them
)

// fileText is a policy file as TOML has it.
type fileText struct {
	Default Verdict            `toml:"default"`
	Rules   []ruleText         `toml:"rule"`
	Hints   map[string]Verdict `toml:"hints"`
	Limits  []limitText        `toml:"limit"`
}

type ruleText struct {
	Tools   []string `toml:"tools"`
	Except  []string `toml:"except"`
	Verdict Verdict  `toml:"verdict"`
	Reason  string   `toml:"reason"`
}

type limitText struct {
	Tools         []string `toml:"tools"`
	Except        []string `toml:"except"`
	Per           string   `toml:"per"`
	Calls         *int64   `toml:"calls"`
	ArgumentBytes *int64   `toml:"argument_bytes"`
}

// keysOf are the keys that a table may have, for the nearest to a wrong one.
var keysOf = map[string][]string{
	"":      {"default", "rule", "hints", "limit"},
	"rule":  {"tools", "except", "verdict", "reason"},
	"limit": {"tools", "except", "per", "calls", "argument_bytes"},
	"hints": {"read_only", "destructive", "idempotent", "open_world"},
}

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
	var bad *trust.Error
	if errors.As(e.Err, &bad) {
		return bad.Hint()
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
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err // the path is said already
		}
		return nil, &FileError{Path: path, Err: err}
	}
	return Parse(path, text)
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return text, err
}

// Parse reads the text of a policy file; path is what it is called in decisions and errors. A byte
// order mark before it is no part of it, as in the files that name servers.
func Parse(path string, text []byte) (*Policy, error) {
	whole := text
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		return nil, decodeError(path, err)
	}
	r := reader{path: path, lines: linesOf(text), misspelt: map[string]bool{}}
	r.check(values)
	var f fileText
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := dec.Decode(&f)
	var unknown *toml.StrictMissingError
	if err != nil && r.errs == nil {
		r.errs = append(r.errs, decodeError(path, err))
	}
	var p *Policy
	if err == nil || errors.As(err, &unknown) { // else f lacks what stands behind the mistake
		p = r.policy(f)
	}
	if r.errs == nil {
		p.text = whole
		return p, nil
	}
	slices.SortStableFunc(r.errs, func(a, b *FileError) int { return cmp.Compare(a.Line, b.Line) })
	r.errs[0].More = r.errs[1:]
	return nil, r.errs[0]
}

// decodeError names the place of what TOML, or the form of a policy, doesn't have.
func decodeError(path string, err error) *FileError {
	out := &FileError{Path: path, Err: errors.New(strings.TrimPrefix(err.Error(), "toml: "))}
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		first := unknown.Errors[0]
		out.Line, _ = first.Position()
		out.Key = strings.Join(first.Key(), ".")
		out.Err = errors.New("there is no such key" + nearestKey(first.Key()))
	case errors.As(err, &bad):
		out.Line, _ = bad.Position()
		out.Key = strings.Join(bad.Key(), ".")
	}
	return out
}

// nearestKey returns a clause that names the key that was most likely meant.
func nearestKey(key []string) string {
	if len(key) == 0 {
		return ""
	}
	table, wrong := strings.Join(key[:len(key)-1], "."), key[len(key)-1]
	known := keysOf[table]
	if known == nil {
		return ""
	}
	if near := text.Nearest(wrong, known); near != nil {
		return fmt.Sprintf("; did you mean %s? (%s)", near[0], strings.Join(known, ", "))
	}
	return fmt.Sprintf(" (there are: %s)", strings.Join(known, ", "))
}

// maxMistakes bounds the mistakes that are told of one file.
const maxMistakes = 100

// reader makes a policy of what TOML has, and keeps the mistakes.
type reader struct {
	path     string
	lines    map[string]int
	patterns int
	misspelt map[string]bool // the tables that have a wrong key: what they seem to lack may be that
	errs     []*FileError
}

// fail keeps a mistake.
func (r *reader) fail(key string, format string, a ...any) {
	if len(r.errs) < maxMistakes {
		r.errs = append(r.errs, &FileError{Path: r.path, Line: r.line(key), Key: withoutNumbers(key),
			Err: fmt.Errorf(format, a...)})
	}
}

// lacks keeps a mistake of a table that has no such key, unless one of its keys is wrong.
func (r *reader) lacks(table, key, format string, a ...any) {
	if !r.misspelt[table] {
		r.fail(table+key, format, a...)
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

func (r *reader) policy(f fileText) *Policy {
	p := &Policy{path: r.path}
	if len(f.Rules) > maxRules || len(f.Limits) > maxRules {
		r.fail("", "there are %d rules and %d limits; at most %d of each are read", len(f.Rules), len(f.Limits),
			maxRules)
		return nil
	}
	for i, t := range f.Rules {
		key := "rule." + strconv.Itoa(i)
		if t.Verdict == 0 {
			r.lacks(key, ".verdict", "the rule has no verdict: say allow, ask or deny")
		}
		p.rules = append(p.rules, rule{r.selection(key, t.Tools, t.Except), t.Verdict, t.Reason, r.lines[key]})
	}
	for i, t := range f.Limits {
		p.limits = append(p.limits, r.limit("limit."+strconv.Itoa(i), t))
	}
	for _, known := range hintKeys { // in the order of the table, so that no map's order shows
		if v, ok := f.Hints[known.key]; ok {
			p.hints = append(p.hints, hint{known.key, known.says, v, r.lines["hints."+known.key]})
			delete(f.Hints, known.key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Hints)) {
		r.fail("hints."+key, "there is no such hint%s", nearestKey([]string{"hints", key}))
	}
	p.base = Decision{Verdict: f.Default, Source: p.at("default", r.lines["default"])}
	if f.Default == 0 {
		const silent = "nothing in the file speaks of it, and it sets no default"
		p.base = Decision{Verdict: Allow, Source: p.at(silent, 0)}
	}
	return p
}

func (r *reader) selection(key string, tools, except []string) selection {
	if len(tools) == 0 {
		r.lacks(key, ".tools", `it names no tools: say tools = ["SERVER.TOOL"], with * for any`)
	}
	return selection{r.globs(key+".tools", tools), r.globs(key+".except", except)}
}

func (r *reader) globs(key string, texts []string) []glob {
	var out []glob
	for _, text := range texts {
		if r.patterns++; r.patterns > maxPatterns {
			r.fail(key, "there are more than %d patterns in the file", maxPatterns)
			return nil
		}
		g, err := parseGlob(text)
		if err != nil {
			r.fail(key, "%w", err)
		}
		g.line = r.line(key)
		out = append(out, g)
	}
	return out
}

func (r *reader) limit(key string, t limitText) limit {
	l := limit{tools: r.selection(key, t.Tools, t.Except), line: r.lines[key]}
	switch t.Per {
	case "", "run":
		l.per = perRun
	case "server":
		l.per = perServer
	case "tool":
		l.per = perTool
	default:
		r.fail(key+".per", "calls are counted per run, server or tool, not per %q", t.Per)
	}
	if t.Calls == nil && t.ArgumentBytes == nil {
		r.lacks(key, "", "it limits nothing: set calls or argument_bytes")
	}
	l.calls, l.bytes = r.bound(key+".calls", t.Calls), r.bound(key+".argument_bytes", t.ArgumentBytes)
	return l
}

// bound returns a limit's number, or -1 without one.
func (r *reader) bound(key string, n *int64) int64 {
	if n == nil {
		return -1
	}
	if *n < 0 {
		r.fail(key, "a limit must not be negative")
	}
	return *n
}

// linesOf returns on which line each key stands, as rule.0.tools, and each table, as rule.0. Its text
// has been decoded already.
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
	var parts []string
	for _, part := range strings.Split(key, ".") {
		if _, err := strconv.Atoi(part); err != nil {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}
