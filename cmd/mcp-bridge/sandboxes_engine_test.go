package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

var begunSandbox = regexp.MustCompile(`\[sandbox ([a-z0-9]{4}): new\]$`)

// tool calls a tool and returns its structured result.
func (c *client) tool(name string, args map[string]any) (result map[string]any) {
	c.t.Helper()
	m := c.request("tools/call", map[string]any{"name": name, "arguments": args})
	var r struct {
		Content []struct{ Text string }
		IsError bool
		Struct  map[string]any `json:"structuredContent"`
	}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		c.t.Fatalf("%s: %+v %s", name, m.Error, m.Result)
	}
	if r.IsError && r.Struct == nil {
		return map[string]any{"error": r.Content[0].Text}
	}
	return r.Struct
}

// begin begins a sandbox by code and returns its id.
func (c *client) begin(code string) string {
	c.t.Helper()
	got := c.python(code, map[string]any{"sandbox": "new", "timeout": 60})
	m := begunSandbox.FindStringSubmatch(got.Text)
	if m == nil {
		c.t.Fatalf("no sandbox was begun: %s", got.Text)
	}
	return m[1]
}

// primes is the program of the seed's example.
const primes = "primes = [n for n in range(2, 30) if all(n % d for d in range(2, n))]\nprint(*primes)\n"

// TestSandboxOnEngine is the seed's example in a real container: write a program, run it, ask the
// next question on the same state. Tools and code work on the same sandbox.
func TestSandboxOnEngine(t *testing.T) {
	needEngine(t)
	c := serve(t, with(command(t, nil), "MCP_BRIDGE_TOOLS=all"))
	made := c.tool("sandbox_create",
		map[string]any{"name": "primes", "env_vars": map[string]string{"HELLO": "wörld"}})
	id, _ := made["id"].(string)
	if made["name"] != "primes" || made["status"] != "active" || len(id) != 4 {
		t.Fatal(made)
	}
	of := func(more map[string]any) map[string]any {
		more["sandbox_id"] = id
		return more
	}
	wrote := c.tool("sandbox_files_write",
		of(map[string]any{"path": "/workspace/app/primes.py", "content": primes}))
	if wrote["bytes"] != float64(len(primes)) {
		t.Error(wrote)
	}
	ran := c.tool("sandbox_exec", of(map[string]any{"command": "python3 app/primes.py; echo $HELLO " +
		">&2; exit 3"}))
	if ran["stdout"] != "2 3 5 7 11 13 17 19 23 29\n" || ran["stderr"] != "wörld\n" || ran["exit_code"] != 3.0 {
		t.Error(ran)
	}
	in := map[string]any{"sandbox": id, "timeout": 60}
	for i, step := range []struct{ code, want string }{
		{"import sys; sys.path.insert(0, '/workspace/app')\nfrom primes import primes\n" +
			"import os; print(os.environ['HELLO'])", "2 3 5 7 11 13 17 19 23 29\nwörld\n"},
		{"print(sum(primes))", "129\n"},
		{"primes.append(31); open('/workspace/out.txt', 'w').write(str(primes[-1]))\nprint(len(primes))", "11\n"},
	} {
		got := c.python(step.code, in)
		if want := fmt.Sprintf("%s[sandbox %s, call %d]", step.want, id, i+1); got.IsError || got.Text != want {
			t.Errorf("got %q, want %q", got.Text, want)
		}
	}
	if read := c.tool("sandbox_files_read", of(map[string]any{"path": "out.txt"})); read["content"] != "31" {
		t.Error(read)
	}
	if undone := c.tool("sandbox_undo", of(map[string]any{})); undone["state"] != "before" {
		t.Error(undone)
	}
	if got := c.python("print(len(primes))", in); !strings.HasPrefix(got.Text, "10\n") {
		t.Errorf("after undo: %s", got.Text)
	}
	listed := fmt.Sprint(c.tool("sandbox_files_list", of(map[string]any{"path": "/workspace"}))["entries"])
	if !strings.Contains(listed, "name:app") || !strings.Contains(listed, "name:out.txt") {
		t.Error(listed)
	}
	if zip := c.tool("sandbox_files_download_dir", of(map[string]any{"path": "/workspace"})); !strings.HasPrefix(
		fmt.Sprint(zip["content"]), "UEsD") {
		t.Error(zip)
	}
	c.tool("sandbox_pause", of(map[string]any{}))
	if info := c.tool("sandbox_info", of(map[string]any{})); info["status"] != "paused" || info["calls"] != 4.0 {
		t.Error(info)
	}
	slow := c.tool("sandbox_exec", of(map[string]any{"command": "echo part; sleep 100", "timeout_ms": 1000}))
	if slow["stdout"] != "part\n" || slow["message"] == nil {
		t.Errorf("a command beyond its time: %v", slow)
	}
	c.tool("sandbox_kill", of(map[string]any{}))
	if got := c.python("print(1)", in); !got.IsError ||
		!strings.Contains(got.Text, "it was ended by sandbox_kill") {
		t.Error(got.Text)
	}
}

