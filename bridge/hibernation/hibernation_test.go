package hibernation

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var key = bytes.Repeat([]byte{7}, KeySize)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler),
		Key: func(bool) ([]byte, error) { return key, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func about(owner, id string) Saved {
	return Saved{Owner: owner, ID: id, Name: "n", Variables: map[string]string{"SECRET": "hunter2"}, Calls: 3,
		At: time.Now(), Used: time.Now()}
}

// save saves a sandbox with a text in the place of an archive.
func save(t *testing.T, s *Store, owner, id, text string) {
	t.Helper()
	c, err := s.New(owner, id)
	if err == nil {
		err = c.Save(about(owner, id), func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns what was saved.
func read(s *Store, owner, id string) (text string, err error) {
	c, err := s.Claim(owner, id)
	if err != nil {
		return "", err
	}
	defer c.Drop()
	err = c.Read(func(r io.Reader) error {
		b, err := io.ReadAll(r)
		text = string(b)
		return err
	})
	return text, err
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestSaved: what was saved comes back, to its owner alone, and nothing of it can be read in the
// file.
func TestSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "saved")
	s := open(t, dir)
	for _, text := range []string{"", "some text", strings.Repeat("0123456789", maxChunk/4)} {
		save(t, s, "me", "abcd", text)
		if got, err := read(open(t, dir), "me", "abcd"); err != nil || got != text {
			t.Errorf("got %d bytes of %d, %v", len(got), len(text), err)
		}
	}
	v, err := s.Look("me", "abcd")
	if want := about("me", "abcd"); err != nil || !reflect.DeepEqual(v.Variables, want.Variables) ||
		v.Calls != 3 {
		t.Errorf("got %+v, %v", v, err)
	}
	name := filepath.Join(dir, files(t, dir))
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	data, err := os.ReadFile(name)
	if err != nil || bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte("0123456789")) {
		t.Errorf("the file can be read: %v", err)
	}
	for _, other := range []struct{ owner, id string }{{"you", "abcd"}, {"", "abcd"}, {"me", "abce"},
		{"me", "../x"}} {
		if _, err := s.Claim(other.owner, other.id); !errors.Is(err, ErrNone) {
			t.Errorf("%v: %v", other, err)
		}
		if _, err := s.Look(other.owner, other.id); !errors.Is(err, ErrNone) || s.Remove(other.owner, other.id) {
			t.Errorf("%v: %v", other, err)
		}
	}
	if all := s.List("me"); len(all) != 1 || all[0].ID != "abcd" || len(s.List("you")) != 0 {
		t.Errorf("got %+v", all)
	}
	if !s.Remove("me", "abcd") || files(t, dir) != "" {
		t.Errorf("left: %s", files(t, dir))
	}
}

// TestDamaged: a file that was changed anywhere, cut off, added to or renamed, or another's key, is
// an error that says so.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "me", "abcd", "some text")
	path := filepath.Join(dir, files(t, dir))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if text, err := read(open(t, dir), "me", "abcd"); !errors.As(err, &e) || !errors.Is(err, errDamaged) {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("byte %d changed", i), flipped)
		check(fmt.Sprintf("cut off after %d", i), whole[:i])
	}
	check("a byte more", append(bytes.Clone(whole), 0))
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir)
	other.key = bytes.Repeat([]byte{8}, KeySize)
	if _, err := read(other, "me", "abcd"); !errors.Is(err, errDamaged) {
		t.Errorf("with another key: %v", err)
	}
	if all := other.List("me"); len(all) != 0 {
		t.Errorf("with another key: %v", all)
	}
	if err := os.Rename(path, filepath.Join(dir, prefix("you")+"abcd"+savedSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := read(s, "you", "abcd"); !errors.Is(err, errDamaged) {
		t.Errorf("as another's: %v", err)
	}
}

// TestKilledOnceSaved: a bridge that is killed when it has saved a sandbox, before it has removed
// the lock, has lost nothing, and neither has one that had never woken it.
func TestKilledOnceSaved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	lock := s.path(prefix("me")+"abcd") + lockSuffix
	claim := func() *Claim {
		t.Helper()
		c, err := open(t, dir).Claim("me", "abcd")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	save(t, s, "me", "abcd", "first")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := claim()
	if first.Lost {
		t.Error("a lock of no bridge that has woken it says that something was lost")
	}
	woken, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Save(about("me", "abcd"), func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, woken, 0o600); err != nil {
		t.Fatal(err)
	}
	second := claim()
	if second.Lost {
		t.Error("what was saved is said to be lost")
	}
	second.release() // as the system does when a process ends
	third := claim()
	if !third.Lost {
		t.Error("nothing says that what the second one had is lost")
	}
	third.Drop()
	if fourth := claim(); !fourth.Lost {
		t.Error("it is said to one that hasn't woken it, and not to the next")
	}
}

// TestInUse: a lock that another bridge has for a moment is waited for, one that it keeps isn't.
func TestInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		save(t, s, "me", "abcd", "")
		for _, id := range []string{"abcd", "new"} {
			claim := func() (*Claim, error) {
				if id == "new" {
					return s.New("me", id)
				}
				return s.Claim("me", id)
			}
			held := &Claim{store: s, name: prefix("me") + id}
			if err := held.lock(0); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := claim(); !errors.Is(err, ErrInUse) || time.Since(began) < momentary {
				t.Errorf("%s, kept: %v after %v", id, err, time.Since(began))
			}
			time.AfterFunc(momentary/2, held.Drop)
			c, err := claim()
			if err != nil || c.Lost {
				t.Fatalf("%s, for a moment: %+v, %v", id, c, err)
			}
			c.Drop()
		}
		if left := files(t, s.cfg.Dir); strings.Contains(left, lockSuffix) {
			t.Errorf("left: %s", left)
		}
	})
}

