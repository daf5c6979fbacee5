// Package wheels turns a lock of Python packages into one tar of their unpacked wheels: it reads
// the lock (PEP 751), chooses the wheel that fits an interpreter, downloads what its cache lacks,
// and writes the same bytes for the same lock each time. It also tells which packages code asks for
// (PEP 723).
//
// Lock, index and wheels are not trusted beyond the hashes in the lock. Nothing of a package is run
// here, and no source distribution is ever used. The package knows no engine and no guest: its
// caller says what interpreter an image has, and puts the tar onto it.
package wheels

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Root is the directory below which the tar has all files.
const Root = "opt/env"

// Interpreter is a CPython for Linux as it says of itself.
type Interpreter struct {
	Version string // platform.python_version(): "3.13.1"
	Machine string // platform.machine(): "x86_64", "aarch64"
	Glibc   string // its version, "2.36"; empty with musl
	Musl    string // its version, "1.2"; empty with glibc
}

func (ip Interpreter) String() string {
	libc := "glibc " + ip.Glibc
	if ip.Glibc == "" {
		libc = "musl " + ip.Musl
	}
	return fmt.Sprintf("CPython %s on %s with %s", ip.Version, ip.Machine, libc)
}

// numbers returns the first two numbers of a version.
func numbers(text string) (major, minor int, err error) {
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil {
		return 0, 0, fmt.Errorf("%q is no version with two numbers", cut(text))
	}
	return major, minor, nil
}

var (
	namePattern = regexp.MustCompile(`^(?i:[a-z0-9]|[a-z0-9][a-z0-9._-]*[a-z0-9])$`)
	separators  = regexp.MustCompile(`[-_.]+`)
)

// Normalize returns the form of a package's name in which all spellings of it are equal.
func Normalize(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// Distribution is a package of an environment.
type Distribution struct {
	Name, Version string   // Name is normalized
	Imports       []string // the names that code imports, sorted
	LeftOut       []string // its .pth files, which Python would run at every start; sorted
}