// TestKeepRunning: processes run on between calls where that was asked for, and nowhere else.
func TestKeepRunning(t *testing.T) {
	needEngine(t)
	c := serve(t, with(command(t, nil), "MCP_BRIDGE_TOOLS=all"))
	for _, running := range []bool{true, false} {
		id := c.tool("sandbox_create", map[string]any{"keep_running": running})["id"]
		const ticks = "(while true; do echo tick >> ticks; sleep 0.05; done) >/dev/null 2>&1 &"
		c.tool("sandbox_exec", map[string]any{"sandbox_id": id, "command": ticks})
		count := func() (n int) {
			read := c.tool("sandbox_files_read", map[string]any{"sandbox_id": id, "path": "ticks"})
			return strings.Count(fmt.Sprint(read["content"]), "tick")
		}
		before := count()
		if running {
			within(t, "it has gone on", func() bool { return count() > before+3 })
			c.tool("sandbox_exec", map[string]any{"sandbox_id": id,
				"command": "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &"})
			const get = `python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/').status)"`
			within(t, "a server answers in a later call", func() bool {
				return c.tool("sandbox_exec", map[string]any{"sandbox_id": id, "command": get})["stdout"] == "200\n"
			})
			continue
		}
		c.python("import time; time.sleep(0.5)", nil) // elsewhere
		if after := count(); after > before+2 {       // it may tick while a file is read
			t.Errorf("it ticked %d times between calls", after-before)
		}
	}
}

// TestStateOnEngine: variables outlive calls, also those that end badly, and no others see them.
func TestStateOnEngine(t *testing.T) {
	needEngine(t)
	c := serve(t, command(t, nil))
	id := c.begin("x = [1]")
	in := map[string]any{"sandbox": id, "timeout": 1}
	before := "[sandbox " + id + ": variables as before this call; files as the code left them; threads and " +
		"processes of earlier calls are gone]"
	for _, step := range []struct{ code, want string }{
		{"x.append(2); raise ValueError('no')", "ValueError: no\n[sandbox " + id + ", call 2]"},
		{"print(x)", "[1, 2]\n[sandbox " + id + ", call 3]"},
		{"x.clear()\nwhile True: pass", before},
		{"print(x)", "[1, 2]\n[sandbox " + id + ", call 5]"},
		{"import os; x.clear(); os._exit(3)", before},
		{"print(x)", "[1, 2]\n[sandbox " + id + ", call 7]"},
	} {
		if got := c.python(step.code, in); !strings.HasSuffix(got.Text, step.want) {
			t.Errorf("%s: got %q, want %q at its end", step.code, got.Text, step.want)
		}
	}
	if got := c.python("print('x' in globals())", nil); got.Text != "False\n" {
		t.Errorf("a call without a sandbox: %s", got.Text)
	}
	const look = "import os; print(os.path.exists('/workspace/mine'), 'x' in globals())"
	c.python("open('/workspace/mine', 'w').close()", in)
	if got := c.python(look, in); !strings.HasPrefix(got.Text, "True True\n") {
		t.Errorf("its own file and variable: %s", got.Text)
	}
	other := c.begin("pass")
	if got := c.python(look, map[string]any{"sandbox": other}); !strings.HasPrefix(got.Text, "False False\n") {
		t.Errorf("another's file and variable: %s", got.Text)
	}
	if got := c.python("x = 5", map[string]any{"sandbox": other}); got.IsError {
		t.Error(got.Text)
	}
	if got := c.python("print(x)", in); !strings.HasPrefix(got.Text, "[1, 2]\n") {
		t.Errorf("beside another sandbox: %s", got.Text)
	}
}

