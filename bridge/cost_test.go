package bridge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// vocabulary is o200k_base, the vocabulary of current GPT models. Those of others aren't public;
// their counts of such text are alike.
const vocabulary = "o200k_base"

// mostStanding is how many tokens the definitions of our tools and the instructions may take
// together, whatever is
// configured.
const mostStanding = 900

// counter counts tokens.
func counter(t testing.TB) func(text string) int {
	t.Helper()
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding(vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) int { return len(enc.EncodeOrdinary(text)) }
}

// definitions are tools as they stand in a model's context: all that a server lists of them, and
// the part that every host shows.
type definitions struct{ all, shown string }

func define(t testing.TB, tools []json.RawMessage) definitions {
	t.Helper()
	var d definitions
	for _, raw := range tools {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			t.Fatal(err)
		}
		d.all += unescaped(t, compact.Bytes()) + "\n"
		var shown struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(compact.Bytes(), &shown); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		d.shown += unescaped(t, text) + "\n"
	}
	return d
}

// unescaped returns JSON without the escapes of <, > and &, which clients have decoded before a
// model sees them.
func unescaped(t testing.TB, raw []byte) string {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// many returns a list of n tools.
func many(n int) (list []json.RawMessage) {
	for i := range n {
		list = append(list, json.RawMessage(fmt.Sprintf(
			`{"name":"tool_%d","description":"Does one thing, number %[1]d.","inputSchema":{"type":"object"}}`, i)))
	}
	return list
}

// charged is a bridge as a host sees it.
type charged struct {
	bridge       *Bridge
	peer         *peer
	instructions string
}

// charge serves a bridge over some servers until the test ends.
func charge(t testing.TB, servers []discovery.Server, lists map[string][]json.RawMessage) charged {
	t.Helper()
	// with all there can be
	inputs, err := files.NewInputs([]string{"/home/someone/Documents/reports", "/srv/data/exports"})
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, func(c *Config) {
		ofServers(t, lists)(c)
		c.Servers, c.Inputs, c.Problems = servers, inputs, nil
		lasting(t, c)
	})
	p := connect(t, b)
	var hello struct{ Instructions string }
	p.result("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t",`+
		`"version":"1"}}`, &hello)
	return charged{b, p, hello.Instructions}
}

// tools returns the definitions that the bridge lists.
func (c charged) tools() []json.RawMessage {
	var list struct{ Tools []json.RawMessage }
	c.peer.result("tools/list", `{}`, &list)
	return list.Tools
}

// TestStandingCost: what a conversation pays before anything was asked stays the same, whatever is
// configured.
func TestStandingCost(t *testing.T) {
	count := counter(t)
	lists := recordedLists(t)
	several := func(n int, name string) (servers []discovery.Server) {
		for i := range n {
			servers = append(servers, discovery.Server{Name: fmt.Sprintf(name, i), Description: "What it does. " +
				strings.Repeat("More of it. ", 50)})
		}
		return servers
	}
	described := func(n int, what string) []discovery.Server {
		servers := several(n, "s%d")
		for i := range servers {
			servers[i].Description = what
		}
		return servers
	}
	for _, tc := range []struct {
		name    string
		servers []discovery.Server
		lists   map[string][]json.RawMessage
	}{
		{"no server", nil, nil},
		{"13 servers", serversOf(lists), lists},
		{"one server with 300 tools", several(1, "big%d"), map[string][]json.RawMessage{"big0": many(300)}},
		{"300 servers", several(300, "server_%d"), nil},
		{"12 servers of many words", described(12, "Manage issues, pull requests, code reviews and repositories "+
			"of all your organizations"), nil},
		{"20 servers of dear words", described(20, "x7-Q9 a_b/c.d z'1+2 8:3:4:5 k.l.m.n.o 0-1-2-3-4 Zq'Xw_vB.nM"),
			nil},
		{"20 servers of Chinese words", described(20, "管理 问题 和 拉取 请求 代码 审查 存储库 所有 组织 用户"), nil},
		{"300 servers with the dearest names", several(300, "\u2603\U0001F9FF%d 𝔖𝔢𝔯𝔳𝔢𝔯"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := charge(t, tc.servers, tc.lists)
			d := define(t, c.tools())
			all, shown, told := count(d.all), count(d.shown), count(c.instructions)
			t.Logf("%d tokens of definitions, %d of them shown by every host; %d of instructions", all, shown, told)
			// Titles and hints are for hosts and people: no model sees them.
			if shown+told > mostStanding {
				t.Errorf("%d tokens of definitions and %d of instructions, at most %d together are allowed", shown, told,
					mostStanding)
			}
		})
	}
}

// task is what a user wants, and how a model finds the tools for it.
type task struct {
	name     string
	searches []string
	needs    []string // server.tool
}

func tasks(t testing.TB) (all []task) {
	t.Helper()
	text, err := os.ReadFile("testdata/tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, isTask := strings.CutPrefix(line, "task: ")
		needs, isNeeds := strings.CutPrefix(line, "needs: ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isTask:
			all = append(all, task{name: name})
		case isNeeds:
			all[len(all)-1].needs = strings.Fields(needs)
		default:
			all[len(all)-1].searches = append(all[len(all)-1].searches, line)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d tasks", len(all))
	}
	return all
}

// TestContextCost counts what ten whole tasks cost that way, and finds out whether they could be
// done with what was found. -v prints the table. Its sums, beside those of a host's tool search,
// are compared with docs/why.md, which -update writes.
func TestContextCost(t *testing.T) {
	count := counter(t)
	lists := recordedLists(t)
	c := charge(t, serversOf(lists), lists)
	var direct []json.RawMessage
	for _, s := range serversOf(lists) {
		direct = append(direct, lists[s.Name]...)
	}
	loaded, ours := define(t, direct), define(t, c.tools())
	standing := count(ours.shown)
	all := count(loaded.shown)
	var table strings.Builder
	fmt.Fprintf(&table, "tokens (%s) of                                        %10s %10s\n", vocabulary, "shown",
		"as listed")
	row := func(name string, shown, listed int) { fmt.Fprintf(&table, "%-64s %10d %10d\n", name, shown, listed) }
	row(fmt.Sprintf("%d tools of %d servers, loaded directly", len(direct), len(lists)), all, count(loaded.all))
	row(fmt.Sprintf("our tools/list, the same servers configured (%d tools)", len(c.tools())), standing,
		count(ours.all))
	row("our instructions, in hosts that show them", count(c.instructions), count(c.instructions))
	search := searchedByHost(t, lists)
	announced := count(search.announced)
	row("their names, as Claude Code's tool search announces them", announced, announced)
	fmt.Fprintf(&table, "\n%-64s %10s %10s %10s %10s\n", "task: the searches and what they found", "searches",
		"with ours", "of direct", "its own")
	var totals []int
	byHost := 0
	for _, task := range tasks(t) {
		tokens, answers := 0, ""
		for _, args := range task.searches {
			answer := found(t, c.bridge, args)
			tokens += count(args) + count(answer)
			answers += answer + "\n"
		}
		for _, tool := range task.needs {
			if !namesTool(answers, lists, tool) {
				t.Errorf("%s: the searches don't find %s:\n%s", task.name, tool, answers)
			}
		}
		total := standing + tokens
		totals = append(totals, total)
		host := announced + search.load(count, task.needs)
		byHost += host
		fmt.Fprintf(&table, "%-64.64s %10d %10d %9.1f%% %10d\n", task.name, tokens, total,
			100*float64(total)/float64(all), host)
	}
	slices.Sort(totals)
	mean := 0
	for _, n := range totals {
		mean += n
	}
	mean /= len(totals)
	byHost /= len(totals)
	fmt.Fprintf(&table, "%-64s %10d %10d %9.1f%% %10d\n", "mean", mean-standing, mean,
		100*float64(mean)/float64(all), byHost)
	t.Log("\n" + table.String())
	if worst := totals[len(totals)-1]; worst*5 > all || mean*10 > all {
		t.Errorf("a task costs %d tokens, the mean is %d; loaded directly it is %d", worst, mean, all)
	}
	told := count(c.instructions)
	comparePage(t, fmt.Sprintf("| tokens of %d tools of %d servers | before a task | with a task's tools "+
		"found, the mean of %d |\n| --- | ---: | ---: |\n", len(direct), len(lists), len(totals))+
		fmt.Sprintf("| all definitions loaded | %s | %[1]s |\n| tool search | %s | %s |\n"+
			"| mcp-bridge | %s | %s |\n",
			text.Count(int64(all)), text.Count(int64(announced)), text.Count(int64(byHost)),
			text.Count(int64(standing+told)), text.Count(int64(mean+told))))
}

// hostSearch is what Claude Code's tool search shows of servers' tools.
type hostSearch struct {
	announced string            // before it was used
	tools     map[string]string // definitions, by name
}

// searchedByHost returns that of some servers. test/hosts/claude_code.py compares its words with
// what the real program sends.
func searchedByHost(t *testing.T, lists map[string][]json.RawMessage) hostSearch {
	t.Helper()
	words, err := os.ReadFile("../discovery/hosts/tool-search.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := hostSearch{string(words), map[string]string{}}
	for server, tools := range lists {
		for _, raw := range tools {
			var tool struct{ Name string }
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatal(err)
			}
			s.tools["mcp__"+server+"__"+tool.Name] = define(t, []json.RawMessage{raw}).shown
		}
	}
	s.announced += strings.Join(slices.Sorted(maps.Keys(s.tools)), "\n")
	return s
}

// load returns the tokens of one search that loads some tools by their names.
func (s hostSearch) load(count func(string) int, needs []string) (tokens int) {
	var names []string
	for _, need := range needs {
		server, tool, _ := strings.Cut(need, ".")
		names = append(names, "mcp__"+server+"__"+tool)
		tokens += count(s.tools[names[len(names)-1]])
	}
	return tokens + count(`ToolSearch{"query":"select:`+strings.Join(names, ",")+
		`","max_results":5}Tool loaded.`)
}

