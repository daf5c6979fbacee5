package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestDifferences(t *testing.T) {
	before := []discovery.Server{{Name: "a", Command: "x"}, {Name: "b", Command: "x"}, {Name: "c", Command: "x"}}
	now := []discovery.Server{{Name: "b", Command: "x", Source: discovery.Source{Path: "/elsewhere"}},
		{Name: "c", Command: "y"}, {Name: "d", Command: "x"}}
	added, changed, removed := differences(before, now)
	if !slices.Equal(added, []string{"d"}) || !slices.Equal(changed, []string{"c"}) ||
		!slices.Equal(removed, []string{"a"}) {
		t.Errorf("added %q, changed %q, removed %q", added, changed, removed)
	}
}

// followed is a served bridge whose servers are those of a file.
type followed struct {
	*client
	file, stderr string
}

// inHome are the variables of a bridge for which there is nothing but the home directory.
func inHome(home string) []string {
	return []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "MCP_BRIDGE_CONFIG=",
		"CLAUDE_CONFIG_DIR=", "CODEX_HOME="}
}

func follow(t *testing.T, file string, first map[string]entry, vars ...string) followed {
	t.Helper()
	f := followed{file: file}
	f.write(t, first)
	cmd := command(t, nil, "serve")
	cmd.Dir = filepath.Dir(file)
	cmd.Env = append(cmd.Env, vars...)
	log := logFile(t)
	cmd.Stderr, f.stderr = log, log.Name()
	f.client = serveTo(t, cmd, map[string]any{"elicitation": map[string]any{}})
	return f
}

func (f followed) write(t *testing.T, servers map[string]entry) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	must(t, err)
	f.save(t, string(data))
}

// save replaces the file as a whole.
func (f followed) save(t *testing.T, data string) {
	t.Helper()
	for _, err := range []error{os.MkdirAll(filepath.Dir(f.file), 0o700),
		os.WriteFile(f.file+".new", []byte(data), 0o600), os.Rename(f.file+".new", f.file)} {
		must(t, err)
	}
}

// hears waits until the bridge says that its tools have changed, and returns which servers
// run_python then names.
func (f followed) hears(t *testing.T) string {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case m := <-f.notes:
			if m.Method == "notifications/tools/list_changed" {
				return f.named()
			}
		case <-timeout:
			t.Fatal("the bridge didn't say that its tools have changed")
		}
	}
}

func (f followed) named() string {
	list := string(f.request("tools/list", nil).Result)
	_, after, _ := strings.Cut(list, "There are: ")
	names, _, _ := strings.Cut(after, `"`)
	return names
}

// approve is the user's yes, in another process.
func (f followed) approve(t *testing.T, server string, vars ...string) {
	t.Helper()
	cmd := command(t, nil, "servers", "approve", server, "--yes")
	cmd.Dir, cmd.Env = filepath.Dir(f.file), append(cmd.Env, vars...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), f.file) ||
		!strings.Contains(string(out), "that run and know it now: 1") {
		t.Fatalf("%v: %s", err, out)
	}
}

// says waits for a line of the bridge's log.
func (f followed) says(t *testing.T, text string) {
	t.Helper()
	withinTime(t, time.Minute, "the log says "+text, func() bool {
		data, err := os.ReadFile(f.stderr)
		must(t, err)
		return strings.Contains(string(data), text)
	})
}

// TestFollow is a real process and real files: what is added, changed, broken, mended and removed
// on disk is what a client sees, without a restart.
func TestFollow(t *testing.T) {
	secret := entry{Command: "one", Env: map[string]string{"TOKEN": "hunter2"}}
	home := t.TempDir()
	vars := append(inHome(home), "XDG_STATE_HOME="+t.TempDir())
	f := follow(t, filepath.Join(home, ".cursor", "mcp.json"), map[string]entry{"first": secret}, vars...)
	if got := f.named(); got != "first" {
		t.Fatalf("at first there are %q", got)
	}
	f.write(t, map[string]entry{"first": secret, "second": {Command: "two"}})
	f.says(t, "not_approved=[second]")
	if got := f.named(); got != "first" {
		t.Errorf("before one that was added is approved there are %q", got)
	}
	f.approve(t, "second", vars...)
	if got := f.hears(t); got != "first, second" {
		t.Errorf("after one was added there are %q", got)
	}
	f.save(t, `{"mcpServers": {"first": {"command": "one", "env": {"TOKEN": "hunter2`)
	f.says(t, "what it held before counts")
	if got := f.named(); got != "first, second" {
		t.Errorf("while the file is broken there are %q", got)
	}
	f.write(t, map[string]entry{"first": {Command: "another"}, "second": {Command: "two"}})
	f.says(t, "changed=[first]")
	if got := f.hears(t); got != "second" {
		t.Errorf("after one was changed there are %q", got)
	}
	f.approve(t, "first", vars...)
	if got := f.hears(t); got != "first, second" {
		t.Errorf("after that was approved there are %q", got)
	}
	f.write(t, map[string]entry{"second": {Command: "two"}})
	if got := f.hears(t); got != "second" {
		t.Errorf("after one was removed there are %q", got)
	}
	must(t, os.Remove(f.file))
	if got := f.hears(t); got != "" {
		t.Errorf("without a file there are %q", got)
	}
	if data, err := os.ReadFile(f.stderr); err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("the log tells a secret, or can't be read: %v", err)
	}
}

