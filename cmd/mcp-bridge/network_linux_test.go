package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// traced is a command whose system calls are traced.
type traced struct {
	args  string
	input string
	says  string // is in its output
	until string // when this is in its output, it is sent SIGTERM
	code  int    // of its end
	asks  bool   // the user asks for the network: it is used, which shows that the trace would show it
}

// conversation is what a client says to serve.
const conversation = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
	`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// withoutEngine are commands in a home whose hosts have two servers, where no engine is reached.
var withoutEngine = []traced{
	{args: ""}, {args: "help"}, {args: "version"}, {args: "completion"}, {args: "completion bash"},
	{args: "completion zsh"}, {args: "completion fish"}, {args: "completion powershell"}, {args: "man pages"},
	{args: "demo-server"}, {args: watchdogName, code: exit.Unavailable},
	{args: "install --all --print", says: "mcp-bridge"}, {args: "install --all --yes"},
	{args: "tools shop", says: "list_orders"}, {args: "adopt --print", says: "tokens"}, {args: "adopt --yes"},
	{args: "servers"}, {args: "servers shop"}, {args: "servers --check web", code: exit.Failed, asks: true},
	{args: "servers approve --all"}, {args: "stats"}, {args: "doctor", code: exit.Unavailable},
	{args: "login --status"}, {args: "logout web", code: exit.Failed},
	{args: "secret"}, {args: "secret set n", input: "hunter2\n"}, {args: "secret list"},
	{args: "secret remove n"},
	{args: "token"}, {args: "token add alice"}, {args: "token list", says: "alice"},
	{args: "token revoke alice"},
	{args: "policy"}, {args: "policy check"}, {args: "policy list"}, {args: "policy test shop.list_orders"},
	{args: "policy grant shop.list_orders"}, {args: "policy forget shop.list_orders"},
	{args: "policy approve --yes"},
	{args: "env"}, {args: "env list", code: exit.Unavailable}, {args: "env remove data", code: exit.Unavailable},
	{args: "env export data --oci out", code: exit.Unavailable}, {args: "image", code: exit.Unavailable},
	{args: "run -c 1", code: exit.Unavailable}, {args: "sandbox"}, {args: "sandbox list", says: "no sandboxes"},
	{args: "sandbox shell k7f2", code: exit.Misused}, {args: "sandbox kill k7f2", code: exit.Misused},
	{args: "sandbox python k7f2", code: exit.Misused},
	{args: "sandbox cp k7f2:a b", code: exit.Misused},
	{args: "serve", input: conversation, says: `"run_python"`},
	{args: "serve --http 127.0.0.1:0", until: "msg=listening", says: "msg=listening"},
	{args: "adopt --undo --yes"}, {args: "install --undo --yes"},
}

// askNetwork are the commands with which a user asks for the network.
var askNetwork = []string{"login", "env build", "env add", "env lock", "image pull", "image build",
	"image ensure"}

// TestNoNetwork traces the system calls of all commands that a user has not asked to use the
// network. None of them, and no process that they start, opens a connection but to a Unix socket.
func TestNoNetwork(t *testing.T) {
	tr := newTracer(t)
	tr.env = append(tr.env, "MCP_BRIDGE_RUNTIME=unix://"+filepath.Join(tr.home, "none.sock"))
	for _, c := range withoutEngine {
		tr.run(c)
	}
}

// TestNoNetworkOfRuns traces what uses an engine.
func TestNoNetworkOfRuns(t *testing.T) {
	socket := engineSocket(t)
	tr := newTracer(t)
	tr.env = append(tr.env, "MCP_BRIDGE_RUNTIME=unix://"+socket, "MCP_BRIDGE_ENV=base")
	for _, c := range []traced{
		{args: "doctor", says: "ready"}, {args: "image", says: "in use"}, {args: "env list"},
		{args: "run -", input: "print(await mcp_shop.echo(text='hi'))\n", says: "hi"},
		{args: "serve", input: conversation, says: `"run_python"`},
	} {
		tr.run(c)
	}
}

// TestNetworkOfAll: each command of the program is traced, or asks for the network.
func TestNetworkOfAll(t *testing.T) {
	root := (&app{}).root()
	var covered []*cobra.Command
	for _, c := range withoutEngine {
		found, _, err := root.Find(strings.Fields(c.args))
		must(t, err)
		covered = append(covered, found)
	}
	for _, name := range askNetwork {
		found, rest, err := root.Find(strings.Fields(name))
		must(t, err)
		if len(rest) > 0 {
			t.Errorf("there is no command %s", name)
		}
		covered = append(covered, found)
	}
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if !slices.Contains(covered, c) {
			t.Errorf("TestNoNetwork doesn't trace %s", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
}

// tracer runs commands under strace, in a home whose hosts have two servers.
type tracer struct {
	t                           *testing.T
	strace, file, program, home string
	env                         []string
}

func newTracer(t *testing.T) *tracer {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "trace")
	if exec.Command(strace, "-f", "-o", file, "true").Run() != nil {
		t.Skip("no process may be traced here")
	}
	dir := t.TempDir()
	must(t, os.Symlink(self(t), filepath.Join(dir, "mcp-bridge")))
	ad := newAdoption(t, map[string]string{
		ofCursor: `{"mcpServers": {"shop": {"command": "mcp-bridge", "args": ["demo-server"]}, "web": {"url": ` +
			`"http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer hunter2-v"}}}}`,
		ofCodex:       "",
		"policy.toml": `default = "allow"`,
	})
	return &tracer{t, strace, file, filepath.Join(dir, "mcp-bridge"), ad.home, []string{asMain + "=1",
		"HOME=" + ad.home, "PATH=" + dir + ":" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir,
		"MCP_BRIDGE_POLICY=" + ad.path("policy.toml")}}
}

var (
	network  = regexp.MustCompile(`.*AF_INET.*`)
	outgoing = regexp.MustCompile(`.*(?:connect|send\w+)\(.*AF_INET.*`) // and not what listens
)

// run traces a command.
func (tr *tracer) run(c traced) {
	args := append([]string{"-f", "-qq", "-e", "trace=socket,connect,sendto,sendmsg,sendmmsg", "-o", tr.file,
		tr.program}, strings.Fields(c.args)...)
	cmd := exec.CommandContext(tr.t.Context(), tr.strace, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = tr.env, tr.home, strings.NewReader(c.input)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, w, err := os.Pipe()
	must(tr.t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = w, w
	must(tr.t, cmd.Start())
	w.Close()
	var said bytes.Buffer
	for b := make([]byte, 1<<16); err == nil; {
		var n int
		n, err = out.Read(b)
		said.Write(b[:n])
		if c.until != "" && strings.Contains(said.String(), c.until) {
			must(tr.t, syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)) // strace blocks it
			c.until = ""
		}
	}
	if err != io.EOF {
		tr.t.Error(err)
	}
	cmd.Wait() // with the command's code
	if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(said.String(), c.says) {
		tr.t.Errorf("mcp-bridge %s: code %d\n%s", c.args, code, said.String())
	}
	seen, err := os.ReadFile(tr.file)
	must(tr.t, err)
	used := network
	if strings.Contains(c.args, "--http") {
		used = outgoing
	}
	if found := used.FindAllString(string(seen), 3); (found != nil) != c.asks {
		tr.t.Errorf("mcp-bridge %s: network %q\n%s", c.args, found, said.String())
	}
}
