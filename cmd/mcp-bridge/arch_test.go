package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-bridge/mcp-bridge/"

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// name returns the package's path within the module.
func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// ours returns the module's own packages that p imports, without those of its tests.
func (p goPackage) ours() []string {
	var ours []string
	for _, i := range p.Imports {
		if name, ok := strings.CutPrefix(i, module); ok {
			ours = append(ours, name)
		}
	}
	return ours
}

func goList(t *testing.T) []goPackage {
	t.Helper()
	tags, err := os.ReadFile("../../scripts/build-tags")
	must(t, err)
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports",
		"-tags", strings.TrimSpace(string(tags))+" kubernetes", module+"...")
	out, err := cmd.Output()
	if err != nil && os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "" {
		t.Skipf("the user that runs containers has no modules; make unit has run this: %v", err)
	}
	must(t, err)
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func readArchitecture(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	must(t, err)
	return string(page)
}

// edge is an import, or a package by itself where imported is empty.
type edge struct{ importer, imported string }

// parseDrawing returns the packages of the first fenced block of page in their order, and the
// imports drawn there. A statement is `a, b → c, d`; it goes on in the indented lines below it.
func parseDrawing(t *testing.T, page string) (packages []string, edges map[edge]bool) {
	t.Helper()
	parts := strings.SplitN(page, "```", 3)
	if len(parts) < 3 {
		t.Fatal("ARCHITECTURE.md has no drawing")
	}
	edges = map[edge]bool{}
	text := regexp.MustCompile(`\n +`).ReplaceAllString(strings.TrimPrefix(parts[1], "text"), " ")
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		importers, imports, _ := strings.Cut(line, "→")
		for _, importer := range names(importers) {
			packages = append(packages, importer)
			for _, imported := range names(imports) {
				edges[edge{importer, imported}] = true
			}
		}
	}
	return packages, edges
}

// names splits a list at its commas.
func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
}

// notOverEngines skips a test that lists packages with go, which make units runs once.
func notOverEngines(t *testing.T) {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "" {
		t.Skip("it lists all packages with go, once, in make units")
	}
}

// TestImports compares the drawing of ARCHITECTURE.md with the imports that there are, in both
// directions.
func TestImports(t *testing.T) {
	notOverEngines(t)
	packages, drawn := parseDrawing(t, readArchitecture(t))
	for i, name := range packages {
		if slices.Contains(packages[:i], name) {
			t.Errorf("%s is drawn twice", name)
		}
	}
	for e := range drawn {
		if slices.Index(packages, e.imported) <= slices.Index(packages, e.importer) {
			t.Errorf("%s must be drawn, and below %s, which imports it", e.imported, e.importer)
		}
	}
	var there []string
	for _, p := range goList(t) {
		there = append(there, p.name())
		if !slices.Contains(packages, p.name()) {
			t.Errorf("package %s isn't drawn", p.name())
		}
		for _, imported := range p.ours() {
			e := edge{p.name(), imported}
			if !drawn[e] {
				t.Errorf("%s imports %s, which isn't drawn", e.importer, e.imported)
			}
			delete(drawn, e)
		}
	}
	for e := range drawn {
		t.Errorf("%s doesn't import %s, as it is drawn", e.importer, e.imported)
	}
	for _, name := range packages {
		if !slices.Contains(there, name) {
			t.Errorf("package %s is drawn, and isn't there", name)
		}
	}
}

// onlyTests is the item of what is imported by tests alone.
const onlyTests = "*_test.go"

// packageList returns the packages that have an item in the section "The packages" of page, and who
// may import what the items name behind "sole importer:". An item begins with the packages, each
// with its main types in brackets, and goes on in the indented lines below it.
func packageList(page string) (packages []string, importers map[string][]string) {
	_, section, _ := strings.Cut(page, "\n## The packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	types := regexp.MustCompile(`\([^)]*\)`)
	importers = map[string][]string{}
	for _, item := range regexp.MustCompile("(?m)^- .*(?:\n  .*)*").FindAllString(section, -1) {
		item, heavy, _ := strings.Cut(item, "sole importer:")
		named, _, _ := strings.Cut(item, ":")
		for _, p := range quoted.FindAllStringSubmatch(types.ReplaceAllString(named, ""), -1) {
			packages = append(packages, p[1])
			for _, h := range quoted.FindAllStringSubmatch(heavy, -1) {
				importers[h[1]] = append(importers[h[1]], p[1])
			}
		}
	}
	return packages, importers
}

// TestSoleImporters compares the list of packages in ARCHITECTURE.md with the drawing, and what it
// says of sole importers with the imports that there are.
func TestSoleImporters(t *testing.T) {
	notOverEngines(t)
	page := readArchitecture(t)
	drawn, _ := parseDrawing(t, page)
	listed, importers := packageList(page)
	if len(importers) == 0 {
		t.Error("the list of packages names no sole importer")
	}
	want := append([]string{onlyTests, "archive"}, drawn...)
	slices.Sort(want)
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("the list has the packages\n%q, want those of the drawing, archive and tests,\n%q", listed, want)
	}
	all := goList(t)
	for heavy, may := range importers {
		found := map[string]bool{}
		for _, p := range all {
			if slices.ContainsFunc(p.Imports, isOrBelow(heavy)) {
				found[p.name()] = true
			}
			inTests := append(p.TestImports, p.XTestImports...)
			if slices.Contains(may, onlyTests) && slices.ContainsFunc(inTests, isOrBelow(heavy)) {
				found[onlyTests] = true
			}
		}
		slices.Sort(may)
		if is := slices.Sorted(maps.Keys(found)); !slices.Equal(is, may) {
			t.Errorf("%s is imported by %q; the list says by %q", heavy, is, may)
		}
	}
}