// comparePage compares the table of definitions in docs/why.md with what it should be.
func comparePage(t *testing.T, want string) {
	t.Helper()
	const path, begin, end = "../docs/why.md", "<!-- definitions: written by TestContextCost -->\n",
		"<!-- end of definitions -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(data), begin)
	is, after, ended := strings.Cut(rest, end)
	switch {
	case !begun || !ended:
		t.Fatalf("%s has no marks for the table", path)
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case is != want:
		t.Errorf("%s differs: go test -run TestContextCost ./bridge -update writes\n%s", path, want)
	}
}

// namesTool reports whether a text names a tool as code calls it.
func namesTool(text string, lists map[string][]json.RawMessage, tool string) bool {
	server, name, _ := strings.Cut(tool, ".")
	alias := strings.Map(func(r rune) rune {
		if r == '-' {
			return '_'
		}
		return r
	}, strings.ToLower(name))
	known := slices.ContainsFunc(lists[server], func(raw json.RawMessage) bool {
		var t struct{ Name string }
		return json.Unmarshal(raw, &t) == nil && t.Name == name
	})
	return known && (strings.Contains(text, "mcp_"+server+"."+alias) ||
		strings.Contains(text, "mcp_"+server+".<name>") && strings.Contains(text, "def "+alias+"("))
}

func serversOf(lists map[string][]json.RawMessage) (servers []discovery.Server) {
	for name := range lists {
		servers = append(servers, discovery.Server{Name: name})
	}
	slices.SortFunc(servers, func(a, b discovery.Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers
}