// TestStateOfSessionOnEngine: with the setting, calls share a sandbox that they don't name.
func TestStateOfSessionOnEngine(t *testing.T) {
	needEngine(t)
	c := serve(t, with(command(t, nil), "MCP_BRIDGE_STATE=session"))
	first := c.python("x = 41", map[string]any{"timeout": 60})
	got := c.python("print(x + 1)", nil)
	if !begunSandbox.MatchString(first.Text) || !strings.HasPrefix(got.Text, "42\n[sandbox ") {
		t.Errorf("%s, %s", first.Text, got.Text)
	}
}

// TestKilledWithSandboxes kills bridges that have sandboxes, at rest and in a call, or lets their
// client go, as its death does: nothing is left.
func TestKilledWithSandboxes(t *testing.T) {
	needEngine(t)
	for _, tt := range []struct{ busy, client bool }{{}, {busy: true}, {client: true},
		{busy: true, client: true}} {
		busy := tt.busy
		t.Run(fmt.Sprintf("busy %v, client %v", busy, tt.client), func(t *testing.T) {
			before := runtimeDirs(t)
			mark := markVar + "=" + filepath.Base(filepath.Dir(t.TempDir()))
			c := serve(t, with(command(t, nil), mark))
			id := c.begin("x = 1")
			c.begin("x = 2")
			if busy {
				c.startLong(map[string]any{"sandbox": id})
			}
			c.killed = true
			if tt.client {
				must(t, c.stdin.Close())
			} else {
				must(t, c.cmd.Process.Kill())
			}
			<-c.ended
			c.cmd.Wait() //nolint:errcheck // it was killed, or says how a client's end is
			noneLeft(t, []int{c.cmd.Process.Pid}, before, mark)
		})
	}
}

// TestSandboxByRealClient does the same through the TypeScript SDK's client, which checks results
// against the schemas that the tools list.
func TestSandboxByRealClient(t *testing.T) {
	modules := filepath.Dir(npm(t))
	script := filepath.Join(t.TempDir(), "client.mjs")
	must(t, os.WriteFile(script, []byte(fmt.Sprintf(realClient, modules, modules)), 0o600))
	b := command(t, nil)
	cmd := exec.Command("node", script, b.Path)
	cmd.Env = append(b.Env, "MCP_BRIDGE_TOOLS=all")
	cmd.Stderr = logFile(t)
	out, err := cmd.Output()
	want := "2 3 5 7 11 13 17 19 23 29\n129\nkept\nlost\n"
	if err != nil || string(out) != want {
		t.Errorf("%v; it printed %q, want %q", err, out, want)
	}
}

