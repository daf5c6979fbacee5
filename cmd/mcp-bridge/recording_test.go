package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// task is what the recording's code does: over real servers from npm, it reads each page of a
// directory and prints which of them name the most tests.
const task = `import re
pages = re.findall(r"\[FILE\] (\S+\.md)", mcp_filesystem.list_directory(path="docs")["content"])
named = {}
for page in pages:
    text = mcp_filesystem.read_text_file(path=f"docs/{page}")["content"]
    named[page] = len(set(re.findall(r"\bTest\w+", text)))
for page, n in sorted(named.items(), key=lambda x: -x[1])[:3]:
    print(f"{n:3} tests named in {page}")`

// TestRecording does a task through the bridge and, as a model with the same servers would, call by
// call, and counts the tokens of both. With -update it draws docs/task.svg.
func TestRecording(t *testing.T) {
	bin := npm(t)
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	enc, err := tiktoken.GetEncoding("o200k_base")
	must(t, err)
	count := func(parts ...string) (n int) {
		for _, p := range parts {
			n += len(enc.EncodeOrdinary(p))
		}
		return n
	}
	docs, err := filepath.Abs("../../docs")
	must(t, err)
	servers := map[string]entry{}
	direct, calls := 0, 0
	path := bin + ":" + os.Getenv("PATH")
	for name, command := range map[string]string{
		"filesystem": "cd '" + filepath.Dir(docs) + "' && exec mcp-server-filesystem .",
		"everything": "exec mcp-server-everything",
	} {
		servers[name] = entry{Command: "sh", Args: []string{"-c", command}, Env: map[string]string{"PATH": path}}
		cmd := exec.Command("sh", "-c", command)
		cmd.Env = append(os.Environ(), "PATH="+path)
		c := serve(t, cmd)
		direct += count(definitionsOf(t, c)...)
		if name == "filesystem" {
			n, tokens := callByCall(c, count)
			calls, direct = n, direct+tokens
		}
	}
	c := serve(t, command(t, servers))
	definitions := definitionsOf(t, c)
	got := c.python(task, map[string]any{"timeout": 60})
	if got.IsError || strings.Count(got.Text, " tests named in ") != 3 {
		t.Fatalf("got %q", got.Text)
	}
	through := count(append(definitions, task, got.Text)...)
	t.Logf("%d calls: %d tokens call by call, %d through the bridge", calls, direct, through)
	if through*5 > direct {
		t.Errorf("%d tokens through the bridge, %d call by call", through, direct)
	}
	if *update {
		after := fmt.Sprintf("%d tool calls. Tokens in the model's context, definitions included: %s, and %s "+
			"call by call.",
			calls, text.Count(int64(through)), text.Count(int64(direct)))
		svg := drawn("Which pages of docs/ name the most tests?", task, got.Text, after)
		must(t, os.WriteFile(filepath.Join(docs, "task.svg"), []byte(svg), 0o644))
	}
}

// definitionsOf returns the tools of a server as a model sees them.
func definitionsOf(t *testing.T, c *client) (all []string) {
	t.Helper()
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
	}
	if err := json.Unmarshal(c.request("tools/list", map[string]any{}).Result, &list); err != nil ||
		len(list.Tools) == 0 {
		t.Fatalf("no tools: %v", err)
	}
	for _, tool := range list.Tools {
		definition, err := json.Marshal(tool)
		must(t, err)
		all = append(all, string(definition))
	}
	return all
}

// callByCall does the task's calls from outside, and counts what a model would read and write of
// them.
func callByCall(c *client, count func(...string) int) (calls, tokens int) {
	call := func(tool, path string) string {
		args := map[string]any{"path": path}
		written, _ := json.Marshal(args) // of strings
		got := parseAnswer(c.t, c.request("tools/call", map[string]any{"name": tool, "arguments": args})).Text
		calls++
		tokens += count(tool, string(written), got)
		return got
	}
	for _, m := range regexp.MustCompile(`\[FILE\] (\S+\.md)`).FindAllStringSubmatch(call("list_directory",
		"docs"), -1) {
		call("read_text_file", "docs/"+m[1])
	}
	return calls, tokens
}

// drawn returns a picture of a conversation in a terminal.
func drawn(asked, code, printed, after string) string {
	const lineHeight, margin, width = 19, 24, 860
	type line struct{ colour, text string }
	lines := []line{{"#9ece6a", "> " + asked}, {"", ""}, {"#7aa2f7", "run_python"}}
	for l := range strings.Lines(code) {
		lines = append(lines, line{"#c0caf5", "  " + strings.TrimRight(l, "\n")})
	}
	lines = append(lines, line{"", ""})
	for l := range strings.Lines(printed) {
		lines = append(lines, line{"#e0af68", "  " + strings.TrimRight(l, "\n")})
	}
	lines = append(lines, line{"", ""}, line{"#9ece6a", after})
	var b strings.Builder
	height := 2*margin + lineHeight*len(lines)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" `+
		`font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#1a1b26"/>`+"\n", width, height)
	for i, l := range lines {
		if l.text != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n",
				margin, margin+lineHeight*i+13, l.colour, html.EscapeString(l.text))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
