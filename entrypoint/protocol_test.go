package entrypoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestProtocolDocument: PROTOCOL.md has a row for every frame, error code and point of the
// specification that it began with, and every transcript and test that it names is there.
func TestProtocolDocument(t *testing.T) {
	data, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(data)
	for name, value := range constants(t, "frame.go") {
		if (strings.HasPrefix(name, "Type") || strings.HasPrefix(name, "Code")) &&
			!strings.Contains(document, "\n| `"+value+"` |") {
			t.Errorf("there is no row for %s, %q", name, value)
		}
	}
	for point := 1; point <= 24; point++ {
		if !strings.Contains(document, "\n| "+strconv.Itoa(point)+" |") {
			t.Errorf("there is no row for point %d", point)
		}
	}
	tests := testsOf(t)
	named := 0
	for row := range strings.Lines(document) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
		if !strings.HasPrefix(row, "|") || strings.HasPrefix(row, "| ---") ||
			strings.Contains(row, " test |") ||
			strings.Contains(row, " played by |") {
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z_]+)`").FindAllStringSubmatch(cells[len(cells)-1], -1) {
			named++
			if !tests[m[1]] {
				t.Errorf("there is no test and no transcript %s, which this row names: %s", m[1], row)
			}
		}
	}
	if named < 60 {
		t.Errorf("only %d tests are named", named)
	}
}

// constants are those of a file whose values are strings.
func constants(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				found[spec.Names[0].Name], _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	if len(found) < 20 {
		t.Fatalf("only %d constants in %s", len(found), file)
	}
	return found
}

// testsOf are the names of all transcripts, of the Go tests of this package and of those that use
// it, and of the guest's own.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^(?:func|    def) ([Tt]est\w+)\(`)
	for _, pattern := range []string{"*_test.go", "../sandbox/*_test.go", "../cmd/mcp-bridge/*_test.go",
		"guest_tests/*.py"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
		}
	}
	names, err := fs.Glob(os.DirFS("testdata/transcripts"), "*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		found[strings.TrimSuffix(name, ".txtar")] = true
	}
	return found
}
