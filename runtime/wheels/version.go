package wheels

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is a version of PEP 440. Its zero value is no version.
type version struct {
	text       string
	epoch      int64
	release    []int64 // as written, with trailing zeros
	phase, pre int64   // of a pre-release; phase is -1 below all of them and 3 above
	post, dev  int64   // -1 for no post-release, never for no development release
	local      string
}

const never = int64(1) << 62

var (
	versionPattern = regexp.MustCompile(`(?i)^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
		`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]*))?` +
		`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]*))?` +
		`(?:[-_.]?(dev)[-_.]?([0-9]*))?` +
		`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)
	zerosPattern = regexp.MustCompile(`(^|\.)0+([0-9])`)
	phases       = map[string]int64{"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2,
		"preview": 2}
	dots = strings.NewReplacer("-", ".", "_", ".")
)

// maxVersion bounds the length of a version, maxDigits that of a number in it.
const maxVersion, maxDigits = 200, 18

func parseVersion(text string) (version, error) {
	text = strings.TrimSpace(text)
	m := versionPattern.FindStringSubmatch(text)
	if m == nil || len(text) > maxVersion {
		return version{}, fmt.Errorf("%q is no version (PEP 440)", cut(text))
	}
	tooLong := false
	number := func(digits string) int64 {
		n, err := strconv.ParseInt(cmp.Or(digits, "0"), 10, 64)
		tooLong = tooLong || err != nil || len(digits) > maxDigits
		return n
	}
	v := version{text: text, epoch: number(m[1]), phase: 3, post: -1, dev: never}
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	if m[5] != "" || m[6] != "" {
		v.post = number(m[5] + m[7])
	}
	if m[8] != "" {
		v.dev = number(m[9])
	}
	if m[3] != "" {
		v.phase, v.pre = phases[strings.ToLower(m[3])], number(m[4])
	} else if v.post < 0 && v.dev != never {
		v.phase = -1
	}
	v.local = zerosPattern.ReplaceAllString(dots.Replace(strings.ToLower(m[10])), "$1$2")
	if tooLong {
		return version{}, fmt.Errorf("%q has a number of more than %d digits", cut(text), maxDigits)
	}
	return v, nil
}

func (v version) String() string { return v.text }

// public returns v without its local part, stem without its post-release and development release
// too.
func (v version) public() version { v.local = ""; return v }

func (v version) stem() version { v.post, v.dev, v.local = -1, never, ""; return v }

func (v version) preRelease() bool { return v.phase != 3 || v.dev != never }

// trimmed returns the release without trailing zeros: 1.0 and 1 are the same.
func (v version) trimmed() []int64 {
	n := len(v.release)
	for n > 0 && v.release[n-1] == 0 {
		n--
	}
	return v.release[:n]
}

// compare returns how v is ordered beside o, as cmp.Compare does. Two local versions of one version
// are only equal or not, since no condition asks for their order.
func (v version) compare(o version) int {
	return cmp.Or(cmp.Compare(v.epoch, o.epoch), slices.Compare(v.trimmed(), o.trimmed()),
		cmp.Compare(v.phase, o.phase), cmp.Compare(v.pre, o.pre), cmp.Compare(v.post, o.post),
		cmp.Compare(v.dev, o.dev), cmp.Compare(v.local, o.local))
}

// specifiers are conditions that a version has to meet, all of them: ">=2,<4".
type specifiers []specifier

type specifier struct {
	op     string
	v      version
	prefix bool // the release of v is the beginning of those that are meant: 2.1.*
}

var specifierPattern = regexp.MustCompile(`^(===|==|!=|~=|<=|>=|<|>)\s*([!-~]+)$`)

func parseSpecifiers(text string) (specifiers, error) {
	var all specifiers
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue // a comma at the end is allowed
		}
		s, err := parseSpecifier(part)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseSpecifier(text string) (specifier, error) {
	m := specifierPattern.FindStringSubmatch(text)
	if m == nil || len(text) > maxVersion {
		return specifier{}, fmt.Errorf("%q is no condition on a version, such as >=2", cut(text))
	}
	s := specifier{op: m[1]}
	if s.op == "===" {
		s.v.text = m[2]
		return s, nil
	}
	equality := s.op == "==" || s.op == "!="
	written := m[2]
	if equality {
		written, s.prefix = strings.CutSuffix(written, ".*")
	}
	var err error
	if s.v, err = parseVersion(written); err != nil {
		return specifier{}, err
	}
	switch {
	case s.prefix && (s.v.preRelease() || s.v.post >= 0 || s.v.local != ""),
		s.v.local != "" && !equality,
		s.op == "~=" && len(s.v.release) < 2:
		return specifier{}, fmt.Errorf("%q can't be asked for: PEP 440 has no such condition", cut(text))
	}
	return s, nil
}

// match reports whether v meets all conditions. Pre-releases are not treated apart: v is there.
func (all specifiers) match(v version) bool {
	return !slices.ContainsFunc(all, func(s specifier) bool { return !s.match(v) })
}

func (s specifier) match(v version) bool {
	switch s.op {
	case "===":
		return strings.EqualFold(v.text, s.v.text)
	case "==":
		return s.equal(v)
	case "!=":
		return !s.equal(v)
	case "<=":
		return v.public().compare(s.v) <= 0
	case ">=":
		return v.public().compare(s.v) >= 0
	case "~=":
		series := version{epoch: s.v.epoch, release: s.v.release[:len(s.v.release)-1]}
		return v.public().compare(s.v) >= 0 && v.begins(series)
	case "<":
		first := s.v // of what is not below v: its own pre-releases aren't meant either
		if !s.v.preRelease() {
			first.dev = 0
			if first.post < 0 {
				first.phase = -1
			}
		}
		return v.compare(first) < 0
	}
	// Neither the local versions nor the post-releases of a version are above it.
	itsPost := s.v.post < 0 && v.post >= 0 && v.stem().compare(s.v.stem()) == 0
	return v.public().compare(s.v) > 0 && !itsPost
}

func (s specifier) equal(v version) bool {
	switch {
	case s.prefix:
		return v.begins(s.v)
	case s.v.local == "":
		v = v.public()
	}
	return v.compare(s.v) == 0
}

// begins reports whether v's release begins with that of series, with zeros added where it is
// shorter.
func (v version) begins(series version) bool {
	if v.epoch != series.epoch {
		return false
	}
	for i, n := range series.release {
		if i < len(v.release) && v.release[i] != n || i >= len(v.release) && n != 0 {
			return false
		}
	}
	return true
}

// cut shortens text for an error.
func cut(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
