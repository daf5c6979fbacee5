package bridge

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// reading is a bridge whose calls may name files of a directory. Its code prints the files that it
// got.
func reading(t *testing.T, dir string) *Bridge {
	t.Helper()
	inputs, err := files.NewInputs([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	return build(t, func(c *Config) {
		c.Inputs = inputs
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			var out strings.Builder
			opened, _ := r.Files()
			for _, f := range opened {
				text, err := io.ReadAll(f.Data)
				if err != nil {
					t.Error(err)
				}
				out.WriteString(f.Name + "=" + string(text) + ";")
			}
			return printed(out.String()), nil
		}}
	})
}

// TestFilesArgument: files are opened for the run; what may not be read is refused before anything
// waits.
func TestFilesArgument(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "1", "sub/a.csv": "2"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := connect(t, reading(t, dir))
	for args, want := range map[string]string{
		`{"code":"x","files":["a.csv","sub/a.csv"]}`: "a.csv=1;a-2.csv=2;\n[sub/a.csv was copied to " +
			"/workspace/in/a-2.csv]",
		`{"code":"x","files":[]}`:   "(no output)",
		`{"code":"x","files":null}`: "(no output)",
		`{"code":"x","files":["/etc/passwd"]}`: `status: validation_error — argument "files": /etc/passwd ` +
			`is not below a directory whose files may be read, which are: ` + dir + " (MCP_BRIDGE_INPUTS)",
		`{"code":"x","files":["b"]}`: `status: validation_error — argument "files": there is no ` +
			`file b below ` + dir,
		`{"code":"x","files":"a.csv"}`: `status: validation_error — argument "files" must be a ` +
			`list of paths below ` + dir + ", not a string",
		`{"code":"x","files":{}}`: `status: validation_error — argument "files" must be a ` +
			`list of paths below ` + dir + ", not an object",
		`{"code":"x","files":[""]}`: `status: validation_error — argument "files"[0] must be a ` +
			`path below ` + dir + ", not an empty string",
		`{"code":"x","files":["a.csv",5]}`: `status: validation_error — argument "files"[1] must be a ` +
			`path below ` + dir + ", not a number",
		`{"code":"x","files":[null]}`: `status: validation_error — argument "files"[0] must be a ` +
			`path below ` + dir + ", not null",
	} {
		if got := p.call(args).Content[0].Text; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", args, got, want)
		}
	}
}

// TestNoFilesArgument: without directories nothing is said of files, and none are taken.
func TestNoFilesArgument(t *testing.T) {
	b := build(t, nil)
	schema := string(b.Catalog().InputSchema(b.limits))
	if strings.Contains(schema, "files") {
		t.Errorf("the schema is %s", schema)
	}
	if got := connect(t, b).call(`{"code":"x","files":["a"]}`).Content[0].Text; !strings.Contains(got,
		`run_python has no argument "files"`) {
		t.Errorf("got %s", got)
	}
	b = reading(t, t.TempDir())
	var s struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(b.Catalog().InputSchema(b.limits), &s); err != nil ||
		!strings.HasPrefix(s.Properties["files"].Description, "Files to copy to /workspace/in first, from /") {
		t.Errorf("%+v, %v", s, err)
	}
}
