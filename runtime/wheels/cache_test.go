package wheels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

var example = wheel(member{name: "example/__init__.py", content: "x = 1"})

// chosenAt is the example at a URL, as a lock has it.
func chosenAt(t *testing.T, base string) []Chosen {
	t.Helper()
	l, err := Parse([]byte(lockOf(base, map[string][]byte{exampleFile: example})))
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := l.Choose(python)
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

// fetch returns what the cache has of the example's content.
func fetch(t *testing.T, c *Cache, chosen []Chosen) error {
	t.Helper()
	files, err := c.Fetch(t.Context(), chosen)
	if err != nil {
		return err
	}
	defer closeAll(files)
	got, err := io.ReadAll(io.NewSectionReader(files[0].content, 0, files[0].size))
	if err == nil && string(got) != string(example) {
		t.Errorf("got %d bytes, want %d", len(got), len(example))
	}
	return err
}

// names returns what a directory has.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestCache(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Write(example)
	}))
	defer s.Close()
	var done, total int64
	c := &Cache{Dir: filepath.Join(t.TempDir(), "a", "b"), Progress: func(d, t int64) { done, total = d, t }}
	chosen := chosenAt(t, s.URL)
	file := filepath.Join(c.Dir, hash(example)+".whl")
	left := filepath.Join(c.Dir, strings.Repeat("1", 64)+".part")
	for _, tt := range []struct {
		name    string
		prepare func() error
		want    int64 // requests
	}{
		{"empty", func() error { return nil }, 1},
		{"filled", func() error { return nil }, 0},
		{"poisoned", func() error { return os.WriteFile(file, []byte(strings.Repeat("x", len(example))), 0o600) },
			1},
		{"cut", func() error { return os.Truncate(file, 10) }, 1},
		{"left by a killed process", func() error { return os.WriteFile(left, []byte("x"), 0o600) }, 0},
		{"left of the same file", func() error { return os.Rename(file, strings.TrimSuffix(file, ".whl")+".part") },
			1},
	} {
		if err := tt.prepare(); err != nil {
			t.Fatal(err)
		}
		requests.Store(0)
		if err := fetch(t, c, chosen); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := requests.Load(); got != tt.want {
			t.Errorf("%s: %d requests, want %d", tt.name, got, tt.want)
		}
		if size := int64(len(example)); done != size || total != size {
			t.Errorf("%s: progress ended with %d of %d, want %d", tt.name, done, total, size)
		}
		if got := fmt.Sprint(names(t, c.Dir)); got != fmt.Sprint([]string{filepath.Base(file), "lock"}) {
			t.Errorf("%s: the cache has %s", tt.name, got)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", tt.name, info, err)
		}
	}
	if info, err := os.Stat(c.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	s.Close()
	if err := fetch(t, c, chosen); err != nil {
		t.Errorf("offline, with a filled cache: %v", err)
	}
}

// TestCacheLimit keeps what was asked for last, and what is asked for now whatever its size.
func TestCacheLimit(t *testing.T) {
	s := serve(t, map[string][]byte{exampleFile: example})
	c := &Cache{Dir: t.TempDir(), Limit: int64(len(example)) + 30}
	now := time.Now()
	for i, age := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		old := filepath.Join(c.Dir, fmt.Sprint(i)+".whl")
		if err := errors.Join(os.WriteFile(old, make([]byte, 20), 0o600),
			os.Chtimes(old, now, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"[1.whl ", "["} {
		if err := fetch(t, c, chosenAt(t, s.URL)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(names(t, c.Dir)); got != want+hash(example)+".whl lock]" {
			t.Errorf("the cache has %s, want %s and the wheel", got, want)
		}
		c.Limit = 1
	}
}

// TestUnavailable has what keeps wheels from coming. Nothing unfinished is left behind.
func TestUnavailable(t *testing.T) {
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	half := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(len(example)))
		w.Write(example[:10])
		w.(http.Flusher).Flush()
	}
	tests := []struct {
		name       string
		handler    http.HandlerFunc
		want, hint string
	}{
		{"gone", answer(404), "answered 404", "lock again"},
		{"login", answer(401), "answered 401", "put the login into the URL"},
		{"proxy's login", answer(407), "answered 407", "HTTPS_PROXY"},
		{"broken", answer(503), "answered 503", "try again"},
		{"cut", func(w http.ResponseWriter, _ *http.Request) { half(w) }, "unexpected EOF", "online"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { w.Write(append(example, 0)) },
			"not the file that was locked", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			c := &Cache{Dir: t.TempDir()}
			checkError(t, fetch(t, c, chosenAt(t, s.URL)), exampleFile, tt.want, tt.hint)
			if got := fmt.Sprint(names(t, c.Dir)); got != "[lock]" {
				t.Errorf("the cache has %s", got)
			}
		})
	}
	t.Run("offline", func(t *testing.T) {
		s := serve(t, nil)
		s.Close()
		chosen := chosenAt(t, strings.Replace(s.URL, "//", "//user:secret@", 1))
		chosen[0].URL += "?token=secret"
		err := fetch(t, &Cache{Dir: t.TempDir()}, chosen)
		checkError(t, err, exampleFile, "can't be reached", "HTTPS_PROXY")
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v has a password", err)
		}
	})
	t.Run("unknown authority", func(t *testing.T) {
		s := httptest.NewTLSServer(answer(200))
		defer s.Close()
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		checkError(t, fetch(t, &Cache{Dir: t.TempDir()}, chosenAt(t, s.URL)), exampleFile, "can't be reached",
			"SSL_CERT_FILE")
	})
	t.Run("no directory", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		checkError(t, fetch(t, &Cache{Dir: filepath.Join(path, "x")}, nil), path, "not a directory", "")
	})
}

