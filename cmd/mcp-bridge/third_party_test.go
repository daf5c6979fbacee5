package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThirdParty makes THIRD_PARTY of the modules whose packages are in the binary, on any system,
// and THIRD_PARTY_KUBERNETES of those that the build tag kubernetes adds, and compares both with
// the files. `make third-party` writes them.
func TestThirdParty(t *testing.T) {
	if testing.Short() || os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "" {
		t.Skip("it lists all packages with go, once, in make check")
	}
	usual, more := modulesOf(t, ""), modulesOf(t, " kubernetes")
	for name := range usual {
		delete(more, name)
		if strings.HasPrefix(name, "k8s.io/") {
			t.Errorf("%s is in the binary that is built without Kubernetes", name)
		}
	}
	goRoot, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	usual["the Go standard library"] = map[string]bool{filepath.Join(strings.TrimSpace(string(goRoot)),
		"LICENSE"): true}
	for file, modules := range map[string]map[string]map[string]bool{
		"THIRD_PARTY": usual, "THIRD_PARTY_KUBERNETES": more,
	} {
		want := notices(t, modules)
		if *update {
			must(t, os.WriteFile(file, []byte(want), 0o644))
		}
		got, err := os.ReadFile(file)
		must(t, err)
		if string(got) != want {
			t.Errorf("%s isn't what the modules in the binary say (%d bytes, want %d); run: make third-party",
				file, len(got), len(want))
		}
	}
}

// modulesOf returns the files with licences and notices, by module and version, of a build with
// the usual tags and more.
func modulesOf(t *testing.T, more string) map[string]map[string]bool {
	tags, err := os.ReadFile("../../scripts/build-tags")
	must(t, err)
	modules := map[string]map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "-tags",
			strings.TrimSpace(string(tags))+more, ".")
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		must(t, err)
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Dir      string
				Standard bool
				Module   *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := d.Decode(&p); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			key := p.Module.Path + " " + p.Module.Version
			if modules[key] == nil {
				modules[key] = map[string]bool{}
			}
			for dir := p.Dir; strings.HasPrefix(dir, p.Module.Dir); dir = filepath.Dir(dir) {
				for _, file := range legalFiles(t, dir) {
					modules[key][file] = true
				}
			}
		}
	}
	return modules
}

var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense|patents)([-._].*)?$`)

// legalFiles are those of a directory that its licence asks to be passed on.
func legalFiles(t *testing.T, dir string) (files []string) {
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Type().IsRegular() && legal.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

// notices is the text of THIRD_PARTY: the modules, each with the numbers of its texts, and each
// text once.
func notices(t *testing.T, modules map[string]map[string]bool) string {
	var list, texts strings.Builder
	numbers := map[string]int{}
	names := slices.SortedFunc(maps.Keys(modules), func(a,
		b string) int {
		return cmp.Compare(strings.ToLower(a), strings.ToLower(b))
	})
	for _, name := range names {
		var has []string
		for _, file := range slices.Sorted(maps.Keys(modules[name])) {
			b, err := os.ReadFile(file)
			must(t, err)
			text := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(b), "?"), "\r\n", "\n"))
			if numbers[text] == 0 {
				numbers[text] = len(numbers) + 1
				fmt.Fprintf(&texts, "\n%s [%d] %s\n\n%s\n", strings.Repeat("-", 20), numbers[text],
					strings.Repeat("-", 20), text)
			}
			has = append(has, fmt.Sprintf("[%d]", numbers[text]))
		}
		if len(has) == 0 {
			t.Errorf("module %s has no file with its licence", name)
		}
		fmt.Fprintf(&list, "%s %s\n", name, strings.Join(slices.Compact(has), " "))
	}
	return "mcp-bridge contains these modules. The numbers are those of the licences and notices below.\n" +
		"The source of each is at https:// and its path, in the version given; go mod download PATH@VERSION " +
		"fetches it.\n\n" +
		list.String() + texts.String()
}