// isOrBelow reports whether an import is of the module or folder heavy, whose "github.com/" the
// list leaves out.
func isOrBelow(heavy string) func(string) bool {
	return func(i string) bool {
		i = strings.TrimPrefix(i, "github.com/")
		return i == heavy || strings.HasPrefix(i, heavy+"/")
	}
}

// TestDependencies: ARCHITECTURE.md names each module that go.mod requires directly, or one of its
// packages.
func TestDependencies(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	must(t, err)
	var named []string
	for _, m := range regexp.MustCompile("`([^`\\s]+)`").FindAllStringSubmatch(readArchitecture(t), -1) {
		named = append(named, m[1])
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1)
	if len(direct) < 20 {
		t.Fatalf("go.mod has only %d direct requirements", len(direct))
	}
	for _, m := range direct {
		path := regexp.MustCompile(`/v\d+$`).ReplaceAllString(strings.TrimPrefix(m[1], "github.com/"), "")
		if !slices.ContainsFunc(named, func(n string) bool { return isOrBelow(path)(n) || isOrBelow(n)(path) }) {
			t.Errorf("%s isn't among the dependencies", path)
		}
	}
}

// TestNamedFiles: the files that ARCHITECTURE.md names are there.
func TestNamedFiles(t *testing.T) {
	var there []string
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		there = append(there, filepath.ToSlash(path))
		return err
	}))
	named := regexp.MustCompile("`([\\w/]+\\.(?:go|py|golden|txt))`").FindAllStringSubmatch(readArchitecture(t),
		-1)
	if len(named) < 10 {
		t.Fatalf("the page names only %d files", len(named))
	}
	for _, m := range named {
		if !strings.Contains(m[1], "NAME") && !slices.ContainsFunc(there, func(path string) bool {
			return strings.HasSuffix(path, "/"+m[1])
		}) {
			t.Errorf("there is no file %s", m[1])
		}
	}
}

// TestCommandsThatAreNamed: the commands that texts of the program and the documentation tell a
// user to type are there.
func TestCommandsThatAreNamed(t *testing.T) {
	typed := regexp.MustCompile(
		"(?:type|run|next|with|it|one|them|first): mcp-bridge ([a-z][a-z-]*)(?: ([a-z]+))?|" +
			"`mcp-bridge ([a-z][a-z-]*)(?: ([a-z]+))?[^`\n]*`")
	root, found := (&app{}).root(), 0
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") || d.Name() == "HISTORY.md" {
			return nil
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "mcp-bridge ") { // the expression takes a minute for all lines
				continue
			}
			for _, m := range typed.FindAllStringSubmatch(line, -1) {
				found++
				cmd, rest, err := root.Find(slices.DeleteFunc(m[1:], func(word string) bool { return word == "" }))
				if err != nil || cmd == root || len(rest) > 0 && cmd.HasSubCommands() && cmd.Name() != "servers" {
					t.Errorf("%s: there is no command %s", path, m[0])
				}
			}
		}
		return err
	}))
	if found < 50 {
		t.Errorf("only %d were found", found)
	}
}

// TestSymptoms: what docs/troubleshooting.md quotes in its headings is what the program says.
func TestSymptoms(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	must(t, err)
	quoted := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^### `(.+)`$").FindAllStringSubmatch(string(page), -1) {
		quoted[m[1]] = false
	}
	must(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return fs.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") &&
			!strings.HasSuffix(path, ".py") {
			return nil
		}
		text, err := os.ReadFile(path)
		for q := range quoted {
			quoted[q] = quoted[q] || strings.Contains(string(text), q)
		}
		return err
	}))
	if len(quoted) < 5 {
		t.Errorf("the page quotes only %d", len(quoted))
	}
	for q, said := range quoted {
		if !said {
			t.Errorf("the program doesn't say %q", q)
		}
	}
}