// reader is a function as an io.Reader.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// slow answers with content of which a part comes after each pause.
type slow struct {
	parts []string
	pause time.Duration
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	body := reader(func(p []byte) (int, error) {
		if len(s.parts) == 0 {
			return 0, io.EOF
		}
		select {
		case <-time.After(s.pause):
		case <-r.Context().Done():
			return 0, r.Context().Err()
		}
		n := copy(p, s.parts[0])
		s.parts = s.parts[1:]
		return n, nil
	})
	return &http.Response{StatusCode: 200, Body: io.NopCloser(body), Request: r}, nil
}

// TestStall waits for a server that is slow, and gives one up that has stopped.
func TestStall(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pause time.Duration
	}{{"slow", stallAfter - time.Second}, {"silent", stallAfter + time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				text := string(example)
				c := &Cache{Dir: dir, Client: &http.Client{Transport: &slow{[]string{text[:9], text[9:20], text[20:]},
					tt.pause}}}
				err := fetch(t, c, chosenAt(t, "https://x.example"))
				if tt.name == "silent" {
					checkError(t, err, exampleFile, "nothing came for 1m0s", "online")
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// checkError wants two texts in an error and one in its hint.
func checkError(t *testing.T, err error, names, want, hint string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), names) {
		t.Fatalf("got %v, want one with %q that names %s", err, want, names)
	}
	var e *text.HintError
	if hint != "" && (!errors.As(err, &e) || !strings.Contains(e.Hint(), hint)) {
		t.Errorf("%v: %+v has no hint %q", err, e, hint)
	}
}

// TestFetchEndsWithItsContext cancels a download under way.
func TestFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	c := &Cache{Dir: t.TempDir()}
	if _, err := c.Fetch(ctx, chosenAt(t, s.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Fetch(ctx, chosenAt(t, s.URL)); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// TestIndex looks a file of PyPI up in an index, whose URLs are relative or absolute, and takes
// files of other hosts from where the lock says.
func TestIndex(t *testing.T) {
	page := "<a href='../../files/other.whl'>x</a><A class=\"x\"\n" +
		"href=\"../../f/EXAMPLE?a=1&amp;b=2#sha256=00\">example</a>"
	pages := map[string]string{
		"html": strings.ReplaceAll(page, "EXAMPLE", exampleFile),
		"json": `{"meta": {}, "files": [{"filename": "x", "url": "../x.whl"}, {"url": "../../f/` + exampleFile +
			`?a=1&b=2"}]}`,
		"absolute": `{"files": [{"url": "BASE/f/` + exampleFile + `?a=1&b=2"}]}`,
		"without":  strings.ReplaceAll(page, "EXAMPLE", "example-2.0-py3-none-any.whl"),
	}
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		index := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/example/")
		switch body, has := pages[index]; {
		case user != "user" || password != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case has:
			io.WriteString(w, strings.ReplaceAll(body, "BASE", s.URL))
		case r.URL.String() == "/f/"+exampleFile+"?a=1&b=2":
			w.Write(example)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	withLogin := strings.Replace(s.URL, "//", "//user:secret@", 1)
	locked := chosenAt(t, "https://files.pythonhosted.org/packages")
	for _, index := range []string{"html", "html/", "json", "absolute"} {
		if err := fetch(t, &Cache{Dir: t.TempDir(), Index: withLogin + "/" + index}, locked); err != nil {
			t.Errorf("%s: %v", index, err)
		}
	}
	checkError(t, fetch(t, &Cache{Dir: t.TempDir(), Index: withLogin + "/without"}, locked), exampleFile,
		"doesn't have it", "lock again")
	checkError(t, fetch(t, &Cache{Dir: t.TempDir(), Index: s.URL + "/html"}, locked), exampleFile, "401",
		"put the login")
	elsewhere := serve(t, map[string][]byte{exampleFile: example})
	if err := fetch(t, &Cache{Dir: t.TempDir(), Index: withLogin + "/without"},
		chosenAt(t, elsewhere.URL)); err != nil {
		t.Errorf("a file of another host: %v", err)
	}
}

// TestLoginInTheClear: an index of https doesn't get its login sent over http by a link on its
// page.
func TestLoginInTheClear(t *testing.T) {
	page := `<a href="http://i.example/f/` + exampleFile + `">x</a> <a href="HTTPS://i.example/f/x.whl">y</a>`
	c := &Cache{Index: "https://user:secret@i.example/simple", Client: &http.Client{Transport: answering(page)}}
	locked := chosenAt(t, "https://files.pythonhosted.org/packages")[0]
	for file, want := range map[string]string{
		exampleFile: "http://i.example/f/" + exampleFile, "x.whl": "https://user:secret@i.example/f/x.whl",
	} {
		locked.File = file
		if got, err := c.locate(t.Context(), locked); err != nil || got != want {
			t.Errorf("%s: got %s, %v", file, got, err)
		}
	}
}

// answering answers each request with a page.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a))),
		Request: r}, nil
}
