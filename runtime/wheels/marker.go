package wheels

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// marker is a condition on the interpreter (PEP 508): python_version < "3.14" and os_name ==
// "posix". Nothing that it may ask for is unknown but the kernel's release and version.
type marker struct {
	tokens []string
	values map[string]string
}

// A character that begins no token is one by itself, and then wrong wherever it stands.
var tokenPattern = regexp.MustCompile(`"[^"]*"|'[^']*'|===|==|~=|!=|<=|>=|[a-zA-Z_][a-zA-Z0-9_.]*|\S`)

// maxMarker bounds the length of a marker, and with it how deep its parentheses nest.
const maxMarker = 4000

// markerValues returns what the variables of a marker are for ip.
func markerValues(ip Interpreter) (map[string]string, error) {
	major, minor, err := numbers(ip.Version)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"python_version": fmt.Sprintf("%d.%d", major, minor), "python_full_version": ip.Version,
		"implementation_version": ip.Version, "implementation_name": "cpython",
		"platform_python_implementation": "CPython", "os_name": "posix", "sys_platform": "linux",
		"platform_system": "Linux", "platform_machine": ip.Machine, "extra": "",
	}, nil
}

// holds reports whether a marker is true for ip. An empty one is.
func holds(text string, ip Interpreter) (bool, error) {
	if strings.TrimSpace(text) == "" {
		return true, nil
	}
	values, err := markerValues(ip)
	if err != nil {
		return false, err
	}
	if len(text) > maxMarker {
		return false, fmt.Errorf("the marker %q has more than %d bytes", cut(text), maxMarker)
	}
	m := marker{tokens: tokenPattern.FindAllString(text, -1), values: values}
	is, err := m.either()
	if err == nil && len(m.tokens) > 0 {
		err = fmt.Errorf("%q can't stand there (PEP 508)", m.tokens[0])
	}
	if err != nil {
		return false, fmt.Errorf("in the marker %q: %w", cut(text), err)
	}
	return is, nil
}

// next takes the next token off and returns it, or "" if there isn't one.
func (m *marker) next() (token string) {
	if len(m.tokens) > 0 {
		token, m.tokens = m.tokens[0], m.tokens[1:]
	}
	return token
}

// skip takes the next token off if it is the one wanted, and reports whether it was.
func (m *marker) skip(wanted string) bool {
	is := len(m.tokens) > 0 && m.tokens[0] == wanted
	if is {
		m.next()
	}
	return is
}

func (m *marker) either() (bool, error) {
	is, err := m.both()
	for err == nil && m.skip("or") {
		var other bool
		other, err = m.both()
		is = is || other
	}
	return is, err
}

func (m *marker) both() (bool, error) {
	is, err := m.one()
	for err == nil && m.skip("and") {
		var other bool
		other, err = m.one()
		is = is && other
	}
	return is, err
}

func (m *marker) one() (bool, error) {
	if m.skip("(") {
		is, err := m.either()
		if err == nil && !m.skip(")") {
			err = fmt.Errorf("a parenthesis isn't closed")
		}
		return is, err
	}
	left, err := m.value()
	if err != nil {
		return false, err
	}
	op := m.next()
	if op == "not" && m.skip("in") {
		op = "not in"
	}
	right, err := m.value()
	if err != nil {
		return false, err
	}
	return compareValues(left, op, right)
}

func (m *marker) value() (string, error) {
	token := m.next()
	if len(token) > 1 && strings.ContainsAny(token[:1], `"'`) {
		return token[1 : len(token)-1], nil
	}
	value, known := m.values[token]
	if !known {
		return "", fmt.Errorf("what %q stands for isn't known here", cut(token))
	}
	return value, nil
}

// compareValues compares versions where both sides can be read as that, and text otherwise.
func compareValues(left, op, right string) (bool, error) {
	switch op {
	case "in":
		return strings.Contains(right, left), nil
	case "not in":
		return !strings.Contains(right, left), nil
	}
	v, notVersion := parseVersion(left)
	if s, err := parseSpecifier(op + right); err == nil && notVersion == nil {
		return s.match(v), nil
	}
	allowed, known := orders[op]
	if !known {
		return false, fmt.Errorf("%q and %q can't be compared by %q", cut(left), cut(right), cut(op))
	}
	return slices.Contains(allowed, strings.Compare(left, right)), nil
}

// orders says how the text at the left may be ordered beside that at the right.
var orders = map[string][]int{"==": {0}, "===": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1},
	">=": {0, 1}}
