package wheels

import (
	"cmp"
	"fmt"
	"strings"
)

// tags are three sets, of Pythons, ABIs and platforms, whose members dots separate (PEP 425). Each
// combination is a tag: cp313-cp313-manylinux_2_28_x86_64.
type tags []string

// maxTags bounds the combinations that are looked at.
const maxTags = 1000

// rank returns the place of the best tag, or the number of places if none fits.
func (t tags) rank(rank map[string]int) int {
	best, left := len(rank), maxTags
	for python := range strings.SplitSeq(t[0], ".") {
		for abi := range strings.SplitSeq(t[1], ".") {
			for platform := range strings.SplitSeq(t[2], ".") {
				if left--; left < 0 {
					return best
				}
				if n, fits := rank[python+"-"+abi+"-"+platform]; fits {
					best = min(best, n)
				}
			}
		}
	}
	return best
}

// tags returns the tags of wheels that ip can use, and how well each fits: 0 is best. The order is
// pip's, which PEP 425 leaves to installers.
func (ip Interpreter) tags() (map[string]int, error) {
	major, minor, err := numbers(ip.Version)
	if err != nil || major != 3 || minor < 2 || minor > 99 {
		return nil, fmt.Errorf("wheels can't be chosen for Python %q: it must be of 3.x", cut(ip.Version))
	}
	platforms, err := ip.platforms()
	if err != nil {
		return nil, err
	}
	rank := map[string]int{}
	add := func(python, abi string, platforms ...string) {
		for _, p := range platforms {
			tag := python + "-" + abi + "-" + p
			if _, known := rank[tag]; !known {
				rank[tag] = len(rank)
			}
		}
	}
	cp := func(n int) string { return fmt.Sprintf("cp3%d", n) }
	py := func(n int) string { return fmt.Sprintf("py3%d", n) }
	add(cp(minor), cp(minor), platforms...)
	add(cp(minor), "abi3", platforms...)
	add(cp(minor), "none", platforms...)
	for n := minor - 1; n >= 2; n-- {
		add(cp(n), "abi3", platforms...)
	}
	for _, platforms := range [][]string{platforms, {"any"}} {
		if platforms[0] == "any" {
			add(cp(minor), "none", "any")
		}
		add(py(minor), "none", platforms...)
		add("py3", "none", platforms...)
		for n := minor - 1; n >= 0; n-- {
			add(py(n), "none", platforms...)
		}
	}
	return rank, nil
}

// platforms returns the names of ip's platform, the newest first: PEP 600 has glibc's, with older
// names for three of them, and PEP 656 musl's.
func (ip Interpreter) platforms() (all []string, err error) {
	if strings.Trim(ip.Machine, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || ip.Machine == "" {
		return nil, fmt.Errorf("%q is no architecture such as x86_64", cut(ip.Machine))
	}
	major, minor, err := numbers(cmp.Or(ip.Glibc, ip.Musl))
	if err == nil && minor > 999 {
		err = fmt.Errorf("%d is no minor version", minor)
	}
	if err != nil {
		return nil, fmt.Errorf("wheels can't be chosen without the version of glibc or musl: %w", err)
	}
	oldest, prefix, older := 17, "manylinux", map[int]string{17: "manylinux2014"}
	switch {
	case ip.Glibc == "":
		oldest, prefix, older = 0, "musllinux", nil
	case ip.Machine == "x86_64":
		oldest, older[12], older[5] = 5, "manylinux2010", "manylinux1"
	}
	for n := minor; n >= oldest; n-- {
		all = append(all, fmt.Sprintf("%s_%d_%d_%s", prefix, major, n, ip.Machine))
		if name, has := older[n]; has {
			all = append(all, name+"_"+ip.Machine)
		}
	}
	return append(all, "linux_"+ip.Machine), nil
}

// compareBuilds orders build tags by their number, then by what follows it.
func compareBuilds(a, b string) int {
	var m, n uint64 // zero where there isn't one, or one beyond reason
	_, _ = fmt.Sscanf(a, "%d", &m)
	_, _ = fmt.Sscanf(b, "%d", &n)
	return cmp.Or(cmp.Compare(m, n), strings.Compare(a, b))
}
