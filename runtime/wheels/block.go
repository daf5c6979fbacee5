package wheels

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Block is what code asks for in a comment of its own (PEP 723).
type Block struct {
	RequiresPython string
	Dependencies   []Requirement
}

// blockPattern is the one that PEP 723 itself gives.
var blockPattern = regexp.MustCompile(`(?m)^# /// ([a-zA-Z0-9-]+)$\s((?:^#(?:| .*)$\s)+)^# ///$`)

// openingPattern matches a line that is to begin a block, or a misspelt one.
var openingPattern = regexp.MustCompile(`(?m)^#[ \t]*///[ \t]*([a-zA-Z0-9-]+)[ \t]*:?[ \t]*$`)

// dependenciesPattern matches the line of a block that matters.
var dependenciesPattern = regexp.MustCompile(`(?m)^#[ \t]*dependencies[ \t]*=`)

// blockKeys are the keys of a block, beside tool, which is for other tools.
var blockKeys = []string{"dependencies", "requires-python"}

// maxDependencies bounds the list of a block.
const maxDependencies = 200

var errNoList = errors.New("dependencies of the block \"# /// script\" must be a list of strings")

// ParseBlock returns the block "# /// script" of code, or nil if there isn't one. One above the
// first statement that isn't closed, or has another name by mistake, is an error: PEP 723 has it
// ignored, which would show only where the code can't import a package.
func ParseBlock(code string) (*Block, error) {
	if !strings.Contains(code, "///") {
		return nil, nil // spares code without a block the regular expressions
	}
	code = strings.ReplaceAll(strings.TrimPrefix(code, "\ufeff"), "\r\n", "\n")
	var found string
	for _, m := range blockPattern.FindAllStringSubmatch(code, -1) {
		if m[1] != "script" {
			continue
		}
		if found != "" {
			return nil, fmt.Errorf("the code has two blocks \"# /// script\"; only one is allowed")
		}
		found = m[2]
	}
	if found == "" {
		return nil, nearBlock(code)
	}
	var comment strings.Builder
	for line := range strings.Lines(found) {
		comment.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	var file map[string]any
	if err := toml.Unmarshal([]byte(comment.String()), &file); err != nil {
		return nil, noTOML(comment.String(), err)
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if key == "tool" || slices.Contains(blockKeys, key) {
			continue
		}
		if near := text.DidYouMean(key, blockKeys); near != "" {
			return nil, fmt.Errorf("the block \"# /// script\" has no key %q%s", cut(key), near)
		}
	}
	requires, ok := file["requires-python"].(string)
	if !ok && file["requires-python"] != nil {
		return nil, fmt.Errorf("requires-python of the block \"# /// script\" must be a string")
	}
	if _, err := parseSpecifiers(requires); err != nil {
		return nil, fmt.Errorf("requires-python of the block \"# /// script\": %w", err)
	}
	dependencies, ok := file["dependencies"].([]any)
	if !ok && file["dependencies"] != nil {
		return nil, errNoList
	}
	if len(dependencies) > maxDependencies {
		return nil, fmt.Errorf("the block \"# /// script\" has more than %d dependencies", maxDependencies)
	}
	b := &Block{RequiresPython: requires}
	for _, d := range dependencies {
		asked, ok := d.(string)
		if !ok {
			return nil, errNoList
		}
		r, err := ParseRequirement(asked)
		if err != nil {
			return nil, fmt.Errorf("dependencies of the block \"# /// script\": %w", err)
		}
		b.Dependencies = append(b.Dependencies, r)
	}
	return b, nil
}

// noTOML returns an error of TOML in a block, with the line that it is about.
func noTOML(block string, err error) error {
	at, where := (*toml.DecodeError)(nil), ""
	if errors.As(err, &at) {
		row, _ := at.Position()
		if lines := strings.Split(block, "\n"); row >= 1 && row <= len(lines) {
			where = fmt.Sprintf(" in its line %d, %q", row, cut("# "+lines[row-1]))
		}
	}
	return fmt.Errorf("the block \"# /// script\" is no TOML%s: %w", where, err)
}

// nearBlock returns an error for a block of dependencies above the first statement that isn't
// closed, or is misspelt. Below it the same lines may be part of a text.
func nearBlock(code string) error {
	var head strings.Builder
	for line := range strings.Lines(code) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			break
		}
		head.WriteString(line)
	}
	if !dependenciesPattern.MatchString(head.String()) {
		return nil
	}
	for _, m := range openingPattern.FindAllStringSubmatch(head.String(), -1) {
		if m[1] == "script" || text.DidYouMean(m[1], []string{"script"}) != "" {
			return fmt.Errorf("the line %q begins no block: a block is a line \"# /// script\", lines that begin "+
				"with \"# \", and a line \"# ///\"", cut(m[0]))
		}
	}
	return nil
}

