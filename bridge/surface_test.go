package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func indented(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func TestGoldens(t *testing.T) {
	p := connect(t, build(t, nil))
	for _, tc := range []struct{ file, method, params string }{
		{"initialize.json", "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}`},
		{"tools_list.json", "tools/list", `{}`},
		{"resources_list.json", "resources/list", `{}`},
		{"templates_list.json", "resources/templates/list", `{}`},
	} {
		t.Run(tc.method, func(t *testing.T) {
			p.send(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, tc.method, tc.params)
			golden(t, tc.file, indented(t, p.next().Result))
		})
	}
	golden(t, "manual.md", []byte(manualOf(build(t, nil))))
}

// modern are the params of a request without a handshake before it, as of protocol version
// 2026-07-28.
const modern = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}`

// TestHints: each tool says what it does, and leaves no hint to a default.
func TestHints(t *testing.T) {
	p := connect(t, build(t, nil))
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	var list struct {
		Tools []struct {
			Name, Title string
			Annotations struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool }
		}
	}
	if err := json.Unmarshal(p.next().Result, &list); err != nil || len(list.Tools) != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, tool := range list.Tools {
		a, runs := tool.Annotations, tool.Name == runPythonName
		for hint, is := range map[*bool]bool{a.ReadOnlyHint: !runs, a.DestructiveHint: runs,
			a.IdempotentHint: !runs, a.OpenWorldHint: runs} {
			if hint == nil || *hint != is {
				t.Errorf("%s: a hint is unsaid or wrong: %+v", tool.Name, a)
			}
		}
		if tool.Title == "" {
			t.Errorf("%s has no title", tool.Name)
		}
	}
}

// hostCut is where hosts cut descriptions and instructions, in characters, and maxList what
// tools/list may have
// in bytes, since it costs in every conversation.
const (
	hostCut = 2048
	maxList = 2600
)

// TestSizes: hosts cut descriptions and instructions, and tools/list costs in every conversation.
func TestSizes(t *testing.T) {
	many := func(c *Config) {
		for i := range 300 {
			c.Servers = append(c.Servers, discovery.Server{Name: fmt.Sprintf("ein „Sörver“ <%d> & \u2028", i)})
		}
	}
	for _, tc := range []struct {
		name   string
		change func(*Config)
	}{{"few", nil}, {"many", many}, {"none", func(c *Config) { c.Servers = nil }}} {
		t.Run(tc.name, func(t *testing.T) {
			b := build(t, tc.change)
			p := connect(t, b)
			for _, params := range []string{`{}`, modern} {
				p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":%s}`, params)
				res := shownToModels(t, p.next().Result)
				if n := len(res); n >= maxList || !bytes.Contains(res, []byte("run_python")) {
					t.Errorf("tools/list has %d bytes: %s", n, res)
				} else {
					t.Logf("tools/list has %d bytes", n)
				}
			}
			if n := len(b.runTool(b.Catalog()).Description); n > hostCut {
				t.Errorf("the description has %d bytes", n)
			}
			p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/templates/list","params":{}}`)
			if n := len(p.next().Result); n >= 400 {
				t.Errorf("resources/templates/list has %d bytes", n)
			}
			if n := len(b.Catalog().Instructions()); n > hostCut {
				t.Errorf("the instructions have %d bytes", n)
			}
		})
	}
}

// shownToModels is what hosts give a model of tools/list. Titles, hints and _meta are for the host
// and its user.
func shownToModels(t testing.TB, list json.RawMessage) []byte {
	t.Helper()
	var l struct {
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(list, &l); err != nil {
		t.Fatal(err)
	}
	return text.JSON(l)
}

func manualOf(b *Bridge) string { return b.Catalog().Manual(b.limits) }

func TestManualHoldsNoSecret(t *testing.T) {
	text := manualOf(build(t, nil))
	for _, want := range []string{"github: `mcp_github` – Issues and pulls", "My Files!: `mcp_my_files_`",
		"linear (Cursor): remote servers are not supported yet", "at most 120 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the manual lacks %q", want)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("the manual holds an environment value")
	}
}

// TestClient uses the bridge as a program with an MCP library does.
func TestClient(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- build(t, nil).Serve(t.Context(), inR, outW)
		outW.Close()
	}()
	c := client.NewClient(transport.NewIO(outR, inW, io.NopCloser(&bytes.Buffer{})))
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	info, err := c.Initialize(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	if info.ServerInfo.Name != "mcp-bridge" || info.ServerInfo.Version != "1.2.3" {
		t.Errorf("the server calls itself %+v", info.ServerInfo)
	}
	tools, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil || len(tools.Tools) != 3 || tools.Tools[0].Name != "read_output" ||
		tools.Tools[1].Name != "run_python" || tools.Tools[2].Name != "search_tools" {
		t.Errorf("tools: %v, %v", tools, err)
	}
	var call mcp.CallToolRequest
	call.Params.Name = "run_python"
	call.Params.Arguments = map[string]any{"code": "a\n\nb"}
	res, err := c.CallTool(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Content[0].(mcp.TextContent).Text; got != "a\n\nb" || res.IsError ||
		res.StructuredContent != nil {
		t.Errorf("got %+v", res)
	}
	listed, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	if err != nil || len(listed.Resources) != 1 {
		t.Fatalf("resources: %v, %v", listed, err)
	}
	var read mcp.ReadResourceRequest
	read.Params.URI = listed.Resources[0].URI
	got, err := c.ReadResource(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	if text := got.Contents[0].(mcp.TextResourceContents); text.MIMEType != listed.Resources[0].MIMEType ||
		text.MIMEType != "text/markdown" {
		t.Errorf("listed as %s, read as %s", listed.Resources[0].MIMEType, text.MIMEType)
	}
	inW.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	c.Close()
}
