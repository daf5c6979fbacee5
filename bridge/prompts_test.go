package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// result sends a request and decodes its result.
func (p *peer) result(method, params string, to any) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	if f := p.next(); f.Error != nil || json.Unmarshal(f.Result, to) != nil {
		p.t.Fatalf("%s %s: got %s, %+v", method, params, f.Result, f.Error)
	}
}

func TestPrompts(t *testing.T) {
	p := connect(t, build(t, func(c *Config) {
		c.Servers = append(c.Servers, discovery.Server{Name: "far off", Transport: discovery.HTTP,
			URL: "https://user:secret@example.org"})
	}))
	var listed struct {
		Prompts []struct{ Name, Title string }
	}
	p.result("prompts/list", `{}`, &listed)
	if len(listed.Prompts) != 3 {
		t.Errorf("listed are %+v", listed)
	}
	for _, tc := range []struct{ name, arguments, want string }{
		{"servers", `{}`, "My Files!: `mcp_my_files_`"},
		{"servers", `{}`, " MCP servers, if they start.\n"},
		{"servers", `{}`, "linear (Cursor): remote servers are not supported yet"},
		{"login", `{}`, `Remote servers: "far off". To log in`},
		{"login", `{"server":"far off"}`, "mcp-bridge login 'far off'"},
		{"login", `{"server":"github"}`, "is a program on this machine"},
		{"login", `{"server":"githup"}`, `there is no server "githup" (did you mean "github"?)`},
		{"policy", `{}`, "No policy is set: code may call every tool"},
	} {
		var got struct {
			Messages []struct {
				Role    string
				Content struct{ Text string }
			}
		}
		p.result("prompts/get", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tc.name, tc.arguments), &got)
		if len(got.Messages) != 1 || got.Messages[0].Role != "user" ||
			!strings.Contains(got.Messages[0].Content.Text, tc.want) || strings.Contains(fmt.Sprint(got), "secret") {
			t.Errorf("%s %s: got %+v, want %q", tc.name, tc.arguments, got, tc.want)
		}
	}
}

