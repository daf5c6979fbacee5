package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// standing are the definitions that a host loads.
type standing struct {
	count     func(text string) int
	servers   int
	tools     map[string]string // by name
	announced string            // what Claude Code's tool search says before it names tools
	ours      int               // tokens of the bridge's tools and instructions
}

// all returns what it takes to load all.
func (d standing) all() (tokens int) {
	for _, definition := range d.tools {
		tokens += d.count(definition)
	}
	return tokens
}

// names returns what it takes to name all, so that a model can search.
func (d standing) names() (tokens int) {
	names := []string{d.announced}
	for name := range d.tools {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	return d.count(strings.Join(names, "\n"))
}

// loaded returns what it takes to load some by one search, by their names.
func (d standing) loaded(used map[string]bool) (tokens int) {
	var names []string
	for name := range used {
		names = append(names, name)
		tokens += d.count(d.tools[name])
	}
	slices.Sort(names)
	return tokens + d.count("ToolSearch"+`{"query":"select:`+strings.Join(names, ",")+`","max_results":5}`+
		"Tool loaded.")
}

// tables returns what stands in the cookbook, and in docs/why.md, of the tasks' tokens.
func (d standing) tables(recipes []recipe, all []spent) (costs, why string) {
	var b strings.Builder
	fmt.Fprintf(&b, "| task | calls | their arguments and results | all definitions loaded | tool search | "+
		"mcp-bridge | of it searches | of it code and output |\n"+
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	var sums [3][]int
	for i, s := range all {
		loaded, searched := d.all()+s.direct, d.names()+d.loaded(s.used)+s.direct
		ours := d.ours + s.searches + s.programs
		for j, n := range []int{loaded, searched, ours} {
			sums[j] = append(sums[j], n)
		}
		fmt.Fprintf(&b, "| %s. %s |", recipes[i].number, recipes[i].title)
		for _, n := range []int{s.calls, s.direct, loaded, searched, ours, s.searches, s.programs} {
			fmt.Fprintf(&b, " %s |", text.Count(int64(n)))
		}
		b.WriteString("\n")
	}
	costs = b.String()
	b.Reset()
	fmt.Fprintf(&b, "| tokens | before a task, with %d tools of %d servers | the cookbook's tasks, the "+
		"median | the smallest | the largest |\n| --- | ---: | ---: | ---: | ---: |\n", len(d.tools), d.servers)
	for i, way := range []struct {
		name     string
		standing int
	}{{"all definitions loaded", d.all()}, {"tool search", d.names()}, {"mcp-bridge", d.ours}} {
		slices.Sort(sums[i])
		fmt.Fprintf(&b, "| %s |", way.name)
		half := len(sums[i]) / 2
		for _, n := range []int{way.standing, (sums[i][half-1] + sums[i][half]) / 2, sums[i][0],
			sums[i][len(sums[i])-1]} {
			fmt.Fprintf(&b, " %s |", text.Count(int64(n)))
		}
		b.WriteString("\n")
	}
	return costs, b.String()
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(t, enc.Encode(v))
	return strings.TrimSpace(b.String())
}

// between returns the page with a text between the marks of that name.
func between(t *testing.T, page, name, text string) string {
	t.Helper()
	part := regexp.MustCompile(`(?s)(<!-- ` + name + `:[^\n]*-->\n).*?(<!-- end of ` + name + ` -->)`)
	if !part.MatchString(page) {
		t.Fatalf("the page has no marks for %s", name)
	}
	return part.ReplaceAllString(page, "${1}"+strings.ReplaceAll(text, "$", "$$")+"${2}")
}

var number = regexp.MustCompile(`\d[\d,]*`)

// compare reports where a page and what it should be differ: in a word, or in a number by more than
// 2 %. Directories are listed in an order of the file system's own, which costs a token or two.
func compare(t *testing.T, path, page, want string) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	pageLines, wantLines := strings.Split(page, "\n"), strings.Split(want, "\n")
	for i := range max(len(pageLines), len(wantLines)) {
		is, should := "(nothing)", "(nothing)"
		if i < len(pageLines) {
			is = pageLines[i]
		}
		if i < len(wantLines) {
			should = wantLines[i]
		}
		alike := number.ReplaceAllString(is, "0") == number.ReplaceAllString(should, "0")
		a, b := number.FindAllString(is, -1), number.FindAllString(should, -1)
		for j := 0; alike && j < len(a); j++ {
			x, _ := strconv.ParseFloat(strings.ReplaceAll(a[j], ",", ""), 64)
			y, _ := strconv.ParseFloat(strings.ReplaceAll(b[j], ",", ""), 64)
			tolerated := 0.0
			if strings.HasPrefix(is, "| ") {
				tolerated = 0.02 * y
			}
			alike = math.Abs(x-y) <= tolerated
		}
		if !alike {
			t.Errorf("%s:%d: go test -run TestCookbook ./cmd/mcp-bridge -update would change\n  %s\nto\n  %s", path,
				i+1, is, should)
			return
		}
	}
}
