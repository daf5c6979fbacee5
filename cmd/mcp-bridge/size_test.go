package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The most that TestSize lets each be.
const (
	maxFiles   = 25  // files of a package, without tests
	maxMethods = 30  // methods of a type
	maxValues  = 2   // calls of context.WithValue, without those that a library asks for
	maxColumns = 110 // columns of a line of code; a tab counts as one
)

// sizes counts what TestSize measures, by names such as "files of sandbox".
type sizes map[string]int

// TestSize: packages, types and lines stay small enough to read, and few values ride in contexts.
func TestSize(t *testing.T) {
	s := sizes{}
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		return s.count(filepath.ToSlash(path))
	}))
	if len(s) < 500 {
		t.Fatalf("only %d things were found to measure", len(s))
	}
	next := map[string]string{"wide": fmt.Sprintf(" (wider than %d columns; make fmt)", maxColumns),
		"files": " (put together what belongs together)"}
	limits := map[string]int{"files": maxFiles, "method": 1, "methods": maxMethods,
		"context.WithValue": maxValues}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		what, _, _ := strings.Cut(name, " ")
		if got := s[name]; got > limits[what] {
			t.Errorf("%s: %d, at most %d%s", name, got, limits[what], next[what])
		}
	}
}

// count adds what there is in the file at path.
func (s sizes) count(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := gotoken.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(path, "../../")
	pkg := strings.TrimSuffix(name, "/"+filepath.Base(name))
	data := map[int]bool{} // the lines that go on in a raw string
	test := strings.HasSuffix(name, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			for line := fset.Position(n.Pos()).Line + 1; line <= fset.Position(n.End()).Line; line++ {
				data[line] = true
			}
		case *ast.FuncDecl:
			of := pkg + "." + receiver(n)
			if method := "method " + of + "." + n.Name.Name; n.Recv != nil && !test && s[method] == 0 {
				s[method] = 1 // of several systems it counts once
				s["methods of "+of]++
			}
		case *ast.CallExpr:
			if carries(n) && !test {
				s["context.WithValue"]++
			}
		}
		return true
	})
	if !test {
		s["files of "+pkg]++
	}
	for i, line := range strings.Split(string(text), "\n") {
		if !data[i+1] && utf8.RuneCountInString(line) > maxColumns {
			s["wide lines of "+name]++
		}
	}
	return nil
}

// carries reports whether call is context.WithValue with a key of ours, not of a library.
func carries(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "WithValue" {
		return false
	}
	_, library := call.Args[1].(*ast.SelectorExpr)
	return !library
}

// receiver returns the name of the type that f is a method of, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
