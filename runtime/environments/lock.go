package environments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// Lock has uv choose the versions of all packages in NAME.in and of what they need, for the Python
// of the base image, and writes them to the environment's lock. Neither uv nor anything else
// installs or builds a package.
func (e *Environments) Lock(ctx context.Context, name string) error {
	d, err := e.definition(name)
	if err != nil {
		return err
	}
	if d.Lock == "" {
		return &text.HintError{Err: fmt.Errorf("the lock of %s comes with the program", name),
			Next: "make an environment of another name: mcp-bridge env add NAME PACKAGE…"}
	}
	wanted, err := os.ReadFile(e.requirements(name))
	if errors.Is(err, fs.ErrNotExist) {
		return &text.HintError{Err: fmt.Errorf("%s, which lists the packages, is missing", e.requirements(name)),
			Next: "name them: mcp-bridge env add " + name + " PACKAGE…"}
	} else if err != nil {
		return err
	}
	return e.lockAs(ctx, d, wanted)
}

// Add adds packages, as in pandas>=2, to those of an environment, and locks them. It makes the
// environment if no other has that name. After an error nothing has changed.
func (e *Environments) Add(ctx context.Context, name string, packages []string) error {
	if e.dir == "" {
		return errors.New("there is no directory for environments: set HOME or MCP_BRIDGE_ENVS")
	}
	d := Definition{Name: name, File: filepath.Join(e.dir, name+".toml"),
		Lock: filepath.Join(e.dir, "pylock."+name+".toml")}
	if !ValidName(name) {
		return ErrName
	}
	if _, err := os.Lstat(d.File); err == nil {
		if d, err = e.definition(name); err != nil {
			return err
		}
	}
	if name == Data || d.Lock == "" {
		return &text.HintError{Err: errors.New("what data has comes with the program"),
			Next: "make an environment of another name, and let it have those of data too that you need"}
	}
	wanted, err := os.ReadFile(e.requirements(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if wanted, err = withPackages(wanted, packages); err != nil {
		return err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	if err := e.lockAs(ctx, d, wanted); err != nil {
		return err
	}
	if err := filelock.Replace(e.requirements(name), ".in-*", wanted); err != nil {
		return err
	}
	if strings.HasPrefix(name, Auto) {
		defer e.dropAuto(ctx, name)
	}
	if _, err := os.Lstat(d.File); err == nil {
		return nil
	}
	return filelock.Replace(d.File, ".toml-*", fmt.Appendf(nil, template, name))
}

// template is NAME.toml at first.
const template = `# The environment %[1]s. Its packages are in %[1]s.in; mcp-bridge env lock %[1]s chooses
# their versions again. See docs/environments.md.
# image = "docker.io/library/python:3.13-slim"
# imports = ["numpy"]
# [limits]
# memory = "1g"
`

// withPackages returns the list with the packages in it, each in place of the line that had it
// before.
func withPackages(list []byte, packages []string) ([]byte, error) {
	added := map[string]string{}
	var order []string
	for _, text := range packages {
		r, err := wheels.ParseRequirement(text)
		if err != nil {
			return nil, err
		}
		if added[r.Name] == "" {
			order = append(order, r.Name)
		}
		added[r.Name] = strings.TrimSpace(text)
	}
	var out strings.Builder
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		bare, _, _ := strings.Cut(line, " #")
		if r, err := wheels.ParseRequirement(bare); err == nil && added[r.Name] != "" {
			line = added[r.Name]
			delete(added, r.Name)
		}
		out.WriteString(line + "\n")
	}
	for _, name := range order {
		if text, has := added[name]; has {
			out.WriteString(text + "\n")
		}
	}
	return []byte(out.String()), nil
}

// asked returns the packages of a list, which is the file's, as uv takes them, one a line. Any
// other line is an error: uv would follow an option, such as --no-binary, and build packages. Names
// are normalized, since uv takes one such as x.zip for a file.
func asked(file string, list []byte) (string, error) {
	var out strings.Builder
	for line := range strings.Lines(string(list)) {
		bare, _, _ := strings.Cut(strings.TrimSpace(line), " #")
		if bare = strings.TrimSpace(bare); bare == "" || bare[0] == '#' {
			continue
		}
		r, err := wheels.ParseRequirement(bare)
		if err != nil {
			return "", &text.HintError{Err: fmt.Errorf("%s: %w", file, err),
				Next: "have one package such as pandas>=2 in each line of the file, and no options"}
		}
		rest := strings.TrimLeftFunc(bare, func(r rune) bool {
			return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_.", r)
		})
		out.WriteString(r.Name + rest + "\n")
	}
	return out.String(), nil
}

// lockAs writes the lock of an environment with the packages of a list.
func (e *Environments) lockAs(ctx context.Context, d Definition, list []byte) error {
	wanted, err := asked(e.requirements(d.Name), list)
	if err != nil {
		return err
	}
	program, err := exec.LookPath("uv")
	if err != nil {
		return &text.HintError{Err: errors.New("uv, which chooses versions, is not on the PATH"),
			Next: "install it, for example with pipx install uv. Only env add and env lock need it; a lock that was" +
				" made elsewhere can be put into " + d.Lock}
	}
	base, err := e.base(ctx, d)
	if err != nil {
		return err
	}
	p, err := e.python.ask(ctx, base)
	if err != nil {
		return err
	}
	release, err := e.cache.turn(ctx, nil)
	if err != nil {
		return err
	}
	defer release()
	dir, err := os.MkdirTemp(e.cache.path, lockDirs)
	if err != nil {
		return e.cache.full(err)
	}
	defer e.cache.guard(dir)()
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the next turn
	text, err := e.resolver.compile(ctx, program, dir, wanted, p.Interpreter)
	if err != nil {
		if errors.As(err, new(*fs.PathError)) { // a file of ours, on this disk
			err = e.cache.full(err)
		}
		return fmt.Errorf("locking the packages of %s: %w", d.Name, err)
	}
	l, err := wheels.Parse(text)
	if err == nil {
		_, err = l.Choose(p.Interpreter)
	}
	if err != nil {
		return fmt.Errorf("uv has locked the packages of %s, and they can't be used: %w", d.Name, err)
	}
	return filelock.Replace(d.Lock, ".lock-*", text)
}