// realClient runs the seed's example.
const realClient = `
import { Client } from "%s/@modelcontextprotocol/sdk/dist/esm/client/index.js";
import { StdioClientTransport } from "%s/@modelcontextprotocol/sdk/dist/esm/client/stdio.js";
const client = new Client({ name: "real", version: "1" });
await client.connect(new StdioClientTransport({ command: process.argv[2], env: process.env }));
await client.listTools();
async function call(name, args) {
  return await client.callTool({ name, arguments: args }, undefined, { timeout: 120000 });
}
const made = (await call("sandbox_create", { name: "primes" })).structuredContent;
const sandbox_id = made.id;
const content = "primes = [n for n in range(2, 30) if all(n %% d for d in range(2, n))]\nprint(*primes)\n";
await call("sandbox_files_write", { sandbox_id, path: "/workspace/primes.py", content });
const ran = await call("sandbox_exec", { sandbox_id, command: "python3 /workspace/primes.py" });
process.stdout.write(ran.structuredContent.stdout);
await call("run_python", { code: "import sys; sys.path.insert(0, '/workspace'); from primes import primes", sandbox: sandbox_id });
const sum = await call("run_python", { code: "print(sum(primes))", sandbox: sandbox_id });
const [printed, state] = sum.content[0].text.split("\n");
console.log(printed);
console.log(state === "[sandbox " + sandbox_id + ", call 2]" ? "kept" : state);
await call("sandbox_kill", { sandbox_id });
const gone = await call("run_python", { code: "print(1)", sandbox: sandbox_id });
console.log(gone.isError && gone.content[0].text.includes("was ended by") ? "lost" : gone.content[0].text);
await client.close();
`

// consolesOf are the sockets for the user of a bridge.
func consolesOf(t *testing.T, pid int) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"),
		fmt.Sprintf("mcp-bridge.sandboxes.*.%d.sock", pid)))
	must(t, err)
	return found
}

