package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxtools"
)

// tool calls a tool and returns its structured result, or its error's text.
func (p *peer) tool(name, args string) string {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args)
	r := p.next().tool(p.t)
	if r.IsError {
		return "error: " + r.Content[0].Text
	}
	return string(r.Struct)
}

// TestSameSandboxes: run_python and the tools of sandboxes work on the same ones.
func TestSameSandboxes(t *testing.T) {
	b, path := audited(t, func(c *Config) {
		lasting(t, c)
		c.Offer = ToolNames()
	})
	p := connect(t, b)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(p.tool("sandbox_create", `{"name":"primes"}`)), &made); err != nil {
		t.Fatal(err)
	}
	id := made.ID
	p.tool("sandbox_files_write",
		fmt.Sprintf(`{"sandbox_id":%q,"path":"/workspace/primes.py","content":"2 3 5"}`, id))
	if got := p.tool("sandbox_exec", fmt.Sprintf(`{"sandbox_id":%q,"command":"python3 primes.py"}`, id)); got !=
		`{"stdout":"python3 primes.py","stderr":"","exit_code":0,"truncated":false}` {
		t.Error(got)
	}
	if got := p.call(in(id, "count")).Content[0].Text; got != "1\n[sandbox "+id+", call 1]" {
		t.Errorf("code in it: %s", got)
	}
	if got := p.tool("sandbox_info", fmt.Sprintf(`{"sandbox_id":%q}`, id)); !strings.Contains(got, `"calls":1`) {
		t.Error(got)
	}
	p.tool("sandbox_undo", fmt.Sprintf(`{"sandbox_id":%q}`, id))
	if got := p.call(in(id, "count")).Content[0].Text; got != "1\n[sandbox "+id+", call 2]" {
		t.Errorf("after undo: %s", got)
	}
	of := p.begin()
	if got := p.tool("sandbox_files_read", fmt.Sprintf(`{"sandbox_id":%q,"path":"none"}`,
		of)); !strings.Contains(got, "there is no such file") {
		t.Errorf("a tool in the sandbox of code: %s", got)
	}
	p.tool("sandbox_kill", fmt.Sprintf(`{"sandbox_id":%q}`, id))
	if got := p.call(in(id, "count")).Content[0].Text; !strings.Contains(got,
		"has ended: it was ended by sandbox_kill. Nothing was run") {
		t.Error(got)
	}
	var recorded []string
	for _, r := range readRecords(t, path) {
		if r.Kind == "sandbox" {
			recorded = append(recorded,
				fmt.Sprint(r.Tool, " ", strings.ReplaceAll(strings.ReplaceAll(r.Sandbox, id, "ID"), of,
					"OF"), " ", r.Outcome, " ", r.ArgumentBytes > 0))
		}
	}
	want := []string{"sandbox_create ID ok true", "sandbox_files_write ID ok true", "sandbox_exec ID ok true",
		"sandbox_info ID ok true", "sandbox_undo ID ok true", "sandbox_files_read OF not_found true",
		"sandbox_kill ID ok true"}
	if !slices.Equal(recorded, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(recorded, "\n"), strings.Join(want, "\n"))
	}
}

