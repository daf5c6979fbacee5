package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
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
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports",
		"-tags", strings.TrimSpace(string(tags)), module+"...")
	out, err := cmd.Output()
	if err != nil && os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "" {
		t.Skipf("the user that runs containers has no modules; make unit has run this: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// edge is an import, or a package by itself where imported is empty.
type edge struct{ importer, imported string }

// parseDrawing returns the packages of the first fenced block of page in their order, and the imports drawn there.
// A statement is `a, b → c, d`; it goes on in the indented lines below it.
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

// TestImports compares the drawing of ARCHITECTURE.md with the imports that there are, in both directions.
func TestImports(t *testing.T) {
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

// packageRow matches a row of the table of packages: the packages, what they own, their main type, and what they alone import.
var packageRow = regexp.MustCompile("(?m)^\\| (`[^|]*) \\| [^|]* \\| [^|]* \\| ([^|]*) \\| [^|]* \\|$")

// onlyTests is the row of what is imported by tests alone.
const onlyTests = "*_test.go"

// packageTable returns the packages that have a row in page, and who may import what the column "sole importer of" names.
func packageTable(page string) (packages []string, importers map[string][]string) {
	quoted := regexp.MustCompile("`([^`]+)`")
	importers = map[string][]string{}
	for _, row := range packageRow.FindAllStringSubmatch(page, -1) {
		for _, p := range quoted.FindAllStringSubmatch(row[1], -1) {
			packages = append(packages, p[1])
			for _, heavy := range quoted.FindAllStringSubmatch(row[2], -1) {
				importers[heavy[1]] = append(importers[heavy[1]], p[1])
			}
		}
	}
	return packages, importers
}

// TestSoleImporters compares the table of ARCHITECTURE.md with the packages that there are and with what they import.
func TestSoleImporters(t *testing.T) {
	page := readArchitecture(t)
	drawn, _ := parseDrawing(t, page)
	rows, importers := packageTable(page)
	want := append([]string{onlyTests, "archive"}, drawn...)
	slices.Sort(want)
	if slices.Sort(rows); !slices.Equal(rows, want) {
		t.Errorf("the table has the packages\n%q, want those of the drawing, archive and tests,\n%q", rows, want)
	}
	all := goList(t)
	for heavy, may := range importers {
		found := map[string]bool{}
		for _, p := range all {
			if slices.ContainsFunc(p.Imports, isOrBelow(heavy)) {
				found[p.name()] = true
			}
			if slices.Contains(may, onlyTests) && slices.ContainsFunc(append(p.TestImports, p.XTestImports...), isOrBelow(heavy)) {
				found[onlyTests] = true
			}
		}
		slices.Sort(may)
		if is := slices.Sorted(maps.Keys(found)); !slices.Equal(is, may) {
			t.Errorf("%s is imported by %q; the table says by %q", heavy, is, may)
		}
	}
}

// isOrBelow reports whether an import is of the module or folder heavy, whose "github.com/" the table leaves out.
func isOrBelow(heavy string) func(string) bool {
	return func(i string) bool {
		i = strings.TrimPrefix(i, "github.com/")
		return i == heavy || strings.HasPrefix(i, heavy+"/")
	}
}
