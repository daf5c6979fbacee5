package wheels

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Lock is a list of packages with the hashes of their wheels.
type Lock struct {
	Digest         string // of its text, "sha256:…"
	RequiresPython string
	Environments   []string // markers, one of which must hold; none for any interpreter
	Packages       []Package
}

// Package is one of a lock.
type Package struct {
	Name           string // normalized
	Version        string // empty if only the wheels' names tell
	Marker         string
	RequiresPython string
	Wheels         []Wheel
}

// Wheel is a file that a lock names.
type Wheel struct {
	File   string // its name, which tells what it is for
	URL    string
	Size   int64 // zero if the lock doesn't tell
	SHA256 string

	version string
	build   string
	tags    tags
}

// Chosen is the wheel of a package that fits an interpreter.
type Chosen struct {
	Name, Version string
	Wheel
}

// Bounds of what is read, downloaded and written.
const (
	maxLock     = 4 << 20
	maxPackages = 2000
	maxWheel    = 1 << 30
	maxUnpacked = 2 << 30 // of all wheels
	maxFiles    = 20_000
)

// relock is what to do about a lock that can't be used.
const relock = "make one with uv pip compile requirements.in --format pylock.toml -o pylock.toml" +
	" --only-binary :all:"

// relock is the same for an interpreter.
func (ip Interpreter) relock() string {
	return relock + " --python-version " + ip.Version + " --python-platform " + ip.Platform()
}

// Platform returns the platform of ip, as uv calls it.
func (ip Interpreter) Platform() string {
	if ip.Glibc == "" {
		return ip.Machine + "-unknown-linux-musl"
	}
	if major, minor, err := numbers(ip.Glibc); err == nil && (major < 2 || major == 2 && minor < 28) {
		return ip.Machine + "-manylinux2014"
	}
	return ip.Machine + "-manylinux_2_28"
}

type lockFile struct {
	Version        string   `toml:"lock-version"`
	RequiresPython string   `toml:"requires-python"`
	Environments   []string `toml:"environments"`
	Packages       []struct {
		Name           string `toml:"name"`
		Version        string `toml:"version"`
		Marker         string `toml:"marker"`
		RequiresPython string `toml:"requires-python"`
		Wheels         []struct {
			Name   string            `toml:"name"`
			URL    string            `toml:"url"`
			Size   int64             `toml:"size"`
			Hashes map[string]string `toml:"hashes"`
		} `toml:"wheels"`
	} `toml:"packages"`
}

// Parse reads a pylock.toml (PEP 751) of version 1.0. Each wheel must have a SHA-256 and a URL.
func Parse(text []byte) (*Lock, error) {
	if len(text) > maxLock {
		return nil, fmt.Errorf("the lock has %d bytes; at most %d are read", len(text), maxLock)
	}
	var file lockFile
	if err := toml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("the lock is no pylock.toml: %w", err)
	}
	if file.Version != "1.0" {
		return nil, fmt.Errorf("the lock has lock-version %q; only 1.0 is known: %s", cut(file.Version), relock)
	}
	if len(file.Packages) == 0 || len(file.Packages) > maxPackages {
		return nil, fmt.Errorf("the lock has %d packages; 1 to %d are allowed", len(file.Packages), maxPackages)
	}
	sum := sha256.Sum256(text)
	l := &Lock{Digest: "sha256:" + hex.EncodeToString(sum[:]), RequiresPython: file.RequiresPython,
		Environments: file.Environments}
	for _, f := range file.Packages {
		p := Package{Name: Normalize(f.Name), Version: f.Version, Marker: f.Marker,
			RequiresPython: f.RequiresPython}
		if !namePattern.MatchString(f.Name) {
			return nil, fmt.Errorf("%q is no name of a package", cut(f.Name))
		}
		for _, w := range f.Wheels {
			wheel, err := parseWheel(p, w.Name, w.URL, w.Size, w.Hashes)
			if err != nil {
				return nil, fmt.Errorf("package %s: %w", p.Name, err)
			}
			p.Wheels = append(p.Wheels, wheel)
		}
		l.Packages = append(l.Packages, p)
	}
	return l, nil
}

