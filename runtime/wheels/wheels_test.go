package wheels

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
)

// python is the interpreter of most tests.
var python = Interpreter{Version: "3.13.1", Machine: "x86_64", Glibc: "2.36"}

// member is a file of a wheel made for a test.
type member struct {
	name, content string
	mode          fs.FileMode
}

// wheel makes a wheel of example 1.0 with the members, and metadata that is right unless a member
// of the same name replaces it.
func wheel(members ...member) []byte { return wheelOf("example", "py3-none-any", members...) }

func wheelOf(name, tag string, members ...member) []byte {
	info := name + "-1.0.dist-info/"
	replaced := map[string]bool{}
	var record strings.Builder
	for _, m := range members {
		replaced[m.name] = true
	}
	if file := info + "WHEEL"; !replaced[file] {
		members = append(members, member{name: file, content: "Wheel-Version: 1.0\nTag: " + tag + "\n"})
	}
	for _, m := range members {
		sum := sha256.Sum256([]byte(m.content))
		fmt.Fprintf(&record, "\"%s\",sha256=%s,%d\n", m.name, encodeSum(sum[:]), len(m.content))
	}
	if file := info + "RECORD"; !replaced[file] {
		members = append(members, member{name: file, content: record.String() + file + ",,\n"})
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(max(m.mode, 0o644))
		f, err := w.CreateHeader(h)
		if err != nil {
			panic(err)
		}
		if _, err := io.WriteString(f, m.content); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// hash returns the sha256 of content as a lock has it.
func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// lockOf returns a lock with one package for each wheel, by file name, at the URL base.
func lockOf(base string, wheels map[string][]byte) string {
	text := "lock-version = \"1.0\"\n"
	for file, content := range wheels {
		name, _, _ := strings.Cut(file, "-")
		text += fmt.Sprintf("[[packages]]\nname = %q\nversion = \"1.0\"\n"+
			"wheels = [{ url = %q, size = %d, hashes = { sha256 = %q } }]\n",
			name, base+"/"+file, len(content), hash(content))
	}
	return text
}

// serve answers with the files by their last name.
func serve(t *testing.T, files map[string][]byte) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, has := files[path.Base(r.URL.Path)]
		if !has {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s
}

// unpacked is what a tar has: contents by name, and modes.
type unpacked map[string]string

// build goes the whole way from a lock to a tar.
func build(t *testing.T, lock string, ip Interpreter,
	cache *Cache) (unpacked, []Distribution, []byte, error) {
	t.Helper()
	l, err := Parse([]byte(lock))
	if err != nil {
		return nil, nil, nil, err
	}
	chosen, err := l.Choose(ip)
	if err != nil {
		return nil, nil, nil, err
	}
	files, err := cache.Fetch(t.Context(), chosen)
	if err != nil {
		return nil, nil, nil, err
	}
	defer closeAll(files)
	var out bytes.Buffer
	offered, err := WriteTar(&out, ip, files)
	if err != nil {
		return nil, nil, nil, err
	}
	return readTar(t, out.Bytes()), offered, out.Bytes(), nil
}

func closeAll(files []*File) {
	for _, f := range files {
		f.Close()
	}
}

// readTar fails the test at anything in a tar that mustn't be there.
func readTar(t *testing.T, text []byte) unpacked {
	t.Helper()
	got, last := unpacked{}, ""
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		if _, twice := got[name]; twice || !fs.ValidPath(name) || name != Root &&
			!strings.HasPrefix(name, Root+"/") {
			t.Errorf("the tar has %q", h.Name)
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir || h.Uid != 0 || h.Gid != 0 ||
			!h.ModTime.Equal(Epoch) ||
			h.Mode != 0o644 && h.Mode != 0o755 {
			t.Errorf("the tar has %+v", h)
		}
		if h.Typeflag == tar.TypeReg {
			if name <= last {
				t.Errorf("the tar has %q after %q", name, last)
			}
			last = name
		}
		got[name] = fmt.Sprintf("%o %s", h.Mode, content)
	}
}

const exampleFile = "example-1.0-py3-none-any.whl"

func TestWriteTar(t *testing.T) {
	good := map[string][]byte{
		exampleFile: wheel(member{name: "example/__init__.py", content: "x = 1"},
			member{name: "example/run", content: "#!", mode: 0o755},
			member{name: "example/__pycache__/x.pyc", content: "bytecode"},
			member{name: "example-1.0.data/purelib/pure.py", content: "p"},
			member{name: "example-1.0.data/platlib/plat.abi3.so", content: "so"},
			member{name: "example-1.0.data/headers/h.h"}, member{name: "example-1.0.data/data/etc/d"},
			member{name: "shared/__init__.py"}, member{name: "example.libs/lib.so"}),
		"other-1.0-py3-none-any.whl": wheelOf("other", "py3-none-any", member{name: "shared/__init__.py"},
			member{name: "shared/other.py", content: strings.Repeat("y", 3000)}, member{name: "Other.py"}),
	}
	s := serve(t, good)
	lock := lockOf(s.URL, good)
	got, offered, first, err := build(t, lock, python, &Cache{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	want := unpacked{"": "755 ", "/example": "755 ", "/example/__init__.py": "644 x = 1",
		"/example/run": "755 #!", "/pure.py": "644 p", "/plat.abi3.so": "644 so", "/shared/other.py": "644 " +
			strings.Repeat("y", 3000),
		"/example.libs/lib.so": "644 ", "/other-1.0.dist-info/WHEEL": "644 Wheel-Version: 1.0\nTag: py3-none-any\n"}
	for name, want := range want {
		if got[Root+name] != want {
			t.Errorf("%q is %q, want %q", name, got[Root+name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, "pycache") || strings.Contains(name, ".data") || strings.HasSuffix(name, "h.h") ||
			strings.HasSuffix(name, "etc/d") {
			t.Errorf("the tar has %s", name)
		}
	}
	if is := fmt.Sprint(offered); is != "[{example 1.0 [example plat pure shared] []} {other 1.0 [Other "+
		"shared] []}]" {
		t.Errorf("offered are %s", is)
	}
	_, _, second, err := build(t, lockOf(s.URL, good), python, &Cache{Dir: t.TempDir()})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the second time: %v, %d and %d bytes", err, len(first), len(second))
	}
}

// TestBadWheels has the wheels that issue 16 names, and others, each served with the lock's hash
// unless the hash is what is wrong. Those without an error are inert: nothing of them is in the
// tar.
func TestBadWheels(t *testing.T) {
	code := member{name: "example/__init__.py", content: "x = 1"}
	many := make([]member, maxFiles+1)
	for i := range many {
		many[i] = member{name: fmt.Sprintf("example/%d.py", i)}
	}
	tests := []struct {
		name    string
		content []byte
		lock    func(string) string // changes the lock
		want    string              // in the error; none for one that is inert
	}{
		{name: "hash", content: wheel(code), want: "the lock says 0000",
			lock: func(l string) string { return strings.ReplaceAll(l, hash(wheel(code)), strings.Repeat("0", 64)) }},
		{name: "size", content: wheel(code), want: "bytes, and the lock says 7",
			lock: func(l string) string {
				return strings.Replace(l, fmt.Sprintf("size = %d", len(wheel(code))), "size = 7", 1)
			}},
		{name: "dots", content: wheel(member{name: "example/../../x.py"}), want: "below the wheel's root"},
		{name: "dots in data", content: wheel(member{name: "example-1.0.data/purelib/../../x.py"}),
			want: "below the wheel's root"},
		{name: "absolute", content: wheel(member{name: "/etc/passwd"}), want: "below the wheel's root"},
		{name: "absolute in data", content: wheel(member{name: "example-1.0.data/purelib//etc/passwd"}),
			want: "below the wheel's root"},
		{name: "drive", content: wheel(member{name: "C:x.py"}), want: "below the wheel's root"},
		{name: "backslash", content: wheel(member{name: `example\..\..\x.py`}), want: "below the wheel's root"},
		{name: "escape sequence", content: wheel(member{name: "example/\x1b[2J.py"}),
			want: "below the wheel's root"},
		{name: "symlink", content: wheel(member{name: "example/x", content: "/etc/passwd",
			mode: fs.ModeSymlink | 0o777}), want: "no regular file"},
		{name: "device", content: wheel(member{name: "example/x", mode: fs.ModeDevice | 0o666}),
			want: "no regular file"},
		{name: "duplicate", content: wheel(code, code), want: "twice"},
		{name: "duplicate by case", content: wheel(code, member{name: "Example/__init__.py"}), want: "twice"},
		{name: "duplicate by data",
			content: wheel(code, member{name: "example-1.0.data/purelib/example/__init__.py", content: "x = 1"}),
			want:    "both have"},
		{name: "file and directory", content: wheel(member{name: "example"}, code),
			want: "a directory of that name"},
		{name: "bomb", content: wheel(member{name: "example/zeros", content: strings.Repeat("\x00", someSize+1)}),
			want: "zip bomb"},
		{name: "too large", content: lying(wheel(code), maxUnpacked+1), want: "bytes unpacked"},
		{name: "size in the archive", content: lying(wheel(code), 3), want: "not a valid zip file"},
		{name: "too many files", content: wheel(many...), want: "at most 20000"},
		{name: "sdist only", content: wheel(code), want: "no wheel of it",
			lock: func(l string) string {
				return l[:strings.Index(l, "wheels =")] + `sdist = { url = "https://x/x.tar.gz" }`
			}},
		{name: "wrong tag", content: wheel(code, member{name: "example-1.0.dist-info/WHEEL",
			content: "Wheel-Version: 1.0\nTag: cp313-cp313-win_amd64\n"}), want: "doesn't fit this interpreter"},
		{name: "no tag", content: wheel(code,
			member{name: "example-1.0.dist-info/WHEEL", content: "Wheel-Version: 1.0\n"}),
			want: "doesn't fit this interpreter"},
		{name: "endless tags", content: wheel(code,
			member{name: "example-1.0.dist-info/WHEEL", content: "Wheel-Version: 1.0\nTag: " +
				strings.Repeat("x.", 9999) + "-" + strings.Repeat("y.", 9999) + "-" + strings.Repeat("z.", 9999)}),
			want: "doesn't fit this interpreter"},
		{name: "new format", content: wheel(code,
			member{name: "example-1.0.dist-info/WHEEL", content: "Wheel-Version: 2.0\n"}), want: `format "2.0"`},
		{name: "other package", content: wheelOf("other", "py3-none-any", code), want: "the lock says example 1.0"},
		{name: "two packages", content: wheel(code, member{name: "other-1.0.dist-info/METADATA"}),
			want: "two .dist-info"},
		{name: "not in RECORD", content: wheel(code, member{name: "example-1.0.dist-info/RECORD",
			content: "example-1.0.dist-info/WHEEL,sha256=x,1\n"}), want: "no sha256 of \"example/__init__.py\""},
		{name: "other than RECORD", content: wheel(code, member{name: "example-1.0.dist-info/RECORD",
			content: "example-1.0.dist-info/WHEEL,sha256=x,1\nexample/__init__.py,sha256=AAAA,5\n"}),
			want: "RECORD says"},
		{name: "large list of files", content: commented(), want: "its list of files has more than"},
		{name: "no zip", content: []byte("PK"), want: "no zip file"},
		{name: "pth", content: wheel(code, member{name: "bad.pth", content: "import sys; print(sys)"})},
		{name: "pth in data", content: wheel(code, member{name: "example-1.0.data/purelib/bad.PTH",
			content: "import sys; print(sys)"})},
		{name: "sitecustomize", content: wheel(code, member{name: "sitecustomize.py"}), want: "at every start"},
		{name: "sitecustomize by case", content: wheel(code, member{name: "SiteCustomize.py"}),
			want: "at every start"},
		{name: "usercustomize package", content: wheel(code, member{name: "usercustomize/__init__.py"}),
			want: "at every start"},
		{name: "sitecustomize in data", content: wheel(code,
			member{name: "example-1.0.data/platlib/sitecustomize.abi3.so"}), want: "at every start"},
		{name: "script", content: wheel(code, member{name: "example-1.0.data/scripts/bad", content: "#!python",
			mode: 0o755})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string][]byte{exampleFile: tt.content}
			lock := lockOf(serve(t, files).URL, files)
			if tt.lock != nil {
				lock = tt.lock(lock)
			}
			got, _, _, err := build(t, lock, python, &Cache{Dir: t.TempDir()})
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "example")):
				t.Errorf("got %v, want one with %q that names the package", err, tt.want)
			case tt.want == "" && err != nil:
				t.Error(err)
			}
			for name := range got {
				if strings.Contains(strings.ToLower(name), "bad") {
					t.Errorf("the tar has %s", name)
				}
			}
		})
	}
}

