package wheels

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Bounds of one wheel beyond those of all.
const (
	maxDirectory = 8 << 20 // of a zip file's own list of files
	maxWHEEL     = 64 << 10
	maxRECORD    = 8 << 20
	maxName      = 1000 // of a file's path
	maxRatio     = 100  // of unpacked to packed size, in wheels above someSize
	someSize     = 16 << 20
)

// entry is a file of a wheel that goes into the tar.
type entry struct {
	path string // below Root
	from *File
	zip  *zip.File
	sum  string // the sha256 that RECORD has, base64 without padding
}

// readWheel checks what a wheel says of itself, and lists what of it goes into the tar: its
// packages (PEP 427: the archive's root, and purelib and platlib of its .data directory) and its
// metadata, as importlib.metadata reads it. Scripts, headers and data are left out, and bytecode,
// which the image's own Python makes. So are .pth files, which are returned for a person, since
// some sound packages have one and nothing here reads them; a sitecustomize has no other use than
// to run unasked, and is refused.
func readWheel(f *File, rank map[string]int) (entries []entry, pth []string, err error) {
	z, err := openZip(f)
	if err != nil {
		return nil, nil, err
	}
	info, err := distInfo(z, f)
	if err != nil {
		return nil, nil, err
	}
	if err := checkWHEEL(z, info, rank); err != nil {
		return nil, nil, err
	}
	sums, err := readRECORD(z, info)
	if err != nil {
		return nil, nil, err
	}
	data := strings.TrimSuffix(info, ".dist-info") + ".data"
	for _, member := range z.File {
		name := member.Name
		if strings.HasSuffix(name, "/") || name == info+"/RECORD.jws" || name == info+"/RECORD.p7s" {
			continue
		}
		sum, listed := sums[name]
		if !listed && name != info+"/RECORD" {
			return nil, nil, fmt.Errorf("its RECORD has no sha256 of %q", cut(name))
		}
		name, in := place(name, data)
		top, _, below := strings.Cut(name, "/")
		switch {
		case !in || strings.Contains("/"+name, "/__pycache__/"):
			continue
		case !below && strings.HasSuffix(strings.ToLower(name), ".pth"):
			pth = append(pth, name)
			continue
		case startup(top):
			return nil, nil, fmt.Errorf("it has %q, which Python would run at every start", cut(name))
		}
		entries = append(entries, entry{path: name, from: f, zip: member, sum: sum})
	}
	slices.Sort(pth)
	return entries, pth, nil
}

// place returns where a file is unpacked to, below Root, and whether it is at all.
func place(name, data string) (string, bool) {
	inData, is := strings.CutPrefix(name, data+"/")
	if !is {
		return name, true
	}
	kind, rest, _ := strings.Cut(inData, "/")
	return rest, rest != "" && (kind == "purelib" || kind == "platlib")
}

// startup reports whether a module or package at the top is one that Python imports at its start.
func startup(top string) bool {
	name, _, _ := strings.Cut(strings.ToLower(top), ".")
	return name == "sitecustomize" || name == "usercustomize"
}

// openZip opens a wheel as an archive with names and sizes that can be unpacked safely.
func openZip(f *File) (*zip.Reader, error) {
	directory := &bounded{r: f.content, left: maxDirectory}
	z, err := zip.NewReader(directory, f.size)
	if err != nil {
		return nil, fmt.Errorf("it is no zip file: %w", err)
	}
	directory.left = -1
	if len(z.File) > maxFiles {
		return nil, fmt.Errorf("it has %d files; at most %d are allowed", len(z.File), maxFiles)
	}
	seen := map[string]bool{}
	var total uint64
	for _, member := range z.File {
		name := strings.TrimSuffix(member.Name, "/")
		isDir := name != member.Name
		kind := member.Mode().Type()
		switch {
		case !safe(name):
			return nil, fmt.Errorf("it has a file %q, whose name isn't a plain one below the wheel's root",
				cut(member.Name))
		case kind != 0 && (kind != fs.ModeDir || !isDir):
			return nil, fmt.Errorf("it has %q, which is no regular file (%s)", cut(name), member.Mode())
		case member.Flags&1 != 0:
			return nil, fmt.Errorf("it has %q, which is encrypted", cut(name))
		case seen[strings.ToLower(name)]:
			return nil, fmt.Errorf("it has %q twice, if upper and lower case are the same", cut(name))
		}
		seen[strings.ToLower(name)] = true
		if total += min(member.UncompressedSize64, maxUnpacked+1); total > maxUnpacked {
			return nil, fmt.Errorf("it has more than %d bytes unpacked", int64(maxUnpacked))
		}
	}
	if total > someSize && total/maxRatio > uint64(f.size) {
		return nil, fmt.Errorf("its %d bytes unpack to %d, as those of a zip bomb do", f.size, total)
	}
	return z, nil
}

