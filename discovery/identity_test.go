package discovery

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

// TestIdentity: every field counts in it that decides what is started or reached, and no other.
func TestIdentity(t *testing.T) {
	t.Chdir(t.TempDir())
	beside := []string{"Name", "Description", "Source", "Also", "Tools", "Twins", "OfProject", "Written",
		"FilledIn", "Files", "Ignored", "Isolate"}
	var plain Server
	for i := range reflect.TypeFor[Server]().NumField() {
		var s Server
		field := reflect.ValueOf(&s).Elem().Field(i)
		name := reflect.TypeFor[Server]().Field(i).Name
		switch v := field.Interface().(type) {
		case Transport:
			field.Set(reflect.ValueOf(Transport("other")))
		case bool:
			field.SetBool(true)
		case string:
			field.SetString("/x")
		case []string:
			field.Set(reflect.ValueOf([]string{"x"}))
		case map[string]string:
			field.Set(reflect.ValueOf(map[string]string{"x": "y"}))
		case Source:
			field.Set(reflect.ValueOf(Source{Path: "/x"}))
		case []Source:
			field.Set(reflect.ValueOf([]Source{{Path: "/x"}}))
		case OAuth:
			field.Set(reflect.ValueOf(OAuth{Resource: "x"}))
		case []Secret:
			field.Set(reflect.ValueOf([]Secret{{Name: "x"}}))
		case config.FilledIn:
			field.Set(reflect.ValueOf(config.FilledIn{Env: map[string]string{"x": "y"}}))
		case Filter:
			field.Set(reflect.ValueOf(Filter{Deny: []string{"x"}}))
		case []config.Twin:
			field.Set(reflect.ValueOf([]config.Twin{{Name: "x"}}))
		default:
			t.Errorf("field %s is of a type %T that this test doesn't know", name, v)
		}
		if s.Identity() != plain.Identity() && s.Describe() == plain.Describe() {
			t.Errorf("%s isn't told", name)
		}
		if counts := !slices.Contains(beside, name); (s.Identity() != plain.Identity()) != counts ||
			s.Same(plain) == counts {
			t.Errorf("%s: another identity %v, the same %v", name, s.Identity() != plain.Identity(),
				s.Same(plain))
		}
	}
	if a, b := (Server{Args: []string{"a b"}}), (Server{Args: []string{"a",
		"b"}}); a.Identity() == b.Identity() || a.Same(b) {
		t.Error("one argument is two")
	}
	if a := (Server{Args: []string{}, Env: map[string]string{}}); a.Identity() != plain.Identity() ||
		!a.Same(plain) {
		t.Error("what is empty differs from what is nil")
	}
}

// TestLoginIsTold: each field of a login makes another server, and is told.
func TestLoginIsTold(t *testing.T) {
	plain := Server{Transport: HTTP, URL: "https://x.example/"}
	for i := range reflect.TypeFor[OAuth]().NumField() {
		s := plain
		field := reflect.ValueOf(&s.OAuth).Elem().Field(i)
		switch field.Interface().(type) {
		case bool:
			field.SetBool(true)
		case string:
			field.SetString("x")
		case int:
			field.SetInt(1)
		case []string:
			field.Set(reflect.ValueOf([]string{"x"}))
		}
		if name := reflect.TypeFor[OAuth]().Field(i).Name; s.ID() == plain.ID() ||
			s.Describe() == plain.Describe() {
			t.Errorf("%s: another ID %v, told:\n%s", name, s.ID() != plain.ID(), s.Describe())
		}
	}
}

// TestIdentityInADirectory: what is started in the working directory is another server in another
// one, also where a link leads there.
func TestIdentityInADirectory(t *testing.T) {
	root := t.TempDir()
	a, b, link := filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "link")
	for _, dir := range []string{a, b} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in := func(dir string, s Server) string {
		t.Chdir(dir)
		return s.Identity()
	}
	for _, tc := range []struct {
		name   string
		server Server
		moves  bool
	}{
		{"no directory", Server{Transport: Stdio, Command: "python3", Args: []string{"tools/mcp.py"}}, true},
		{"a directory", Server{Transport: Stdio, Command: "python3", Args: []string{"tools/mcp.py"},
			Dir: root}, false},
		{"remote", Server{Transport: HTTP, URL: "https://example.org/mcp"}, false},
		{"remote with a program for its headers", Server{Transport: HTTP, URL: "https://example.org/mcp",
			HeadersHelper: "./headers.sh"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if moved := in(a, tc.server) != in(b, tc.server); moved != tc.moves ||
				tc.server.StartedHere() != tc.moves {
				t.Errorf("in another directory it is another one: %v", moved)
			}
			for _, dir := range []string{a, b} {
				_ = os.Remove(link)
				if err := os.Symlink(dir, link); err != nil {
					t.Fatal(err)
				}
				if in(link, tc.server) != in(dir, tc.server) {
					t.Errorf("by a link to %s it is another one", dir)
				}
			}
		})
	}
}
