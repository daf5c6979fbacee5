package stubs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// checker compiles and runs modules that it is sent, one JSON string a line, and answers with their
// functions and with what it found wrong. That a declaration did anything shows in its answer, or
// in there being none.
const checker = `
import ast, json, sys, warnings
warnings.simplefilter("error")
for line in sys.stdin:
    text = json.loads(line)
    answer = {"functions": [], "error": ""}
    try:
        tree = ast.parse(text)
        allowed = (ast.FunctionDef, ast.ClassDef, ast.ImportFrom, ast.Assign, ast.Expr)
        for node in tree.body:
            comment = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not isinstance(node, allowed) or isinstance(node, ast.Expr) and not comment:
                raise ValueError("statement of type " + type(node).__name__)
            call = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if isinstance(node, ast.Assign) and not (call and node.value.func.id == "TypedDict"):
                raise ValueError("an assignment of something else than a TypedDict")
            if isinstance(node, ast.FunctionDef):
                answer["functions"].append(node.name)
                last = node.body[-1]
                if not isinstance(last, ast.Raise) or len(node.body) > 2 or node.args.posonlyargs:
                    raise ValueError(node.name + " is more than a declaration")
        exec(compile(tree, "stub", "exec"), {"__name__": "stub"})
    except BaseException as e:
        answer["error"] = type(e).__name__ + ": " + str(e)
    answer["functions"].sort()
    print(json.dumps(answer), flush=True)
`

// checking is one Python process for many modules.
type checking struct {
	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

// compiler starts the process. Without a python3 the test is skipped, or fails where nothing may be
// skipped.
func compiler(tb testing.TB) *checking {
	tb.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(tb.Context(), path, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").
			Run()
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatalf("no python3 of version 3.10 or newer: %v; install one", err)
		}
		tb.Skipf("no python3 of version 3.10 or newer: %v", err)
	}
	cmd := exec.Command(path, "-I", "-X", "utf8", "-c", checker)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the checker has ended badly: %v", err)
		}
	})
	return &checking{in: in, out: bufio.NewReader(out)}
}

// check fails unless the module of p compiles, runs, and declares all tools and nothing else.
func (c *checking) check(tb testing.TB, p entrypoint.Provider) {
	tb.Helper()
	text := Module(p)
	line, err := json.Marshal(text)
	if err != nil {
		tb.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintf(c.in, "%s\n", line); err != nil {
		tb.Fatal(err)
	}
	said, err := c.out.ReadBytes('\n')
	if err != nil {
		tb.Fatalf("the checker is gone: %v, after\n%s", err, text)
	}
	var answer struct {
		Functions []string
		Error     string
	}
	if err := json.Unmarshal(said, &answer); err != nil {
		tb.Fatalf("%v: %s", err, said)
	}
	if answer.Error != "" {
		tb.Errorf("%s in\n%.3000s", answer.Error, text)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(p.Tools)), answer.Functions); diff != "" {
		tb.Errorf("functions (-want +got):\n%s", diff)
	}
}

// TestRealServersCompile also holds the golden texts to what Python makes of them.
func TestRealServersCompile(t *testing.T) {
	c := compiler(t)
	for _, p := range servers(t) {
		c.check(t, p)
	}
}

// FuzzStubs: whatever schema and texts a tool has, its module compiles and declares it.
func FuzzStubs(f *testing.F) {
	seeds := 0
	for _, p := range servers(f) {
		for _, t := range p.Tools {
			f.Add(t.OriginalName, t.Description, string(t.InputSchema), string(t.OutputSchema))
			seeds++
		}
	}
	if seeds < 100 {
		f.Fatalf("only %d tools to begin with", seeds)
	}
	for _, s := range nasty {
		f.Add(s, s, `{"properties":{"a":{"$ref":"#"}}}`, `{"enum":["x"]}`)
	}
	c := compiler(f)
	f.Fuzz(func(t *testing.T, name, description, input, output string) {
		p := entrypoint.Provider{
			Name:        name,
			Alias:       "fuzz",
			Description: description,
			Tools:       map[string]entrypoint.Tool{},
		}
		for real, alias := range entrypoint.Aliases([]string{name, "other"}) {
			p.Tools[alias] = entrypoint.Tool{SafeName: alias, OriginalName: real, Description: description,
				InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}
		}
		c.check(t, p)
		for alias, tool := range p.Tools {
			if Signature(alias, tool) == "" {
				t.Error("no signature")
			}
		}
	})
}