// TestSandboxCommands: people list, use and end sandboxes of a bridge that is running. Its socket
// is for them alone, and goes with the bridge, also when that is killed.
func TestSandboxCommands(t *testing.T) {
	needEngine(t)
	b := command(t, nil)
	c := serve(t, b)
	does := func(stdin string, args ...string) (stdout, stderr string, code int) {
		t.Helper()
		cmd := exec.Command(b.Path, append([]string{"sandbox"}, args...)...)
		cmd.Env, cmd.Stdin = b.Env, strings.NewReader(stdin)
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), log.String(), cmd.ProcessState.ExitCode()
	}
	if out, log, code := does("", "list"); out != "" || code != 0 ||
		!strings.Contains(log, "there are no sandboxes") {
		t.Errorf("before there are any: %q %q %d", out, log, code)
	}
	id := c.begin("open('made.txt', 'w').write('by code')")
	if out, _, _ := does("", "list"); !strings.Contains(out, id) || !strings.Contains(out, "active") {
		t.Errorf("listed: %s", out)
	}
	out, log, code := does("cat made.txt\nmkdir sub; echo\ncd sub\npwd\ncd nowhere\necho to-err >&2\nfalse\n",
		"shell", id)
	if out != "by code\n/workspace/sub\n" || !strings.Contains(log, "to-err\n") ||
		!strings.Contains(log, "nowhere") ||
		code != 1 {
		t.Errorf("the shell printed %q and %q, and ended with %d", out, log, code)
	}
	for lines, want := range map[string]int{"false\nexit\necho no": 1, "false\nexit 0\necho no": 0,
		"exit 3\necho no": 3} {
		if out, _, code := does(lines, "shell", id); out != "" || code != want {
			t.Errorf("%q: printed %q, and ended with %d", lines, out, code)
		}
	}
	c.python("rows = [1, 2, 3]", map[string]any{"sandbox": id})
	statements := "len(rows)\nfor r in rows[:2]:\n    print(r)\n\n" +
		"rows.clear(); import os; os._exit(3)\nsum(rows)\n1 / 0\n"
	if out, log, code := does(statements, "python", id); out != "3\n1\n2\n6\n" || code != 1 ||
		!strings.Contains(log, "variables are as before this statement") ||
		!strings.Contains(log, "ZeroDivisionError") {
		t.Errorf("python printed %q and %q, and ended with %d", out, log, code)
	}
	if out, _, code := does("rows.append(4)\nexit()\nno", "python", id); out != "" || code != 0 {
		t.Errorf("python printed %q, and ended with %d", out, code)
	}
	got := c.python("print(rows)", map[string]any{"sandbox": id})
	if !strings.HasPrefix(got.Text, "[1, 2, 3, 4]\n") {
		t.Errorf("the model finds %s", got.Text)
	}
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "in.txt"), []byte("from here"), 0o600))
	if _, log, code := does("", "cp", filepath.Join(dir, "in.txt"), id+":/workspace"); code != 0 {
		t.Errorf("copying into a directory: %s", log)
	}
	if _, log, code := does("", "cp", id+":in.txt", filepath.Join(dir, "again.txt")); code != 0 {
		t.Errorf("copying what was copied into a directory: %s", log)
	}
	if _, log, code := does("", "cp", id+":nope", dir); code != 1 ||
		!strings.Contains(log, "sandbox shell "+id) ||
		strings.Contains(log, "sandbox_files") {
		t.Errorf("copying what isn't there: %d %s", code, log)
	}
	if _, log, code := does("", "cp", filepath.Join(dir, "in.txt"), id+":/workspace/sub/"); code != 0 {
		t.Errorf("copying in: %s", log)
	}
	if _, log, code := does("", "cp", id+":/workspace/sub/in.txt", filepath.Join(dir, "out.txt")); code != 0 {
		t.Errorf("copying out: %s", log)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "out.txt")); err != nil || string(got) != "from here" {
		t.Errorf("%q, %v", got, err)
	}
	if _, log, code := does("", "cp", id+":made.txt", filepath.Join(dir, "out.txt")); code != 1 ||
		!strings.Contains(log, "is there already") {
		t.Errorf("over a file: %d %s", code, log)
	}
	if _, log, code := does("", "cp", "a", "b"); code != exit.Misused || !strings.Contains(log, "in a sandbox") {
		t.Errorf("neither in a sandbox: %d %s", code, log)
	}
	if _, log, code := does("", "kill", "zzzz"); code != exit.Misused ||
		!strings.Contains(log, `no sandbox "zzzz"`) {
		t.Errorf("one that isn't there: %d %s", code, log)
	}
	if _, log, code := does("", "kill", id); code != 0 {
		t.Errorf("killing it: %s", log)
	}
	if got := c.python("print(1)", map[string]any{"sandbox": id}); !strings.Contains(got.Text, "has ended") {
		t.Error(got.Text)
	}
	sockets := consolesOf(t, c.cmd.Process.Pid)
	if len(sockets) != 1 {
		t.Fatalf("sockets: %v", sockets)
	}
	if info, err := os.Stat(sockets[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its socket: %v, %v", info.Mode(), err)
	}
	c.killed = true
	must(t, c.cmd.Process.Kill())
	c.cmd.Wait() //nolint:errcheck // it was killed
	within(t, "its socket is gone", func() bool {
		_, err := os.Stat(sockets[0])
		return errors.Is(err, os.ErrNotExist)
	})
}

// TestLockDownInASandbox looks around from the code of a sandbox, in its second call too, and finds
// what the code of any run finds.
func TestLockDownInASandbox(t *testing.T) {
	needEngine(t)
	t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
	c := serve(t, command(t, nil))
	id := c.begin("pass")
	look := looksAround(t)
	for call := 2; call < 4; call++ {
		got := c.python(look, map[string]any{"sandbox": id, "timeout": 60})
		report, is := strings.CutSuffix(got.Text, fmt.Sprintf("\n[sandbox %s, call %d]", id, call))
		if got.IsError || !is {
			t.Fatal(got.Text)
		}
		checkLockDown(t, report)
	}
}

