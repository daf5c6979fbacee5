package wheels

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Epoch is the time of all files in the tar; zip files know none before it.
var Epoch = time.Unix(315532800, 0) // 1980-01-01

// WriteTar writes the wheels, unpacked side by side below Root, as one tar whose bytes depend on
// nothing but them: sorted names, one time, owner 0, modes 0644 and 0755. It returns what they
// offer. After an error, what was written is no whole tar and must be thrown away.
func WriteTar(w io.Writer, ip Interpreter, files []*File) ([]Distribution, error) {
	rank, err := ip.tags()
	if err != nil {
		return nil, err
	}
	var all []entry
	var offered []Distribution
	for _, f := range files {
		entries, pth, err := readWheel(f, rank)
		if err != nil {
			return nil, fmt.Errorf("%s is refused: %w", f.File, err)
		}
		all = append(all, entries...)
		offered = append(offered, Distribution{Name: f.Name, Version: f.Version, Imports: imports(entries),
			LeftOut: pth})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	if all, err = merge(all); err != nil {
		return nil, err
	}
	out := &layer{tar: tar.NewWriter(w)}
	if err := out.directory(Root); err != nil {
		return nil, err
	}
	for _, e := range all {
		if err := out.file(e); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", e.from.File, cut(e.path), err)
		}
	}
	return offered, out.tar.Close()
}

// merge drops files that several wheels have with the same content, such as the __init__.py of a
// shared namespace, and checks that nothing else collides. The entries are sorted.
func merge(all []entry) ([]entry, error) {
	if len(all) > maxFiles {
		return nil, fmt.Errorf("the wheels have %d files; at most %d are allowed", len(all), maxFiles)
	}
	var total uint64
	merged := all[:0]
	at := map[string]entry{} // by path in lower case
	for _, e := range all {
		if first, taken := at[strings.ToLower(e.path)]; taken {
			if first.path == e.path && first.from != e.from && first.sum == e.sum && e.sum != "" {
				continue
			}
			return nil, fmt.Errorf("%s and %s both have %q, with other content or in other case: leave one of them"+
				" out", first.from.File, e.from.File, cut(e.path))
		}
		at[strings.ToLower(e.path)] = e
		if total += e.zip.UncompressedSize64; total > maxUnpacked {
			return nil, fmt.Errorf("the wheels have more than %d bytes unpacked", int64(maxUnpacked))
		}
		merged = append(merged, e)
	}
	for _, e := range merged {
		for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
			if file, is := at[strings.ToLower(dir)]; is {
				return nil, fmt.Errorf("%s has the file %q, and %s a directory of that name", file.from.File,
					cut(file.path), e.from.File)
			}
		}
	}
	return merged, nil
}

// layer writes a tar with the directories that its files need.
type layer struct {
	tar  *tar.Writer
	dirs map[string]bool
}

func (l *layer) directory(name string) error {
	if l.dirs[name] || len(name) < len(Root) {
		return nil
	}
	if err := l.directory(path.Dir(name)); err != nil {
		return err
	}
	if l.dirs == nil {
		l.dirs = map[string]bool{}
	}
	l.dirs[name] = true
	return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: Epoch})
}

func (l *layer) file(e entry) error {
	name := path.Join(Root, e.path)
	if err := l.directory(path.Dir(name)); err != nil {
		return err
	}
	mode := int64(0o644)
	if e.zip.Mode()&0o111 != 0 {
		mode = 0o755
	}
	err := l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, ModTime: Epoch,
		Size: int64(e.zip.UncompressedSize64)})
	if err != nil {
		return err
	}
	content, err := e.zip.Open()
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(l.tar, h), content)
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	if sum := encodeSum(h.Sum(nil)); e.sum != "" && sum != e.sum {
		return fmt.Errorf("its sha256 is %s, and RECORD says %q", sum, cut(e.sum))
	}
	return nil
}
