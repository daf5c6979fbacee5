package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// recipe is a task of docs/cookbook.md.
type recipe struct {
	number, title string
	searches      []string // arguments of search_tools
	programs      []string
}

var (
	recipeHeading = regexp.MustCompile(`(?m)^## (\d+)\. (.*)$`)
	recipeSearch  = regexp.MustCompile("(?m)^`search_tools ({.*})`$")
	recipeProgram = regexp.MustCompile("(?s)```python\n(.*?)```\n\n```text\n(.*?)```")
)

// recipes returns the tasks of the page.
func recipes(page string) (all []recipe) {
	heads := recipeHeading.FindAllStringSubmatchIndex(page, -1)
	for i, at := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		part := page[at[0]:end]
		r := recipe{number: page[at[2]:at[3]], title: page[at[4]:at[5]]}
		for _, m := range recipeSearch.FindAllStringSubmatch(part, -1) {
			r.searches = append(r.searches, m[1])
		}
		for _, m := range recipeProgram.FindAllStringSubmatch(part, -1) {
			r.programs = append(r.programs, m[1])
		}
		all = append(all, r)
	}
	return all
}

// spent are the tokens that a task takes of a model's context, each counted once.
type spent struct {
	calls    int             // that the servers were sent
	direct   int             // their names and arguments, and the results
	used     map[string]bool // their tools, as mcp__server__tool
	searches int             // of search_tools, with what they found
	programs int             // the code, and the results of run_python
}

// kitchen is a bridge before the cookbook's servers, and what is needed to count.
type kitchen struct {
	count    func(text string) int
	c        *client
	there    *strings.Replacer // what this machine calls things → what the page does
	here     *strings.Replacer // the other way
	servers  []string
	records  string
	consumed map[string]int // bytes of each record that were counted
}

// TestCookbook runs docs/cookbook.md: each program in a container, over real servers. It compares
// what they print, and the tokens that a model reads and writes, with the page and docs/why.md,
// which -update writes.
func TestCookbook(t *testing.T) {
	needTime(t)
	from := installed(t)
	for _, environment := range []string{"python", "python-sqlite"} {
		if _, err := os.Stat(filepath.Join(from, environment, "installed")); err != nil {
			t.Skip("PyPI gave no servers, or not all")
		}
	}
	data, err := os.ReadFile("../../docs/cookbook.md")
	must(t, err)
	page := string(data)
	k, definitions := setUp(t, from)
	var all []spent
	var printed []string
	for _, r := range recipes(page) {
		var s spent
		t.Run(r.number+" "+r.title, func(t *testing.T) {
			s.searches = k.search(t, r)
			for _, program := range r.programs {
				got := k.c.python(k.here.Replace(program), map[string]any{"timeout": 600})
				out := k.shown(got.Text)
				if got.IsError {
					t.Errorf("the program failed: %s", out)
				}
				printed = append(printed, out)
				s.programs += k.count(asJSON(t, map[string]any{"code": program})) + k.count(out)
			}
			k.recorded(t, &s)
		})
		all = append(all, s)
	}
	if len(all) != 10 || len(printed) < 10 {
		t.Fatalf("%d tasks and %d programs are on the page", len(all), len(printed))
	}
	if t.Failed() {
		return // and nothing is written of it
	}
	n := -1
	want := recipeProgram.ReplaceAllStringFunc(page, func(block string) string {
		n++
		return block[:strings.LastIndex(block, "```text\n")] + "```text\n" + strings.TrimRight(printed[n], "\n") +
			"\n```"
	})
	costs, why := definitions.tables(recipes(page), all)
	compare(t, "../../docs/cookbook.md", page, between(t, want, "costs", costs))
	data, err = os.ReadFile("../../docs/why.md")
	must(t, err)
	compare(t, "../../docs/why.md", string(data), between(t, string(data), "costs", why))
}