// lying changes the size that the archive's directory says its first file has.
func lying(content []byte, size uint32) []byte {
	changed := bytes.Clone(content)
	at := bytes.Index(changed, []byte("PK\x01\x02")) + 24
	for i := range 4 {
		changed[at+i] = byte(size >> (8 * i))
	}
	return changed
}

// commented returns a wheel whose few files have long comments in the archive's directory.
func commented() []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range maxDirectory/60_000 + 1 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i),
			Comment: strings.Repeat("x", 60_000)}); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// TestCollisions has wheels that are sound by themselves.
func TestCollisions(t *testing.T) {
	for _, second := range []member{{name: "example/x.py", content: "2"}, {name: "example/X.py", content: "1"},
		{name: "example"}} {
		files := map[string][]byte{exampleFile: wheel(member{name: "example/x.py", content: "1"}),
			"other-1.0-py3-none-any.whl": wheelOf("other", "py3-none-any", second)}
		_, _, _, err := build(t, lockOf(serve(t, files).URL, files), python, &Cache{Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), exampleFile) ||
			!strings.Contains(err.Error(), "other-1.0") {
			t.Errorf("%s: got %v, want one that names both wheels", second.name, err)
		}
	}
}

// TestBoundsOfAll has what several wheels reach together.
func TestBoundsOfAll(t *testing.T) {
	large := func(name string) entry {
		return entry{path: name, zip: &zip.File{FileHeader: zip.FileHeader{UncompressedSize64: maxUnpacked/2 + 1}}}
	}
	for want, entries := range map[string][]entry{"20001 files": make([]entry, maxFiles+1),
		"bytes unpacked": {large("a"), large("b")}} {
		if _, err := merge(entries); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}

// memory is a File that is on no disk.
func memory(content []byte) *File {
	return &File{Chosen: Chosen{Name: "example", Version: "1.0", Wheel: Wheel{File: exampleFile}},
		size: int64(len(content)), content: struct {
			*bytes.Reader
			io.Closer
		}{bytes.NewReader(content), io.NopCloser(nil)}}
}

// FuzzWheel writes a tar of any bytes, and looks at what of it is written.
func FuzzWheel(f *testing.F) {
	f.Add(wheel(member{name: "example/__init__.py", content: "x = 1"}))
	f.Add(wheel(member{name: "../x"}, member{name: "bad.pth"}, member{name: "example-1.0.data/purelib/x"}))
	f.Add(lying(wheel(member{name: "example.py"}), 1<<31))
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		if _, err := WriteTar(&out, python, []*File{memory(content)}); err != nil {
			return
		}
		for name := range readTar(t, out.Bytes()) {
			if strings.HasSuffix(name, ".pth") && path.Dir(name) == Root || strings.Contains(name, "/sitecustomize") &&
				path.Dir(name) == Root {
				t.Errorf("the tar has %s", name)
			}
		}
	})
}
