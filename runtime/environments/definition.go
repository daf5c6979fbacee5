package environments

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/pelletier/go-toml/v2"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

const (
	// Base is the name for no environment at all, which none can have.
	Base = "base"

	// Auto begins the names of the environments that are made because code asks for their packages.
	Auto = "auto-"
)

// maxAuto bounds how many of those have files.
const maxAuto = 20

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ValidName reports whether an environment can have that name.
func ValidName(name string) bool {
	return namePattern.MatchString(name) && len(name) <= 40 && name != Base
}

// ErrName says what a name has to be like.
var ErrName = errors.New("an environment's name has small letters, digits and single hyphens, 40 at most," +
	" and isn't base")

// Definition is an environment that is known, built or not.
type Definition struct {
	Name    string
	File    string   // NAME.toml; empty if it has none, as Data
	Image   string   // the base image; empty for the first of Config.Images that is there
	Pushed  string   // its own image in a registry, with the digest, for a cluster; empty for none
	Lock    string   // file; empty for the one that comes with the program
	Imports []string // modules to import ahead
	Limits  runtime.Limits
	Err     error // why it can't be used, or nil
}

// file is NAME.toml.
type file struct {
	Image   string   `toml:"image"`
	Pushed  string   `toml:"pushed"`
	Lock    string   `toml:"lock"`
	Imports []string `toml:"imports"`
	Limits  struct {
		Memory string  `toml:"memory"`
		PIDs   int64   `toml:"pids"`
		CPUs   float64 `toml:"cpus"`
	} `toml:"limits"`
}

// Bounds of NAME.toml.
const (
	maxFile     = 64 << 10
	maxImports  = 32
	maxSettings = 500 // files in the directory
	minMemory   = 64 << 20
	minPIDs     = 16
)

var importPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// settings are the user's files of environments: of each NAME.toml, its lock, the list of packages
// that this was made from, and the labels of an image that was pushed.
type settings struct {
	dir   string // empty for none
	trust trust.Owners
}

// Definitions returns all that have a file, and Data, by name.
func (s settings) Definitions() []Definition {
	var found []Definition
	files, _ := os.ReadDir(s.dir) // there may be none
	for _, f := range files[:min(len(files), maxSettings)] {
		name, is := strings.CutSuffix(f.Name(), ".toml")
		if is && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "pylock.") {
			found = append(found, s.define(name))
		}
	}
	if !slices.ContainsFunc(found, func(d Definition) bool { return d.Name == Data }) {
		found = append(found, Definition{Name: Data})
	}
	slices.SortFunc(found, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// Check returns an *UnknownError if no environment has that name, or why its file can't be used.
func (s settings) Check(name string) error {
	_, err := s.definition(name)
	return err
}

// definition returns the one of that name, or an *UnknownError.
func (s settings) definition(name string) (Definition, error) {
	all := s.Definitions()
	i := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		unknown := &UnknownError{Name: name}
		for _, d := range all {
			unknown.Known = append(unknown.Known, d.Name)
		}
		return Definition{}, unknown
	}
	return all[i], all[i].Err
}

// define reads NAME.toml.
func (s settings) define(name string) Definition {
	d := Definition{Name: name, File: filepath.Join(s.dir, name+".toml")}
	if d.Err = d.read(s.trust.File); d.Err != nil {
		d.Err = fmt.Errorf("%s: %w", d.File, d.Err)
	}
	return d
}

func (d *Definition) read(trusted func(path string) error) error {
	if !ValidName(d.Name) {
		return ErrName
	}
	if err := trusted(d.File); err != nil {
		return err
	}
	text, err := os.ReadFile(d.File)
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return err
	}
	var f file
	dec := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return fmt.Errorf("there is no setting %s; there are image, pushed, lock, imports, and in [limits]"+
				" memory, pids and cpus", strings.Join(unknown.Errors[0].Key(), "."))
		}
		return err
	}
	d.Image, d.Pushed, d.Lock, d.Imports = f.Image, f.Pushed, f.Lock, f.Imports
	if d.Pushed != "" && !pushedPattern.MatchString(d.Pushed) {
		return fmt.Errorf("pushed: %q is no image with its digest, such as registry.example/%s@sha256:…",
			d.Pushed, d.Name)
	}
	if d.Lock == "" && d.Name != Data {
		d.Lock = "pylock." + d.Name + ".toml"
	}
	if d.Lock != "" && !filepath.IsAbs(d.Lock) {
		d.Lock = filepath.Join(filepath.Dir(d.File), d.Lock)
	}
	for _, module := range f.Imports {
		if !importPattern.MatchString(module) || len(f.Imports) > maxImports {
			return fmt.Errorf("imports: %q is no module's name, or there are more than %d", module, maxImports)
		}
	}
	d.Limits.PIDs, d.Limits.CPUs = f.Limits.PIDs, f.Limits.CPUs
	if f.Limits.Memory != "" {
		d.Limits.Memory, err = units.RAMInBytes(f.Limits.Memory)
	}
	small := f.Limits.Memory != "" && d.Limits.Memory < minMemory ||
		d.Limits.PIDs != 0 && d.Limits.PIDs < minPIDs
	if err != nil || small || d.Limits.CPUs < 0 {
		return fmt.Errorf("limits: memory is a size such as 1g, at least %dm; pids is a number, at least %d;"+
			" cpus is a number of cores", minMemory>>20, minPIDs)
	}
	return nil
}