// setUp makes the data, starts a bridge before the servers, and counts what their definitions take.
func setUp(t *testing.T, from string) (*kitchen, standing) {
	t.Helper()
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding("o200k_base")
	must(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	k := &kitchen{count: func(text string) int { return len(enc.EncodeOrdinary(text)) },
		consumed: map[string]int{}, records: t.TempDir()}
	web := cookbookWeb(t)
	cookbookData(t, from, dir, web)
	servers := cookbookServers(t, from, dir, k.records)
	cmd := with(command(t, servers), "MCP_BRIDGE_UPSTREAM_START_TIMEOUT=120", "MCP_BRIDGE_MAX_TIMEOUT=600")
	k.c = serve(t, cmd)
	artifacts := regexp.MustCompile(`MCP_BRIDGE_ARTIFACTS=(.*)`).FindStringSubmatch(strings.Join(cmd.Env,
		"\n"))[1]
	const page = "http://localhost:8000"
	k.there = strings.NewReplacer(dir, "/home/you/work", web, page, artifacts,
		"/home/you/.local/share/mcp-bridge/artifacts")
	k.here = strings.NewReplacer(page, web)
	for name := range servers {
		k.servers = append(k.servers, name)
	}
	slices.Sort(k.servers)
	if got := k.c.python("for s in runtime.list_servers(): runtime.load_server(s)",
		map[string]any{"timeout": 600}); got.IsError {
		t.Fatalf("not all servers start: %s", got.Text)
	}
	search, err := os.ReadFile("../../discovery/hosts/tool-search.txt")
	must(t, err)
	d := standing{count: k.count, announced: strings.TrimSpace(string(search)), tools: map[string]string{}}
	for _, raw := range definitionsOf(t, k.c) {
		d.ours += k.count(raw)
	}
	var hello struct{ Instructions string }
	must(t, json.Unmarshal(k.c.hello, &hello))
	d.ours += k.count(hello.Instructions)
	for _, name := range k.servers {
		e := servers[name]
		cmd := exec.Command(e.Command, e.Args...)
		cmd.Env = os.Environ()
		for key, value := range e.Env {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		for _, raw := range definitionsOf(t, serve(t, cmd)) {
			var tool struct{ Name string }
			must(t, json.Unmarshal([]byte(raw), &tool))
			d.tools["mcp__"+name+"__"+tool.Name] = raw
		}
	}
	d.servers = len(k.servers)
	return k, d
}

var anyRun = regexp.MustCompile(`/artifacts/[0-9a-f]+/`)

// shown returns a text with the names that the page has for what is another on each machine.
func (k *kitchen) shown(text string) string {
	return anyRun.ReplaceAllString(k.there.Replace(text), "/artifacts/4de31c0d97fb/")
}

// search makes the searches of a task, and returns the tokens of their arguments and results. What
// the programs call must be among the results.
func (k *kitchen) search(t *testing.T, r recipe) (tokens int) {
	found := ""
	for _, args := range r.searches {
		got := parseAnswer(t, k.c.request("tools/call", map[string]any{"name": "search_tools",
			"arguments": json.RawMessage(args)}))
		if got.IsError {
			t.Errorf("search_tools %s: %s", args, got.Text)
		}
		tokens += k.count(args) + k.count(k.shown(got.Text))
		found += got.Text
	}
	for _, m := range regexp.MustCompile(`mcp_\w+\.(\w+)`).FindAllStringSubmatch(strings.Join(r.programs, ""),
		-1) {
		if !strings.Contains(found, m[0]+"(") && !strings.Contains(found, "def "+m[1]+"(") {
			t.Errorf("no search finds %s:\n%s", m[0], found)
		}
	}
	return tokens
}

// recorded counts what the servers were asked and have answered since the last time.
func (k *kitchen) recorded(t *testing.T, s *spent) {
	t.Helper()
	s.used = map[string]bool{}
	for _, server := range k.servers {
		results := map[string]string{}
		for _, line := range k.lines(t, server+".out") {
			var m message
			if json.Unmarshal(line, &m) != nil || m.Method != "" {
				continue
			}
			if m.Error != nil {
				results[string(m.ID)] = m.Error.Message
				continue
			}
			results[string(m.ID)] = k.shown(parseAnswer(t, m).Text)
		}
		for _, line := range k.lines(t, server+".in") {
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Name      string
					Arguments json.RawMessage
				}
			}
			must(t, json.Unmarshal(line, &m))
			if m.Method != "tools/call" {
				continue
			}
			name := "mcp__" + server + "__" + m.Params.Name
			s.calls++
			s.used[name] = true
			s.direct += k.count(name) + k.count(k.shown(string(m.Params.Arguments))) + k.count(results[string(m.ID)])
			if _, answered := results[string(m.ID)]; !answered {
				t.Errorf("%s has no answer: %s", name, line)
			}
		}
	}
	if s.calls == 0 {
		t.Error("no tool was called")
	}
}

// lines returns the whole lines of a record that were not counted yet.
func (k *kitchen) lines(t *testing.T, name string) (lines [][]byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(k.records, name))
	must(t, err)
	fresh := data[k.consumed[name]:]
	fresh = fresh[:bytes.LastIndexByte(fresh, '\n')+1]
	k.consumed[name] += len(fresh)
	for line := range bytes.Lines(fresh) {
		lines = append(lines, bytes.TrimSpace(line))
	}
	return lines
}

// recorder is another server in a directory. What it reads and writes is in two files before the
// other end has it.
type recorder struct {
	Files, Dir string
	Command    []string
}

// recordMain is the recorder that is given as JSON.
func recordMain(given string) int {
	var r recorder
	err := json.Unmarshal([]byte(given), &r)
	var files [2]*os.File
	for i, kind := range []string{".in", ".out"} {
		if err == nil {
			files[i], err = os.OpenFile(r.Files+kind, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		}
	}
	if err == nil {
		cmd := exec.Command(r.Command[0], r.Command[1:]...)
		cmd.Dir, cmd.Stderr = r.Dir, os.Stderr
		cmd.Stdin, cmd.Stdout = io.TeeReader(os.Stdin, files[0]), io.MultiWriter(files[1], os.Stdout)
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