// TestFullDisk: what can't be written leaves the older file, and nothing else.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "me", "abcd", "older")
	full := errors.New("no space left on device")
	c, err := s.Claim("me", "abcd")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Save(about("me", "abcd"), func(io.Writer) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	c.Lose()
	if text, err := read(s, "me", "abcd"); text != "older" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if left := files(t, dir); strings.Contains(left, ".new-") {
		t.Errorf("left: %s", left)
	}
}

// TestBounds: the number and the age of an owner's sandboxes are bounded; those in use stay.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "you", "abcd", "")
	id := func(i int) string { return fmt.Sprintf("id%02d", i) }
	for i := range PerOwner + 3 {
		save(t, s, "me", id(i), "")
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(s.path(prefix("me")+id(i))+savedSuffix, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.crop()
	all := s.List("me")
	if len(all) != PerOwner || len(s.List("you")) != 1 || s.saved(prefix("me")+id(2)) ||
		!s.saved(prefix("me")+id(3)) {
		t.Errorf("%d are kept", len(all))
	}
	used, err := s.Claim("me", id(4))
	if err != nil {
		t.Fatal(err)
	}
	defer used.Drop()
	old := time.Now().Add(-MaxAge - time.Hour)
	for _, i := range []int{3, 4} {
		if err := os.Chtimes(s.path(prefix("me")+id(i))+savedSuffix, old, old); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	if s.saved(prefix("me")+id(3)) || !s.saved(prefix("me")+id(4)) {
		t.Errorf("there is %s", files(t, dir))
	}
	c, err := s.New("me", "soon")
	if err != nil {
		t.Fatal(err)
	}
	v := about("me", "soon")
	v.Expires = time.Now().Add(-time.Second)
	if err := c.Save(v, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim("me", "soon"); !errors.Is(err, ErrNone) || s.saved(prefix("me")+"soon") {
		t.Errorf("one whose time is over: %v", err)
	}
}

// TestTotal: where all take too much, the oldest goes of the owner whose sandboxes take most, and
// never one that is in use.
func TestTotal(t *testing.T) {
	s := open(t, t.TempDir())
	for i, f := range []struct {
		owner, id string
		size      int
	}{{"a", "first", 1000}, {"b", "first", 50_000}, {"b", "second", 40_000}, {"b", "third", 1000},
		{"a", "second", 20_000}} {
		save(t, s, f.owner, f.id, strings.Repeat("x", f.size))
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(s.path(prefix(f.owner)+f.id)+savedSuffix, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func(owner string) (ids []string) {
		for _, v := range s.List(owner) {
			ids = append(ids, v.ID)
		}
		slices.Sort(ids)
		return ids
	}
	used, err := s.Claim("b", "second")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Drop()
	for _, step := range []struct {
		most int64
		a, b []string
	}{
		{200_000, []string{"first", "second"}, []string{"first", "second", "third"}},
		{70_000, []string{"first", "second"}, []string{"second", "third"}},
		{30_000, []string{"first", "second"}, []string{"second", "third"}}, // the one in use would have gone
		{3000, nil, []string{"second", "third"}},
	} {
		s.most = step.most
		s.crop()
		if a, b := left("a"), left("b"); !slices.Equal(a, step.a) || !slices.Equal(b, step.b) {
			t.Errorf("of %d bytes: %v and %v", step.most, a, b)
		}
	}
}

// TestForeignDirectory: a directory that others may write to isn't used.
func TestForeignDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "can be written to") {
		t.Error(err)
	}
}

// TestOthersFiles: what isn't a sandbox's stays, whatever it is called.
func TestOthersFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	others := []string{"Cargo.lock", "poetry.lock", ".notes.new-draft", "my.sandbox"}
	long := time.Now().Add(-2 * MaxAge)
	for _, name := range others {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// archive returns one with these members.
func archive(t testing.TB, all ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range all {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, zeros{}, h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// members names what Unpack hands on.
func members(t testing.TB, data []byte) (names []string, err error) {
	t.Helper()
	err = Unpack(bytes.NewReader(data), func(part []byte) error {
		if len(part) > 2*maxBatch {
			t.Errorf("a part of %d bytes", len(part))
		}
		for r := tar.NewReader(bytes.NewReader(part)); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			names = append(names, fmt.Sprintf("%c %s %d %#o", h.Typeflag, h.Name, h.Size, h.Mode))
		}
	})
	return names, err
}

// TestUnpack: large files come in parts, links and directories last, and hostile archives not at
// all.
func TestUnpack(t *testing.T) {
	got, err := members(t, archive(t,
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o500},
		tar.Header{Name: "d/e/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		tar.Header{Name: "d/big", Typeflag: tar.TypeReg, Mode: 0o4444, Size: maxBatch + 1},
		tar.Header{Name: "./d/e/small", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3},
	))
	want := []string{"0 d/big 4194304 0600", "0 d/big 1 0444", "0 d/e/small 3 0644", "2 d/link 0 0",
		"5 d/e 0 0755", "5 d 0 0500"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	var many []tar.Header
	for i := range maxEntries + 1 {
		many = append(many, tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg})
	}
	for name, data := range map[string][]byte{
		"parent":   archive(t, tar.Header{Name: "../x", Typeflag: tar.TypeReg}),
		"inside":   archive(t, tar.Header{Name: "a/../../x", Typeflag: tar.TypeReg}),
		"absolute": archive(t, tar.Header{Name: "/etc/x", Typeflag: tar.TypeReg}),
		"itself":   archive(t, tar.Header{Name: ".", Typeflag: tar.TypeReg}),
		"device":   archive(t, tar.Header{Name: "dev", Typeflag: tar.TypeBlock}),
		"hardlink": archive(t, tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"fifo":     archive(t, tar.Header{Name: "fifo", Typeflag: tar.TypeFifo}),
		"many":     archive(t, many...),
		"large": archive(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: maxBytes / 2},
			tar.Header{Name: "b", Typeflag: tar.TypeReg, Size: maxBytes/2 + 1}),
		"cut off": archive(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 2000})[:1024],
		"none":    bytes.Repeat([]byte("x"), 600),
	} {
		if _, err := members(t, data); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// FuzzFile: whatever a file has, it is read without a panic; what was not sealed is never returned.
func FuzzFile(f *testing.F) {
	const name = "0123-abcd"
	var whole bytes.Buffer
	text := archive(f, tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 5})
	w, err := newSealer(&whole, key, name)
	if err == nil {
		_, err = w.Write([]byte(`{"ID":"abcd"}`))
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []byte
		v, err := parse(bytes.NewReader(data), key, name, func(r io.Reader) (err error) {
			got, err = io.ReadAll(r)
			return err
		})
		if !bytes.HasPrefix(text, got) || err == nil && (len(got) != len(text) || v.ID != "abcd") {
			t.Errorf("%d bytes: %q, %+v, %v", len(data), got, v, err)
		}
	})
}

// FuzzUnpack: whatever archive hostile code has made, what is handed on has no name outside of the
// directory, and no more than a sandbox holds.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o500},
		tar.Header{Name: "d/a", Typeflag: tar.TypeReg, Size: 5},
		tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../x"}))
	f.Add(archive(f, tar.Header{Name: strings.Repeat("long/", 60) + "a", Typeflag: tar.TypeReg, Size: 600}))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := members(t, data)
		for _, m := range got {
			name := strings.SplitN(m, " ", 2)[1]
			if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "../") || strings.Contains(name, "/../") {
				t.Errorf("%q", m)
			}
		}
	})
}
