package wheels

import (
	"fmt"
	"regexp"
	"strings"
)

// marker is a condition on the interpreter (PEP 508): python_version < "3.14" and os_name == "posix".
// Nothing that it may ask for is unknown but the kernel's release and version.
type marker struct {
	tokens []string
	values map[string]string
}

var tokenPattern = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[()]|===|==|~=|!=|<=|>=|<|>|[a-zA-Z_][a-zA-Z0-9_.]*)`)

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
	m := marker{values: values}
	bad := fmt.Errorf("the marker %q can't be read (PEP 508)", cut(text))
	if len(text) > maxMarker {
		return false, bad
	}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		token := tokenPattern.FindStringSubmatch(rest)
		if token == nil {
			return false, bad
		}
		m.tokens = append(m.tokens, token[1])
		rest = rest[len(token[0]):]
	}
	is, err := m.either()
	if err == nil && len(m.tokens) > 0 {
		err = bad
	}
	if err != nil {
		return false, fmt.Errorf("in the marker %q: %w", cut(text), err)
	}
	return is, nil
}

// next takes the next token off if it is one of those given, or whatever it is if none are.
func (m *marker) next(wanted ...string) string {
	if len(m.tokens) == 0 {
		return ""
	}
	token := m.tokens[0]
	for i, w := range wanted {
		if w == token {
			break
		} else if i == len(wanted)-1 {
			return ""
		}
	}
	m.tokens = m.tokens[1:]
	return token
}

func (m *marker) either() (bool, error) {
	is, err := m.both()
	for err == nil && m.next("or") != "" {
		var other bool
		other, err = m.both()
		is = is || other
	}
	return is, err
}

func (m *marker) both() (bool, error) {
	is, err := m.one()
	for err == nil && m.next("and") != "" {
		var other bool
		other, err = m.one()
		is = is && other
	}
	return is, err
}

func (m *marker) one() (bool, error) {
	if m.next("(") != "" {
		is, err := m.either()
		if err == nil && m.next(")") == "" {
			err = fmt.Errorf("a parenthesis isn't closed")
		}
		return is, err
	}
	left, err := m.value()
	if err != nil {
		return false, err
	}
	op := m.next()
	if op == "not" {
		op += " " + m.next("in")
	}
	right, err := m.value()
	if err != nil {
		return false, err
	}
	return compareValues(left, op, right)
}

func (m *marker) value() (string, error) {
	token := m.next()
	if strings.HasPrefix(token, `"`) || strings.HasPrefix(token, "'") {
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
	switch op {
	case "==", "===":
		return left == right, nil
	case "!=":
		return left != right, nil
	case "<":
		return left < right, nil
	case "<=":
		return left <= right, nil
	case ">":
		return left > right, nil
	case ">=":
		return left >= right, nil
	}
	return false, fmt.Errorf("%q and %q can't be compared by %q", cut(left), cut(right), cut(op))
}