// TestFilesAreListed: the files of the last runs can be chosen by a user: they are in
// resources/list, within bounds, clients hear
// of them, and the template's variables are completed.
func TestFilesAreListed(t *testing.T) {
	p := connect(t, build(t, func(c *Config) {
		c.Servers = append(c.Servers, discovery.Server{Name: "far off", Transport: discovery.HTTP,
			URL: "https://example.org"})
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			res := printed("x")
			for _, name := range strings.Fields(r.Code) {
				res.Artifacts = append(res.Artifacts, sandbox.Artifact{Name: name, Mime: "text/csv",
					Data: []byte("a,b\n")})
			}
			return res, nil
		}}
	}))
	p.introduce(`{}`)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var run string
	for i, code := range []string{"old.csv", "plot/a.csv b.csv"} {
		p.run(i, fmt.Sprintf(`{"code":%q}`, code), "")
		var answer struct{ Content []struct{ URI string } }
		if f := p.next(); json.Unmarshal(f.Result, &answer) != nil || len(answer.Content) < 2 {
			t.Fatalf("got %s", f.Result)
		}
		run, _, _ = strings.Cut(strings.TrimPrefix(answer.Content[1].URI, "mcp-bridge://runs/"), "/")
		if f := p.next(); f.Method != "notifications/resources/list_changed" {
			t.Errorf("got %+v", f)
		}
	}
	var listed struct {
		Resources []struct {
			URI, Name, MIMEType string
			Size                int
		}
	}
	p.result("resources/list", `{}`, &listed)
	if len(listed.Resources) != 4 || listed.Resources[1].Name != "plot/a.csv" || listed.Resources[1].Size != 4 ||
		listed.Resources[3].Name != "old.csv" {
		t.Fatalf("listed are %+v", listed)
	}
	var read struct{ Contents []struct{ Text string } }
	p.result("resources/read", fmt.Sprintf(`{"uri":%q}`, listed.Resources[1].URI), &read)
	if len(read.Contents) != 1 || read.Contents[0].Text != "a,b\n" {
		t.Errorf("read is %+v", read)
	}
	for _, tc := range []struct {
		ref, argument, value, known string
		want                        []string
	}{
		{`"type":"ref/resource","uri":"mcp-bridge://runs/{run}/{+name}"`, "run", run[:4], "", []string{run}},
		{`"type":"ref/resource","uri":"mcp-bridge://runs/{run}/{+name}"`, "name", "", run,
			[]string{"plot/a.csv", "b.csv"}},
		{`"type":"ref/resource","uri":"mcp-bridge://runs/{run}/{+name}"`, "+name", "", "",
			[]string{"plot/a.csv", "b.csv", "old.csv"}},
		{`"type":"ref/resource","uri":"mcp-bridge://runs/{run}/{+name}"`, "name", "o", "", []string{"old.csv"}},
		{`"type":"ref/resource","uri":"x://{run}"`, "run", "", "", []string{}},
		{`"type":"ref/prompt","name":"login"`, "server", "", "", []string{"far off"}},
		{`"type":"ref/prompt","name":"login"`, "server", "g", "", []string{}},
		{`"type":"ref/prompt","name":"policy"`, "server", "", "", []string{}},
	} {
		var got struct{ Completion struct{ Values []string } }
		p.result("completion/complete", fmt.Sprintf(`{"ref":{%s},"argument":{"name":%q,"value":%q},`+
			`"context":{"arguments":{"run":%q}}}`, tc.ref, tc.argument, tc.value, tc.known), &got)
		if diff := cmp.Diff(tc.want, got.Completion.Values); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tc.argument, tc.ref, diff)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("%d.csv", i))
	}
	p.run(3, fmt.Sprintf(`{"code":%q}`, strings.Join(many, " ")), "")
	p.next()
	p.next()
	p.result("resources/list", `{}`, &listed)
	if len(listed.Resources) != 1+100 {
		t.Errorf("%d are listed", len(listed.Resources))
	}
}

// TestOutputSchemas: in structured mode each structured result is what its tool declares.
func TestOutputSchemas(t *testing.T) {
	p := connect(t, build(t, func(c *Config) {
		c.OutputMode = OutputStructured
		c.Runner = fakeRunner{run: func(_ context.Context, r sandbox.Request, _ sandbox.Host) (sandbox.Result,
			error) {
			if r.Code == "fails" {
				return sandbox.Result{Status: sandbox.StatusError, ExitCode: 1,
					Error: &sandbox.Failure{Type: "E", Line: 1}}, nil
			}
			res := printed(strings.Repeat("x", DefaultOutput+1))
			res.Artifacts = []sandbox.Artifact{{Name: "a", Mime: "b", Data: []byte("c")}}
			return res, nil
		}}
	}))
	var list struct {
		Tools []struct {
			Name         string
			OutputSchema *jsonschema.Schema
		}
	}
	p.result("tools/list", `{}`, &list)
	calls := map[string][]string{
		runPythonName:   {`{"code":"x"}`, `{"code":"fails"}`, `{"cod":"x"}`},
		searchToolsName: {`{}`, `{"query":"list issues","detail":"full"}`},
	}
	for _, tool := range list.Tools {
		if (tool.OutputSchema == nil) != (calls[tool.Name] == nil) {
			t.Errorf("%s has the schema %v", tool.Name, tool.OutputSchema)
		}
		for _, args := range calls[tool.Name] {
			schema, err := tool.OutputSchema.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ StructuredContent any }
			p.result("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool.Name, args), &got)
			if err := schema.Validate(got.StructuredContent); err != nil {
				t.Errorf("%s %s: %v", tool.Name, args, err)
			}
		}
	}
}