// Requirement asks for a package (PEP 508): pandas>=2; python_version >= "3.11". Its extras are
// dropped: an environment either has what they stand for or it doesn't, which the import shows.
type Requirement struct {
	Name   string // normalized
	Text   string // as written
	wanted specifiers
	marker string
}

// The marker's semicolon ends the conditions, which can be in parentheses.
var requirementPattern = regexp.MustCompile(
	`^([a-zA-Z0-9][a-zA-Z0-9._-]*?)\s*(?:\[[^\]]*\])?\s*(?:([=!~<>][^;()]*)|\(([^;()]*)\)|(@.*))?\s*(?:;(.*))?$`)

// ParseRequirement reads one requirement of a package by name. One at a URL is refused.
func ParseRequirement(text string) (Requirement, error) {
	m := requirementPattern.FindStringSubmatch(strings.TrimSpace(text))
	switch {
	case m == nil || len(text) > maxMarker ||
		strings.ContainsFunc(text, unprintable) || !namePattern.MatchString(m[1]):
		return Requirement{}, fmt.Errorf("%q is no requirement such as pandas>=2 (PEP 508)", cut(text))
	case m[4] != "":
		return Requirement{}, fmt.Errorf("%q asks for a URL; only packages by name can be asked for", cut(text))
	}
	wanted, err := parseSpecifiers(m[2] + m[3])
	if err != nil {
		return Requirement{}, fmt.Errorf("in %q: %w", cut(text), err)
	}
	return Requirement{Name: Normalize(m[1]), Text: text, wanted: wanted, marker: m[5]}, nil
}

// Missing returns what of b an environment with ip and the packages have lacks, as words for a
// person: requirements as they are written, and the version of Python. Requirements whose marker is
// false for ip ask for nothing.
func (b *Block) Missing(ip Interpreter, have []Distribution) (missing []string, err error) {
	fits, err := pythonFits(b.RequiresPython, ip)
	if err != nil {
		return nil, err
	}
	if !fits {
		missing = append(missing, "Python "+b.RequiresPython)
	}
	for _, r := range b.Dependencies {
		asked, err := holds(r.marker, ip)
		if err != nil {
			return nil, err
		}
		if asked && !r.metBy(have) {
			missing = append(missing, r.Text)
		}
	}
	return missing, nil
}

// Runs reports whether ip's version is one that b allows.
func (b *Block) Runs(ip Interpreter) bool {
	fits, err := pythonFits(b.RequiresPython, ip)
	return err == nil && fits
}

func (r Requirement) metBy(have []Distribution) bool {
	for _, d := range have {
		if d.Name == r.Name {
			v, err := parseVersion(d.Version)
			return err == nil && r.wanted.match(v)
		}
	}
	return false
}

// pythonFits reports whether ip's version is one that requires-python allows.
func pythonFits(requires string, ip Interpreter) (bool, error) {
	allowed, err := parseSpecifiers(requires)
	if err != nil {
		return false, err
	}
	v, err := parseVersion(ip.Version)
	return err == nil && allowed.match(v), err
}
