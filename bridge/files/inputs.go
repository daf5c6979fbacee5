package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

const (
	maxInputs    = 100 // files of one call
	maxInputName = 200 // bytes
)

// Inputs are the directories of the user's whose files calls may name.
type Inputs struct{ dirs []string }

// NewInputs checks that the directories are absolute. They need not be there yet.
func NewInputs(dirs []string) (*Inputs, error) {
	in := &Inputs{}
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			return nil, fmt.Errorf("%s is not an absolute path", d)
		}
		in.dirs = append(in.dirs, filepath.Clean(d))
	}
	return in, nil
}

// Dirs returns the directories as text.
func (in *Inputs) Dirs() string { return strings.Join(in.dirs, ", ") }

// Open opens the files at some paths, which are absolute or below one of the directories. Links are
// followed first; what they lead to must be a plain file below one of the directories, and is
// opened such that no link put there meanwhile leads elsewhere. Their names are the paths' last
// parts, with a number where two would be the same. The caller closes them, also where there is an
// error, which is one sentence for the caller of a tool.
func (in *Inputs) Open(paths []string) (opened []sandbox.Input, closeAll func(), err error) {
	var files []*os.File
	closeAll = func() {
		for _, f := range files {
			_ = f.Close() // it was only read
		}
	}
	if len(paths) > maxInputs {
		return nil, closeAll, fmt.Errorf("%d files are named; at most %d can be copied", len(paths), maxInputs)
	}
	left := int64(sandbox.MaxInputs)
	taken := map[string]bool{}
	for _, p := range paths {
		f, size, err := in.open(p)
		if err != nil {
			return nil, closeAll, err
		}
		files = append(files, f)
		if left -= size; left < 0 {
			return nil, closeAll, fmt.Errorf("with %s the files take more than %d MB, which is all that can be copied",
				p, sandbox.MaxInputs>>20)
		}
		opened = append(opened, sandbox.Input{Name: inputName(p, taken), Size: size, Data: f})
	}
	return opened, closeAll, nil
}

// open opens one file.
func (in *Inputs) open(p string) (*os.File, int64, error) {
	real, dir, err := in.resolve(p)
	if err != nil {
		return nil, 0, err
	}
	rel, err := filepath.Rel(dir, real)
	if err != nil {
		return nil, 0, in.outside(p)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, unreadable(p, err)
	}
	defer root.Close() //nolint:errcheck // nothing is written
	// What isn't a plain file isn't opened: to open a device does something, and a pipe would be
	// waited for.
	if about, err := root.Stat(rel); err != nil || !about.Mode().IsRegular() {
		return nil, 0, notPlain(p, about, err)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, unreadable(p, err)
	}
	about, err := f.Stat()
	if err != nil || !about.Mode().IsRegular() {
		return nil, 0, errors.Join(notPlain(p, about, err), f.Close())
	}
	return f, about.Size(), nil
}

// resolve follows the links of a path and gives the directory that it is below.
func (in *Inputs) resolve(p string) (real, dir string, err error) {
	if p == "" || strings.ContainsRune(p, 0) {
		return "", "", errors.New("a path is empty, or holds a NUL")
	}
	candidates := []string{p}
	if !filepath.IsAbs(p) {
		candidates = nil
		for _, d := range in.dirs {
			candidates = append(candidates, filepath.Join(d, p))
		}
	}
	// whether the path itself is below a directory: of others not even that they are there is said
	within := false
	for _, c := range candidates {
		real, err := filepath.EvalSymlinks(c)
		for _, d := range in.dirs {
			resolved, derr := filepath.EvalSymlinks(d)
			within = within || below(d, filepath.Clean(c)) || derr == nil && below(resolved, filepath.Clean(c))
			if err == nil && derr == nil && below(resolved, real) {
				return real, resolved, nil
			}
		}
		if err == nil {
			return "", "", in.outside(p)
		}
	}
	if within {
		return "", "", fmt.Errorf("there is no file %s below %s", p, in.Dirs())
	}
	return "", "", in.outside(p)
}

// below reports whether a clean path is in a clean directory.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel) && rel != "."
}

func (in *Inputs) outside(p string) error {
	return fmt.Errorf("%s is not below a directory whose files may be read, which are: %s (MCP_BRIDGE_INPUTS)",
		p, in.Dirs())
}

func notPlain(p string, about fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return unreadable(p, err)
	case about.IsDir():
		return fmt.Errorf("%s is a directory; name its files", p)
	}
	return fmt.Errorf("%s is no plain file", p)
}

func unreadable(p string, err error) error { return fmt.Errorf("%s can't be read: %w", p, err) }

// inputName returns the name that a file has for the code.
func inputName(p string, taken map[string]bool) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(`/\`, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(baseName(p), "_"))
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if len(name) > maxInputName {
		ext = strings.ToValidUTF8(ext[:min(len(ext), maxInputName/2)], "")
		stem = strings.ToValidUTF8(stem[:min(len(stem), maxInputName-len(ext))], "")
		name = stem + ext
	}
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d%s", stem, i, ext)
	}
	taken[name] = true
	return name
}

// baseName returns the last part of a path, also of one like "a.csv/.".
func baseName(p string) string { return filepath.Base(filepath.Clean(p)) }

// Renamed returns a note for each path whose file has another name than its own.
func Renamed(paths []string, opened []sandbox.Input) (notes []string) {
	for i, p := range paths {
		if i < len(opened) && opened[i].Name != baseName(p) {
			notes = append(notes, fmt.Sprintf("%s was copied to %s/%s", p, sandbox.InputDir, opened[i].Name))
		}
	}
	return slices.Clip(notes)
}
