package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// governs has the prey's bridges follow a policy, which has the user asked about each tool of a
// second server.
func (p *prey) governs() {
	p.t.Helper()
	var mine map[string]map[string]entry
	text, err := os.ReadFile(filepath.Join(p.home, "mine.json"))
	if err == nil {
		err = json.Unmarshal(text, &mine)
	}
	must(p.t, err)
	mine["mcpServers"]["shop"] = shop(p.t)
	if text, err = json.Marshal(mine); err != nil {
		p.t.Fatal(err)
	}
	p.write("mine.json", string(text))
	p.write("policy.toml", "[[rule]]\ntools = [\"shop.*\"]\nverdict = \"ask\"\n")
	p.vars = append(p.vars, "MCP_BRIDGE_POLICY="+filepath.Join(p.home, "policy.toml"))
}

// asked is a bridge whose user answers so, and what the user was asked once it has ended.
func (p *prey) asked(words ...string) (c *client, questions func() []string) {
	cmd := command(p.t, nil)
	cmd.Dir, cmd.Env = p.proj, append(cmd.Env, p.vars...)
	c = serveTo(p.t, cmd, map[string]any{"elicitation": map[string]any{}})
	answered := c.answers(words...)
	return c, func() []string {
		c.close()
		c.killed = true
		return answered()
	}
}

func (p *prey) command(args ...string) string {
	p.t.Helper()
	cmd := command(p.t, nil, args...)
	cmd.Dir, cmd.Env = p.proj, append(cmd.Env, p.vars...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Errorf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

const callShop = `
for call in (lambda: mcp_shop.echo(text="x"), lambda: mcp_shop.add(a=1, b=2)):
    try:
        call()
        print("called")
    except Exception as e:
        print("refused", e)
`

// TestCodeGrantsItselfNothing: code with the filesystem server over the whole home directory forges
// the user's "always", by copying an entry of the record with another tool's name, and writes the
// policy. The forged grant counts neither in the same session nor in the next; the policy is
// refused by the next start until the user approves it. What the user forgets is forgotten at once.
func TestCodeGrantsItselfNothing(t *testing.T) {
	p := newPrey(t)
	p.governs()
	state := filepath.Join(p.home, ".local/state/mcp-bridge")
	first, questions := p.asked("always", "no")
	if got := first.python(callShop, nil).Text; !strings.Contains(got, "called\nrefused") {
		t.Fatalf("at first: %s", got)
	}
	got := first.python(fmt.Sprintf(`
import json
path = %q
record = json.loads(mcp_files.read_text_file(path=path + "/approved.json")["content"])
forged = dict(record["grants"][0], tool="add")
del forged["seen"]
record["grants"].append(forged)
for name in ("/approved.json", "/grants.json"):
    mcp_files.write_file(path=path + name, content=json.dumps(record))
print("forged", [g["tool"] for g in record["grants"]])
`, state), nil).Text
	if got != "forged ['echo', 'add']\n" {
		t.Fatalf("code could not write: %s", got)
	}
	if got := first.python(callShop, nil).Text; !strings.Contains(got, "called\nrefused") {
		t.Errorf("with a forged grant: %s", got)
	}
	if list := questions(); len(list) != 3 {
		t.Errorf("the user was asked %q", list)
	}

	second, questions := p.asked("no")
	if got := second.python(callShop, nil).Text; !strings.Contains(got, "called\nrefused") {
		t.Errorf("in the next session: %s", got)
	}
	if out := p.command("policy", "forget", "shop.echo"); !strings.Contains(out, "forgot 1") {
		t.Errorf("forgetting: %s", out)
	}
	if got := second.python(callShop, nil).Text; strings.Count(got, "refused") != 2 {
		t.Errorf("after it was forgotten: %s", got)
	}
	got = second.python(fmt.Sprintf(`
mcp_files.write_file(path=%q, content='default = "allow"\n')
print("written")
`, filepath.Join(p.home, "policy.toml")), nil).Text
	if got != "written\n" {
		t.Fatalf("code could not write: %s", got)
	}
	if got := second.python(callShop, nil).Text; strings.Contains(got, "called\n") {
		t.Errorf("with another policy written: %s", got)
	}
	if list := questions(); len(list) != 5 {
		t.Errorf("the user was asked %q", list)
	}

	third, questions := p.asked("no")
	refused := third.python(callShop, nil)
	if !refused.IsError || !strings.Contains(refused.Text, "mcp-bridge policy approve") {
		t.Errorf("with the code's policy: %s", refused.Text)
	}
	if list := questions(); len(list) != 0 {
		t.Errorf("the user was asked %q", list)
	}
	if out := p.command("policy", "approve", "--yes"); !strings.Contains(out, `default = "allow"`) {
		t.Errorf("it was approved unseen: %s", out)
	}
	fourth, questions := p.asked("no")
	if got := fourth.python(callShop, nil).Text; got != "called\ncalled\n" {
		t.Errorf("with an approved policy: %s", got)
	}
	if list := questions(); len(list) != 0 {
		t.Errorf("the user was asked %q", list)
	}
}