// TestHibernationOnEngine: a sandbox that is idle is saved and ends, the next call by its id wakes
// it, and a bridge that was killed after it was saved leaves it to the next one. Files are back
// byte for byte; variables are not.
func TestHibernationOnEngine(t *testing.T) {
	needTime(t)
	needEngine(t)
	dir, state := filepath.Join(t.TempDir(), "saved"), t.TempDir()
	b := func() *exec.Cmd {
		return with(command(t, nil), "MCP_BRIDGE_TOOLS=all", "MCP_BRIDGE_HIBERNATE="+dir,
			"MCP_BRIDGE_SANDBOX_IDLE=5", "MCP_BRIDGE_LOG_LEVEL=warn", "XDG_STATE_HOME="+state)
	}
	c := serve(t, b())
	id, _ := c.tool("sandbox_create", map[string]any{"name": "kept", "metadata": map[string]string{"a": "b"},
		"env_vars": map[string]string{"HELLO": "hunter2"}})["id"].(string)
	in := map[string]any{"sandbox": id, "timeout": 60}
	const fill = `import os, random
x = 41
os.makedirs("deep/er/empty"); os.symlink("er", "deep/link")
for name, size in {"deep/er/small": 10, "big": 20_000_000, "wörld": 0, "script": 100}.items():
    with open(name, "wb") as f:
        f.write(random.Random(name).randbytes(size))
os.chmod("script", 0o755)
os.mkfifo("a.pipe")`
	const sums = `import hashlib, os
def walk():
    for folder, folders, names in sorted(os.walk("/workspace")):
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            about = os.lstat(path)
            data = open(path, "rb").read() if os.path.isfile(path) else b""
            if not name.endswith(".pipe"):
                yield path, oct(about.st_mode), int(about.st_mtime), hashlib.sha256(data).hexdigest()
print(hashlib.sha256(repr(list(walk())).encode()).hexdigest(), os.environ["HELLO"], "x" in globals())`
	if got := c.python(fill, in); got.IsError {
		t.Fatal(got.Text)
	}
	before, _, _ := strings.Cut(c.python(sums, in).Text, "\n")
	if !strings.HasSuffix(before, " hunter2 True") {
		t.Fatal(before)
	}
	want := strings.TrimSuffix(before, "True") + "False\n[sandbox " + id +
		": files are back, variables are not; not " +
		"saved: a.pipe (no file)]"
	asleep := func(c *client) {
		t.Helper()
		within(t, "it is saved", func() bool {
			return c.tool("sandbox_info", map[string]any{"sandbox_id": id})["status"] == "hibernated"
		})
	}
	asleep(c)
	if got := c.python(sums, in); got.Text != want {
		t.Errorf("woken: %q, want %q", got.Text, want)
	}
	asleep(c)
	saved, err := filepath.Glob(dir + "/*.sandbox")
	if err != nil || len(saved) != 1 {
		t.Fatalf("%v, %v", saved, err)
	}
	if data, err := os.ReadFile(saved[0]); err != nil || bytes.Contains(data, []byte("hunter2")) {
		t.Errorf("the file can be read: %v", err)
	}
	c.killed = true
	must(t, c.cmd.Process.Kill())
	<-c.ended
	c.cmd.Wait() //nolint:errcheck // it was killed

	c = serve(t, b())
	want = strings.Replace(want, "; not saved: a.pipe (no file)", "", 1) // it wasn't there any more
	if got := c.python(sums, in); got.Text != want {
		t.Errorf("woken by another bridge: %q, want %q", got.Text, want)
	}
	asleep(c)
	if got := c.tool("sandbox_resume", map[string]any{"sandbox_id": id}); got["status"] != "active" {
		t.Error(got)
	}
	c.tool("sandbox_kill", map[string]any{"sandbox_id": id})
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}

	id = c.tool("sandbox_create", map[string]any{})["id"].(string) // its client goes in the middle of a call
	c.tool("sandbox_files_write", map[string]any{"sandbox_id": id, "path": "last", "content": "word"})
	c.startLong(map[string]any{"sandbox": id})
	c.close()
	c.killed = true // it has been waited for
	c = serve(t, b())
	if got := c.tool("sandbox_files_read",
		map[string]any{"sandbox_id": id, "path": "last"}); got["content"] != "word" {
		t.Error(got)
	}
}
