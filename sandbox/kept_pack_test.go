package sandbox_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// pack returns the archive of a directory.
func pack(t *testing.T, k *sandbox.Kept, dir string) (archive []byte, left []sandbox.File) {
	t.Helper()
	for more := true; more; {
		p, err := k.Pack(t.Context(), dir, int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		archive = append(archive, p.Data...)
		left, more = p.Left, p.More
	}
	return archive, left
}

// TestKeptPack: a directory comes out as an archive in pieces, and goes into another sandbox.
func TestKeptPack(t *testing.T) {
	k, dir := kept(t, nil), t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), sandbox.MaxPiece/10)
	long := strings.Repeat("long/", 40) + "name"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string]string{"a/b.txt": "hello", "a/big": string(big), "empty": "", long: "far",
		"wörld \xff": "odd"} {
		must(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(os.WriteFile(filepath.Join(dir, name), []byte(data), 0o640))
	}
	must(os.Mkdir(filepath.Join(dir, "none"), 0o500))
	must(os.Symlink("b.txt", filepath.Join(dir, "a", "link")))
	must(os.Truncate(filepath.Join(dir, "empty"), 0))
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	must(err)
	must(errors.Join(sparse.Truncate(1<<40), sparse.Close()))
	at := time.Unix(1_700_000_000, 0)
	must(os.Chtimes(filepath.Join(dir, "a", "b.txt"), at, at))
	exec, err := k.Exec(t.Context(), sandbox.Command{Line: "mkfifo pipe", Dir: dir, Timeout: time.Minute})
	if err != nil || exec.Status != sandbox.StatusOK {
		t.Fatalf("%+v, %v", exec, err)
	}
	archive, left := pack(t, k, dir)
	if got, want := fmt.Sprint(left), `[{pipe other 0 `; !strings.HasPrefix(got, want) || len(left) != 2 ||
		left[1].Name != "sparse" || left[1].Type != "too_large" || left[1].Size != 1<<40 {
		t.Errorf("left out: %+v", left)
	}
	into := filepath.Join(t.TempDir(), "new")
	// Each member alone, as if they were large, and the large one in halves.
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(err)
		data, err := io.ReadAll(r)
		must(err)
		for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
			if h.Typeflag == tar.TypeSymlink && part == nil {
				continue
			}
			var one bytes.Buffer
			w := tar.NewWriter(&one)
			h.Size = int64(len(part))
			must(errors.Join(w.WriteHeader(h), func() error { _, err := w.Write(part); return err }(), w.Close()))
			must(k.Unpack(t.Context(), into, one.Bytes()))
			if h.Typeflag == tar.TypeSymlink {
				break
			}
		}
	}
	for name, want := range map[string]string{"a/b.txt": "hello", "a/big": string(big), "a/link": "hello",
		"empty": "", long: "far", "wörld \xff": "odd"} {
		if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(got) != want {
			t.Errorf("%q has %d bytes, %v", name, len(got), err)
		}
	}
	if info, err := os.Stat(filepath.Join(into, "a", "b.txt")); err != nil || !info.ModTime().Equal(at) ||
		info.Mode() != 0o640 {
		t.Errorf("its mode and time: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(into, "none")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("an empty directory: %v, %v", info, err)
	}
}

// TestUnpackHostile: an archive reaches nothing outside of the directory, and nothing through a
// link.
func TestUnpackHostile(t *testing.T) {
	k, dir := kept(t, nil), t.TempDir()
	for name, h := range map[string]tar.Header{
		"parent":   {Name: "../x", Typeflag: tar.TypeReg},
		"inside":   {Name: "a/../../x", Typeflag: tar.TypeReg},
		"absolute": {Name: dir + "/x", Typeflag: tar.TypeReg},
		"device":   {Name: "dev", Typeflag: tar.TypeChar},
		"hardlink": {Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		"fifo":     {Name: "fifo", Typeflag: tar.TypeFifo},
	} {
		var one bytes.Buffer
		w := tar.NewWriter(&one)
		h.Mode = 0o600
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		var e *sandbox.FileError
		if err := k.Unpack(t.Context(), filepath.Join(dir, "in"), one.Bytes()); !errors.As(err, &e) ||
			e.Code != "denied" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, broken := range []string{"no archive at all", strings.Repeat("x", 2000)} {
		var e *sandbox.FileError
		if err := k.Unpack(t.Context(), filepath.Join(dir, "in"), []byte(broken)); !errors.As(err, &e) {
			t.Errorf("%.10s: %v", broken, err)
		}
	}
	if found, _ := filepath.Glob(dir + "/*"); len(found) != 1 {
		t.Errorf("there is %v", found)
	}
}