// TestToolsKeepTheOrder: a tool that comes behind a run in the same sandbox has its turn behind it.
func TestToolsKeepTheOrder(t *testing.T) {
	b, g := keeping(t, func(c *Config) { c.Offer = ToolNames() })
	p := connect(t, b)
	id := p.begin()
	p.run(10, in(id, "hold"), "")
	p.send(`{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"sandbox_exec","arguments":`+
		`{"sandbox_id":%q,"command":"ls"}}}`, id)
	p.send(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"sandbox_info","arguments":`+
		`{"sandbox_id":%q}}}`, id)
	if f := p.next(); string(f.ID) != "12" {
		t.Errorf("sandbox_info waits: %s came first", f.ID)
	}
	close(g.hold)
	p.next() // of the two answers, which may come in any order
	p.next()
	if got := strings.Join(g.at(0).order, " "); !strings.HasSuffix(got, "code command") {
		t.Errorf("the guest has had %s", got)
	}
}

// TestToolSets: which tools clients have, and what is said of those that they haven't.
func TestToolSets(t *testing.T) {
	for _, tc := range []struct {
		set, want, without string
		tools              int
	}{
		{"code", "run_python read_output search_tools", "", 3},
		{"single", "run_python", "search_tools", 1},
		{"sandbox", "sandbox_exec sandbox_kill read_output", "run_python", 16},
		{"all", "run_python sandbox_undo search_tools", "", 18},
		{"run_python, sandbox_exec", "run_python sandbox_exec", "search_tools", 2},
	} {
		t.Run(tc.set, func(t *testing.T) {
			offered, err := ToolSet(tc.set)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := keeping(t, func(c *Config) { c.Offer = offered })
			p := connect(t, b)
			var hello struct{ Instructions string }
			p.result("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t",`+
				`"version":"1"}}`, &hello)
			var list struct {
				Tools []struct{ Name, Description string }
			}
			p.result("tools/list", `{}`, &list)
			said := hello.Instructions
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if !ofSandboxes(tool.Name) && tool.Name != "read_output" {
					said += tool.Description
				}
			}
			for name := range strings.FieldsSeq(tc.want) {
				if !slices.Contains(names, name) {
					t.Errorf("there is no %s", name)
				}
			}
			if len(names) != tc.tools || tc.without != "" && strings.Contains(said, tc.without) {
				t.Errorf("%d tools, want %d; %s is told of: %s", len(names), tc.tools, tc.without, said)
			}
			p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":{}}}`)
			if f := p.next(); f.Error == nil || !strings.HasSuffix(f.Error.Message, "there are "+enumerated(offered)) {
				t.Errorf("an unknown tool: %+v", f.Error)
			}
		})
	}
	if _, err := ToolSet("run_pyton"); err == nil ||
		!strings.Contains(err.Error(), `did you mean "run_python"?`) {
		t.Error(err)
	}
	cfg := config()
	cfg.Offer = ToolNames()
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "MCP_BRIDGE_SANDBOXES") {
		t.Errorf("tools of sandboxes without sandboxes: %v", err)
	}
}

// TestSingleCut: without read_output, no result names it.
func TestSingleCut(t *testing.T) {
	b := build(t, func(c *Config) { c.Offer = []string{"run_python"} })
	got := connect(t, b).call(fmt.Sprintf(`{"code":%q}`, strings.Repeat("x", 3*DefaultOutput))).Content[0].Text
	if strings.Contains(got, "read_output") ||
		!strings.Contains(got, "32,768 bytes of stdout left out here; print less") {
		t.Errorf("%.100s…%s", got, got[len(got)/2-60:len(got)/2+60])
	}
}

// TestCostOfAllTools shows what each set costs a conversation. The sets that aren't the usual one
// have their own bound, which is to be raised only knowingly.
func TestCostOfAllTools(t *testing.T) {
	count := counter(t)
	for set, most := range map[string]int{"single": 700, "code": mostStanding, "sandbox": 1400, "all": 2200} {
		offered, err := ToolSet(set)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := keeping(t, func(c *Config) { c.Offer = offered })
		c := charged{bridge: b, peer: connect(t, b)}
		d := define(t, c.tools())
		shown := count(d.shown) + count(b.instructions())
		t.Logf("%s: %d tools, %d tokens with the instructions, %d as listed", set, len(offered), shown,
			count(d.all))
		if shown > most {
			t.Errorf("%s: %d tokens, at most %d are allowed", set, shown, most)
		}
	}
	if n := len(sandboxtools.Names()); n != 15 {
		t.Errorf("%d tools of sandboxes", n)
	}
}
