package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// filesGone is what the guest says of files outside /workspace/out.
var filesGone = regexp.MustCompile(`\[files in /workspace are gone after the run: .*\n`)

const programsDir = "../../entrypoint/testdata/programs"

// shownFile is the name of a file that was shown and not given a name.
var shownFile = regexp.MustCompile(`^(image|display|figure|audio)-\d+(-\d+)?\.\w+$`)

// firstProgram is one program of entrypoint/testdata/programs, whose README.md says what its files
// hold.
type firstProgram struct {
	server, name, code string
	out, says          *string
}

func firstPrograms(t *testing.T) []firstProgram {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(programsDir, "*.txtar"))
	must(t, err)
	var all []firstProgram
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		must(t, err)
		for _, f := range archive.Files {
			text := string(f.Data)
			name, kind, _ := strings.Cut(f.Name, ".")
			if kind == "py" {
				all = append(all, firstProgram{server: strings.TrimSuffix(filepath.Base(path), ".txtar"), name: name,
					code: text})
				continue
			}
			last := &all[len(all)-1]
			switch {
			case last.name == name && kind == "out":
				last.out = &text
			case last.name == name && kind == "says":
				last.says = &text
			default:
				t.Fatalf("%s: %s stands behind %s.py", path, f.Name, last.name)
			}
		}
	}
	return all
}

// TestFirstPrograms runs what models write by habit, with servers that declare no output schemas,
// through the bridge: each program prints what a person expects, or its error says how to mend it.
func TestFirstPrograms(t *testing.T) {
	needEngine(t)
	programs := firstPrograms(t)
	if len(programs) < 60 {
		t.Fatalf("only %d programs", len(programs))
	}
	servers := map[string]entry{"github": {Command: self(t), Args: []string{"demo-server", "github"},
		Env: map[string]string{asMain: "1"}}}
	scripts, err := filepath.Glob(filepath.Join(programsDir, "*.json"))
	must(t, err)
	for _, script := range scripts {
		data, err := os.ReadFile(script)
		must(t, err)
		e := shop(t) // whose arguments say that it isn't the bridge itself
		e.Env = map[string]string{asScript: string(data)}
		servers[strings.TrimSuffix(filepath.Base(script), ".json")] = e
	}
	c := serve(t, with(command(t, servers), "MCP_BRIDGE_OUTPUT_MODE=structured", "MCP_BRIDGE_LOG_LEVEL=error"))
	queue := make(chan firstProgram, len(programs))
	for _, p := range programs {
		queue <- p
	}
	close(queue)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for p := range queue {
				t.Run(p.server+"/"+p.name, func(t *testing.T) { p.check(t, c) })
			}
		})
	}
	wg.Wait()
}

func (p firstProgram) check(t *testing.T, c *client) {
	m := c.request("tools/call", map[string]any{"name": "run_python", "arguments": map[string]any{
		"code": p.code, "servers": []string{p.server}, "timeout": 60,
	}})
	var r struct{ StructuredContent hostileGot }
	if m.Error != nil {
		t.Fatalf("JSON-RPC error %d: %s", m.Error.Code, m.Error.Message)
	}
	must(t, json.Unmarshal(m.Result, &r))
	got := r.StructuredContent
	got.Stderr = filesGone.ReplaceAllString(got.Stderr, "") // of programs that write no file to /workspace/out
	if p.out != nil {
		if text := got.Stdout + handedOver(t, got.Artifacts); got.Status != "ok" || got.Stderr != "" ||
			text != *p.out {
			t.Errorf("%s: %s\nprinted %q, want %q; stderr: %s", got.Status, got.Message, text, *p.out, got.Stderr)
		}
		return
	}
	says := strings.Split(strings.TrimSpace(*p.says), "\n")
	if got.Error == nil || got.Error.Type != says[0] {
		t.Fatalf("got %s %+v, want the exception %s", got.Status, got.Error, says[0])
	}
	holds(t, got.Error.Message, says[1:]...)
}

// handedOver is a line for each file.
func handedOver(t *testing.T, files []json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	for _, raw := range files {
		var f struct{ Name, Mime string }
		must(t, json.Unmarshal(raw, &f))
		if shownFile.MatchString(f.Name) {
			f.Name = ""
		}
		b.WriteString("[" + strings.TrimSpace(f.Name+" "+f.Mime) + "]\n")
	}
	return b.String()
}
