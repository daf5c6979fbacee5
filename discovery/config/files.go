package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Stat looks at a file.
func (r *Reader) Stat(native string) (fs.FileInfo, error) { return fs.Stat(r.fsys, r.fsName(native)) }

// IsFile reports whether there is a regular file.
func (r *Reader) IsFile(native string) bool {
	info, err := r.Stat(native)
	return err == nil && info.Mode().IsRegular()
}

// Names returns the names in a directory, hidden ones left out, sorted.
func (r *Reader) Names(dir string) ([]string, error) {
	if names, kept, err := r.memory.namesIn(dir); kept {
		return names, err
	}
	info, err := r.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, unfit("it is not a directory")
	}
	entries, err := fs.ReadDir(r.fsys, r.fsName(dir))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); !strings.HasPrefix(n, ".") {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	r.names[dir] = names
	return names, nil
}

// IsJSON reports whether a name ends in .json.
func IsJSON(name string) bool { return path.Ext(name) == ".json" }

// meantAsJSON reports whether a file of this name among the bridge's own may be meant to be read.
// Files such as a README.md or an editor's copy are not.
func meantAsJSON(name string) bool {
	return slices.Contains([]string{"", ".jsonc", ".json5", ".yaml", ".yml", ".toml"}, path.Ext(name))
}

// What is read of one directory: the rest of it isn't what a person or a host wrote.
const (
	maxFiles     = 1000
	maxDirectory = 2 << 20 // bytes of all files
)

// Sources returns the files that the path of a source stands for, which may be the pattern of a
// directory's. It reports what is wrong with a directory that is there, or has to be; ok is false
// where it can't be read.
func (r *Reader) Sources(src Source, required bool) (files []Source, ok bool) {
	dir, ending := r.Directory(src.Path)
	r.looked[dir] = true
	if ending == "" {
		return []Source{src}, true
	}
	src.Path = dir
	names, err := r.Names(dir)
	if bad := Unreadable(err, required); bad.Refused() {
		r.Problem(src, "", bad.Reason, bad.Next)
		return nil, false
	}
	total := int64(0)
	for _, name := range names {
		file := src
		file.Path = r.Join(dir, name)
		if !IsJSON(name) && (ending != ".yaml" || !IsYAML(name)) {
			if src.Host == Own && meantAsJSON(name) && !r.Listed[file.Path] && r.IsFile(file.Path) {
				r.Refuse(file, "", Unusable, Refusal{"it is not read: its name doesn't end in .json",
					"rename it; what is in it has to be JSON too"})
			}
			continue
		}
		if info, err := r.Stat(file.Path); err == nil {
			total += info.Size()
		}
		if len(files) == maxFiles || total > maxDirectory {
			r.Problem(src, "", fmt.Sprintf("it has more than %d files, or more than %d KiB in them; the last "+
				"by name were left out", maxFiles, maxDirectory>>10),
				"take out what isn't needed")
			break
		}
		files = append(files, file)
	}
	return files, true
}

// bytes reads a regular file. It looks before it opens: opening a pipe would wait for a writer.
func (r *Reader) bytes(native string, limit int64) ([]byte, error) {
	info, err := r.Stat(native)
	if err != nil {
		return nil, err
	}
	tooLarge := unfit(fmt.Sprintf("it is larger than %d KiB, which is the limit", limit>>10))
	switch {
	case info.IsDir():
		return nil, unfit("it is a directory, not a file")
	case !info.Mode().IsRegular():
		return nil, unfit("it is not a regular file")
	case info.Size() > limit:
		return nil, tooLarge
	}
	f, err := r.fsys.Open(r.fsName(native))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // a size may be untrue, as in /proc
	if err == nil && int64(len(data)) > limit {
		return nil, tooLarge
	}
	return data, err
}

// unfit is what is wrong with something that could be read.
type unfit string

func (u unfit) Error() string { return string(u) }

// missing reports whether an error means that there is no such file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Unreadable returns what an error of the file system means for the author of the path. A file that
// isn't there is refused only if it has to be.
func Unreadable(err error, required bool) Refusal {
	var pathErr *fs.PathError
	var wrong unfit
	var exposed Refusal
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the path is the source's
	}
	switch {
	case err == nil, missing(err) && !required:
		return Refusal{}
	case missing(err):
		return Refusal{"it does not exist", "make it, or take it out of MCP_BRIDGE_CONFIG"}
	case errors.As(err, &exposed):
		return exposed
	case errors.Is(err, fs.ErrPermission):
		return Refusal{"it can't be read: permission denied",
			"make it readable for the user that runs mcp-bridge"}
	case errors.Is(err, fs.ErrInvalid):
		return Refusal{"its path is not one that can be opened", "correct the path"}
	case errors.As(err, &wrong):
		return Refusal{wrong.Error(), "move it away, or make it what it should be"}
	}
	return Refusal{"it can't be read: " + err.Error(), "correct or remove it"}
}