// bounded reads no more than left bytes, or without a bound where left is negative.
type bounded struct {
	r    io.ReaderAt
	left int
}

func (b *bounded) ReadAt(p []byte, at int64) (int, error) {
	if b.left >= 0 {
		if b.left -= len(p); b.left < 0 {
			b.left = 0
			return 0, fmt.Errorf("its list of files has more than %d bytes", maxDirectory)
		}
	}
	return b.r.ReadAt(p, at)
}

// safe reports whether name is a path below a directory, on any system, that can be shown.
func safe(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxName &&
		!strings.ContainsAny(name, `\:`) && !strings.ContainsFunc(name, unprintable) &&
		!slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > 255 })
}

// distInfo returns the directory of the wheel's metadata, whose name has the package and version.
func distInfo(z *zip.Reader, f *File) (string, error) {
	var found string
	for _, member := range z.File {
		top, _, _ := strings.Cut(member.Name, "/")
		if strings.HasSuffix(strings.ToLower(top), ".dist-info") && top != found {
			if found != "" {
				return "", fmt.Errorf("it has two .dist-info directories")
			}
			found = top
		}
	}
	name, text, _ := strings.Cut(strings.TrimSuffix(found, ".dist-info"), "-")
	v, err := parseVersion(text)
	locked, lockErr := parseVersion(f.Version)
	if err := errors.Join(err, lockErr); err != nil || Normalize(name) != f.Name || v.compare(locked) != 0 {
		return "", fmt.Errorf("its metadata is in %q, and the lock says %s %s", cut(found), f.Name, f.Version)
	}
	return found, nil
}

// readMember returns the content of a small file.
func readMember(z *zip.Reader, name string, limit int) ([]byte, error) {
	f, err := z.Open(name)
	if err != nil {
		return nil, fmt.Errorf("it lacks %s", cut(name))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("%s has more than %d bytes", cut(name), limit)
	}
	return text, err
}

// checkWHEEL returns an error if the wheel's own word on format and tags doesn't fit.
func checkWHEEL(z *zip.Reader, info string, rank map[string]int) error {
	text, err := readMember(z, info+"/WHEEL", maxWHEEL)
	if err != nil {
		return err
	}
	var format string
	var said []string
	best := len(rank)
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		key, value, _ := strings.Cut(scanner.Text(), ":")
		switch value = strings.TrimSpace(value); key {
		case "Wheel-Version":
			format = value
		case "Tag":
			said = append(said, cut(value))
			if parts := strings.Split(value, "-"); len(parts) == 3 {
				best = min(best, tags(parts).rank(rank))
			}
		}
	}
	switch {
	case !strings.HasPrefix(format, "1."):
		return fmt.Errorf("it has the wheel format %q; only 1.x is known", cut(format))
	case best == len(rank):
		return fmt.Errorf("its WHEEL says that it is for %q, which doesn't fit this interpreter",
			said[:min(3, len(said))])
	}
	return nil
}

// readRECORD returns the sha256 of each file that RECORD lists.
func readRECORD(z *zip.Reader, info string) (map[string]string, error) {
	text, err := readMember(z, info+"/RECORD", maxRECORD)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = 3
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("its RECORD can't be read: %w", err)
	}
	sums := map[string]string{}
	for _, row := range rows {
		if sum, is := strings.CutPrefix(row[1], "sha256="); is {
			sums[row[0]] = strings.TrimRight(sum, "=")
		}
	}
	return sums, nil
}

// encodeSum writes a hash as RECORD does.
func encodeSum(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum) }

// imports returns the names that code can import of the entries: modules and packages at the top.
func imports(entries []entry) []string {
	var names []string
	for _, e := range entries {
		top, below, inPackage := strings.Cut(e.path, "/")
		isCode := strings.HasSuffix(cmp.Or(below, top), ".py") || strings.HasSuffix(cmp.Or(below, top), ".so")
		if !inPackage {
			top, _, _ = strings.Cut(top, ".") // lxml.cpython-313-x86_64-linux-gnu.so
		}
		if isCode && identifier.MatchString(top) {
			names = append(names, top)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// identifier is a name that code can import.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
