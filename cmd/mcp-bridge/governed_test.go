package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
)

const governed = `
[[rule]]
tools = ["shop.big"]
verdict = "deny"
reason = "too much"

[[rule]]
tools = ["shop.echo"]
verdict = "ask"

[[limit]]
tools = ["shop.add"]
calls = 2
`

// answers has the client answer what it is asked, in this order, and returns what that was when the
// bridge has ended.
func (c *client) answers(words ...string) func() []string {
	var asked []string
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case m := <-c.notes:
				if m.Method != "elicitation/create" {
					continue
				}
				word := words[min(len(asked), len(words)-1)]
				asked = append(asked, string(m.Params))
				c.send(map[string]any{"jsonrpc": "2.0", "id": m.ID,
					"result": map[string]any{"action": "accept", "content": map[string]any{"answer": word}}})
			case <-c.ended:
				return
			}
		}
	})
	return func() []string {
		done.Wait()
		return asked
	}
}

// TestGoverned is a real run in a container under a policy, whose user is asked and whose audit is
// kept.
func TestGoverned(t *testing.T) {
	needEngine(t)
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.toml"), filepath.Join(dir, "audit.jsonl")
	must(t, os.WriteFile(policy, []byte(governed), 0o600))
	cmd := command(t, map[string]entry{"shop": shop(t)})
	cmd.Env = append(cmd.Env, "MCP_BRIDGE_POLICY="+policy, "MCP_BRIDGE_AUDIT="+log,
		"MCP_BRIDGE_AUDIT_ARGUMENTS=true",
		"MCP_BRIDGE_LOG_FORMAT=json", "MCP_BRIDGE_LOG_LEVEL=debug", "XDG_STATE_HOME="+dir)
	stderr := logFile(t)
	cmd.Stderr = stderr
	c := serveTo(t, cmd, map[string]any{"elicitation": map[string]any{}})
	asked := c.answers("once", "no")
	got := c.python(`
print([n for n in dir(mcp_shop) if n in ("add", "big", "echo")], "def big" in open("/ipc/servers/shop.py").read())
print(await runtime.search_tool_docs("big"))
for f, args in ((mcp_shop.add, {"a": 1, "b": 2}), (mcp_shop.add, {"a": 2, "b": 2}), (mcp_shop.add, {"a": 3, "b": 2}),
                (mcp_shop.echo, {"text": "one"}), (mcp_shop.echo, {"text": "two"}), (mcp_shop.echo, {"text": "three"})):
    try:
        await f(**args)
        print("called")
    except ToolError as e:
        print(e)
try:
    await runtime.query_tool_docs("shop", "big")
except Exception as e:
    print(e)
try:
    mcp_shop.big(bytes=1)
except AttributeError as e:
    print(e)
`, map[string]any{"servers": []string{"shop"}, "timeout": 60})
	for _, want := range []string{
		"['add', 'echo'] False", `this run has made all of the 2 calls that it may make, by the limit on ` +
			`"shop.add"`,
		`mcp_shop has no tool 'big' that may be called, by rule "shop.big" (` + policy +
			`, line 2): too much; the tools are `,
		`tool "echo" of server "shop" was not called: the user has said no, for all of this run`,
		`tool "big" of server "shop" may not be called, by rule "shop.big" (` + policy + `, line 2): too much`,
	} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("there is no %s in %s", want, got.Text)
		}
	}
	if strings.Count(got.Text, "called\n") < 3 {
		t.Errorf("got %s", got.Text)
	}
	c.stdin.Close()
	questions := asked()
	if len(questions) != 2 || !strings.Contains(questions[0], `\"one\"`) ||
		!strings.Contains(questions[1], `\"two\"`) {
		t.Errorf("the user was asked %q", questions)
	}
	checkAudit(t, log)
	checkRunIDs(t, stderr.Name())
}

func checkAudit(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var got []string
	run := ""
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if run == "" {
			run = r.Run
		}
		if r.Run != run || r.TookMs <= 0 || r.Kind == audit.KindRun && r.Calls < 6 {
			t.Errorf("odd: %s", line)
		}
		if r.Kind == audit.KindRun {
			r.Arguments = nil
		}
		got = append(got, fmt.Sprintf("%s %s.%s %s %s %s", r.Kind, r.Server, r.Tool, r.Verdict, r.Outcome,
			r.Arguments))
	}
	want := `call shop.add allow ok {"a":1,"b":2}
call shop.add allow ok {"a":2,"b":2}
call shop.add allow call_limit {"a":3,"b":2}
call shop.echo ask ok {"text":"one"}
call shop.echo ask denied {"text":"two"}
call shop.echo ask denied {"text":"three"}
run .  ok `
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("the audit has\n%s\nwant\n%s", g, want)
	}
}

// checkRunIDs: what the log says of a run, it says with the run's id.
func checkRunIDs(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	of := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var l struct{ Msg, Run string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("%v in %s", err, line)
		}
		switch l.Msg {
		case "run", "run_python", "the user was asked":
			if l.Run == "" {
				t.Errorf("of which run? %s", line)
			}
			of[l.Msg]++
		}
	}
	if of["run"] != 1 || of["run_python"] != 1 || of["the user was asked"] != 2 {
		t.Errorf("got %v", of)
	}
}