var (
	// The name of a wheel (PEP 427): name, version, perhaps a build, and three kinds of tags.
	filePattern = regexp.MustCompile(`^([A-Za-z0-9_.]+)-([A-Za-z0-9_.!+]+)(?:-([0-9][A-Za-z0-9_.]*))?` +
		`-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)\.whl$`)
	hashPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func parseWheel(p Package, file, address string, size int64, hashes map[string]string) (Wheel, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Wheel{}, fmt.Errorf("a wheel's URL can't be read: %w", err)
	}
	file = cmp.Or(file, path.Base(u.Path))
	m := filePattern.FindStringSubmatch(file)
	if m == nil || len(file) > 255 {
		return Wheel{}, fmt.Errorf("%q is no file name of a wheel", cut(file))
	}
	w := Wheel{File: file, URL: address, Size: size, SHA256: strings.ToLower(hashes["sha256"]), version: m[2],
		build: m[3], tags: m[4:7]}
	switch {
	case !hashPattern.MatchString(w.SHA256):
		return Wheel{}, fmt.Errorf("%s has no sha256 in the lock, so that what is downloaded can't be checked: %s",
			file, relock)
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return Wheel{}, fmt.Errorf("%s has no https URL in the lock; wheels in directories aren't used", file)
	case size < 0 || size > maxWheel:
		return Wheel{}, fmt.Errorf("%s has %d bytes; at most %d are allowed", file, size, int64(maxWheel))
	case Normalize(m[1]) != p.Name:
		return Wheel{}, fmt.Errorf("%s is a wheel of another package", file)
	}
	v, err := parseVersion(w.version)
	if err != nil {
		return Wheel{}, fmt.Errorf("%s: %w", file, err)
	}
	if p.Version != "" {
		if locked, err := parseVersion(p.Version); err != nil {
			return Wheel{}, err
		} else if v.compare(locked) != 0 {
			return Wheel{}, fmt.Errorf("%s is a wheel of another version than %s", file, p.Version)
		}
	}
	return w, nil
}

// Choose returns for each package that ip needs the wheel that fits it best, in the order of names.
func (l *Lock) Choose(ip Interpreter) ([]Chosen, error) {
	rank, err := ip.tags()
	if err != nil {
		return nil, err
	}
	if err := l.made(ip); err != nil {
		return nil, err
	}
	var all []Chosen
	var total int64
	for _, p := range l.Packages {
		if needed, err := holds(p.Marker, ip); err != nil {
			return nil, fmt.Errorf("package %s: %w", p.Name, err)
		} else if !needed {
			continue
		}
		c, err := p.choose(ip, rank)
		if err != nil {
			return nil, fmt.Errorf("package %s: %w", p.Name, err)
		}
		total += c.Size
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Chosen) int { return cmp.Compare(a.Name, b.Name) })
	for i, c := range all[min(1, len(all)):] {
		if c.Name == all[i].Name {
			return nil, fmt.Errorf("the lock has two versions of %s for %s, %s and %s: %s", c.Name, ip,
				all[i].Version, c.Version, ip.relock())
		}
	}
	if total > maxUnpacked {
		return nil, fmt.Errorf("the wheels have %d bytes; at most %d are allowed", total, int64(maxUnpacked))
	}
	return all, nil
}

// made returns an error if l was made for other interpreters than ip.
func (l *Lock) made(ip Interpreter) error {
	fits, err := pythonFits(l.RequiresPython, ip)
	if err != nil {
		return fmt.Errorf("requires-python of the lock: %w", err)
	}
	if !fits {
		return fmt.Errorf("the lock requires Python %s, and there is %s: %s", l.RequiresPython, ip, ip.relock())
	}
	if len(l.Environments) == 0 {
		return nil
	}
	for _, marker := range l.Environments {
		if is, err := holds(marker, ip); is || err != nil {
			return err
		}
	}
	return fmt.Errorf("the lock was not made for %s (its environments are others): %s", ip, ip.relock())
}

func (p Package) choose(ip Interpreter, rank map[string]int) (Chosen, error) {
	if fits, err := pythonFits(p.RequiresPython, ip); err != nil || !fits {
		return Chosen{}, errors.Join(err, fmt.Errorf("it requires Python %s, and there is %s: %s",
			p.RequiresPython, ip, ip.relock()))
	}
	if len(p.Wheels) == 0 {
		return Chosen{}, fmt.Errorf("the lock has no wheel of it, at most sources. Only wheels are used, since"+
			" building one runs the package's own code here: %s", ip.relock())
	}
	best := slices.MinFunc(p.Wheels, func(a, b Wheel) int {
		return cmp.Or(cmp.Compare(a.tags.rank(rank), b.tags.rank(rank)), compareBuilds(b.build, a.build),
			cmp.Compare(a.File, b.File))
	})
	if best.tags.rank(rank) == len(rank) {
		return Chosen{}, fmt.Errorf("none of its %d wheels in the lock fits %s: %s", len(p.Wheels), ip, ip.relock())
	}
	return Chosen{Name: p.Name, Version: cmp.Or(p.Version, best.version), Wheel: best}, nil
}