// TestFollowDuringRun: a run keeps the server that it began with while that goes from the
// configuration; the next one has what is there then. The run waits meanwhile, for its user, who is
// asked whether it may call a tool.
func TestFollowDuringRun(t *testing.T) {
	needEngine(t)
	policy := filepath.Join(t.TempDir(), "policy.toml")
	must(t, os.WriteFile(policy, []byte("[[rule]]\ntools = [\"*.echo\"]\nverdict = \"ask\"\n"), 0o600))
	shop := shop(t)
	file := filepath.Join(t.TempDir(), "servers.json") // not in a home of its own, where the engine has no image
	vars := []string{"MCP_BRIDGE_CONFIG=" + file, "MCP_BRIDGE_POLICY=" + policy, "XDG_STATE_HOME=" + t.TempDir()}
	f := follow(t, file, map[string]entry{"shop": shop}, vars...)
	_, answer := f.start("tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{
		"code": `print(mcp_shop.echo(text="asked"), mcp_shop.add(a=2, b=2), runtime.list_servers())`}})
	var question message
	for question.Method != "elicitation/create" {
		select {
		case question = <-f.notes:
		case m := <-answer:
			t.Fatalf("the run ended before its user was asked: %s", m.Result)
		}
	}
	f.write(t, map[string]entry{"other": shop})
	f.says(t, "not_approved=[other]")
	f.approve(t, "other", vars...)
	for f.named() != "other" {
		f.hears(t)
	}
	if got := f.named(); got != "other" {
		t.Errorf("there are %q", got)
	}
	f.send(map[string]any{"jsonrpc": "2.0", "id": question.ID,
		"result": map[string]any{"action": "accept", "content": map[string]any{"answer": "once"}}})
	if got := parseAnswer(t, <-answer); got.IsError || !strings.Contains(got.Text, "asked") ||
		!strings.Contains(got.Text, "4") || !strings.Contains(got.Text, "shop") {
		t.Errorf("the run during which its server went got %+v", got)
	}
	if got := f.python(`print(mcp_other.add(a=2, b=3), runtime.list_servers())`, nil); got.IsError ||
		!strings.Contains(got.Text, "5") || strings.Contains(got.Text, "shop") {
		t.Errorf("the next run got %+v", got)
	}
}

// TestFollowPolicy: a policy that changes on disk counts from then on, but one that can't be used
// changes nothing.
func TestFollowPolicy(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "policy.toml")
	write := func(text string) {
		t.Helper()
		must(t, os.WriteFile(path+".new", []byte(text), 0o600))
		must(t, os.Rename(path+".new", path))
	}
	const denied = "[[rule]]\ntools = [\"shop.add\"]\nverdict = \"deny\"\n"
	write("default = \"allow\"\n")
	vars := append(inHome(home), "XDG_STATE_HOME="+t.TempDir(), "MCP_BRIDGE_POLICY="+path)
	f := follow(t, filepath.Join(home, ".cursor", "mcp.json"), map[string]entry{"shop": shop(t)}, vars...)
	has := func() bool {
		return strings.Contains(f.search(map[string]any{"query": "add numbers"}), "mcp_shop.add(")
	}
	if !has() {
		t.Fatal("the tool isn't found at first")
	}
	write(denied)
	f.says(t, "the policy has changed")
	if has() {
		t.Error("the tool is found that is denied now")
	}
	write("default = \"allow\"\n[[rule")
	f.says(t, "what it held before counts")
	if has() {
		t.Error("the tool is found while the file is broken")
	}
	write("# as it was\ndefault = \"allow\"\n")
	withinTime(t, time.Minute, "the tool is found again", has)
	must(t, os.Remove(path))
	f.says(t, "no such file")
	if !has() {
		t.Error("the tool isn't found without the file")
	}
}

// TestFollowApprovedPolicy: of a policy that was changed while code ran, what is stricter counts at
// once, and the rest once the user has approved it, in the bridge that runs.
func TestFollowApprovedPolicy(t *testing.T) {
	needEngine(t)
	path := filepath.Join(t.TempDir(), "policy.toml")
	must(t, os.WriteFile(path, []byte("[[rule]]\ntools = [\"shop.add\"]\nverdict = \"deny\"\n"), 0o600))
	file := filepath.Join(t.TempDir(), "servers.json")
	vars := []string{"MCP_BRIDGE_CONFIG=" + file, "MCP_BRIDGE_POLICY=" + path, "XDG_STATE_HOME=" + t.TempDir()}
	f := follow(t, file, map[string]entry{"shop": shop(t)}, vars...)
	add := func() string { return f.python("print(mcp_shop.add(a=2, b=2))", nil).Text }
	if got := add(); !strings.Contains(got, "may be called, by rule") {
		t.Fatalf("a call that is denied got %s", got)
	}
	must(t, os.WriteFile(path, []byte("[[rule]]\ntools = [\"shop.echo\"]\nverdict = \"deny\"\n"), 0o600))
	f.says(t, "code may have written it")
	if got := add(); !strings.Contains(got, "as the file was before a change that waits") {
		t.Errorf("before the policy is approved a call got %s", got)
	}
	got := f.python("print(mcp_shop.echo(text='x'))", nil).Text
	if !strings.Contains(got, "a change that waits for") {
		t.Errorf("a call that only the policy denies that isn't approved got %s", got)
	}
	cmd := with(command(t, nil, "policy", "approve", "--yes"), vars...)
	cmd.Dir = filepath.Dir(file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.says(t, "the policy has changed")
	if got := add(); !strings.Contains(got, "4") || strings.Contains(got, "rule") {
		t.Errorf("after the policy is approved a call got %s", got)
	}
}