// lock returns the lock for an interpreter.
func (s settings) lock(d Definition, ip wheels.Interpreter) (*wheels.Lock, error) {
	if d.Lock == "" {
		return wheels.DataLock(ip)
	}
	if err := s.trust.File(d.Lock); errors.Is(err, fs.ErrNotExist) {
		return nil, &text.HintError{
			Err:  fmt.Errorf("the environment %s has no lock yet: %s is missing", d.Name, d.Lock),
			Next: "make it: mcp-bridge env lock " + d.Name}
	} else if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(d.Lock)
	if err != nil {
		return nil, err
	}
	l, err := wheels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Lock, err)
	}
	return l, nil
}

// likely is the interpreter that a base image is taken to have before it is asked.
var likely = wheels.Interpreter{Version: "3.13.0", Machine: "x86_64", Glibc: "2.36"}

// Locked returns the packages in the lock of an environment, with names and versions only.
func (s settings) Locked(name string) ([]wheels.Distribution, error) {
	d, err := s.definition(name)
	if err != nil {
		return nil, err
	}
	return s.locked(d, likely)
}

func (s settings) locked(d Definition, ip wheels.Interpreter) (all []wheels.Distribution, err error) {
	l, err := s.lock(d, ip)
	if err != nil {
		return nil, err
	}
	for _, p := range l.Packages {
		all = append(all, wheels.Distribution{Name: p.Name, Version: p.Version})
	}
	return all, nil
}

// buildable returns the environments that aren't built, and whose locks have all of b, those with
// the fewest packages first. The interpreter of another environment is the likely one of their
// bases.
func (s settings) buildable(built []Environment, b *wheels.Block) (names []string) {
	size := map[string]int{}
	ip := likely
	if len(built) > 0 {
		ip = built[0].Interpreter
	}
	for _, d := range s.Definitions() {
		if d.Err != nil || slices.ContainsFunc(built, func(env Environment) bool { return env.Name == d.Name }) {
			continue
		}
		have, err := s.locked(d, ip)
		if err != nil {
			continue
		}
		if lacks, err := b.Missing(ip, have); err == nil && len(lacks) == 0 {
			names, size[d.Name] = append(names, d.Name), len(have)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(size[a], size[b]) })
	return names
}

// meant returns the packages of environments, built or not, that names of b are probably meant to
// be: no environment has a package of such a name.
func (s settings) meant(built []Environment, b *wheels.Block) (names []string) {
	var all []wheels.Distribution
	for _, env := range built {
		all = append(all, env.Distributions...)
	}
	for _, d := range s.Definitions() {
		if locked, err := s.locked(d, likely); d.Err == nil && err == nil {
			all = append(all, locked...)
		}
	}
	var known []string
	for _, d := range all {
		known = append(known, d.Name)
	}
	for _, r := range b.Dependencies {
		if slices.Contains(known, r.Name) {
			continue
		}
		for _, near := range text.Nearest(r.Name, known) {
			if !strings.HasPrefix(r.Name, near+"-") { // pandas-stubs isn't pandas
				names = append(names, near)
			}
		}
		for _, d := range all {
			if slices.ContainsFunc(d.Imports, func(m string) bool { return strings.EqualFold(m, r.Name) }) {
				names = append(names, d.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Delete deletes the settings, list of packages, lock and labels of an environment.
func (s settings) Delete(name string) error {
	if !ValidName(name) {
		return ErrName
	}
	var errs []error
	for _, file := range []string{name + ".toml", name + ".in", "pylock." + name + ".toml",
		"labels." + name + ".json"} {
		if err := os.Remove(filepath.Join(s.dir, file)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// requirements returns the file that lists the packages of an environment, as pip and uv read it.
func (s settings) requirements(name string) string { return filepath.Join(s.dir, name+".in") }
