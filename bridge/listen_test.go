package bridge

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

func (p *peer) listen(id, filter string) {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id,
		filter, modernMeta)
}

// heard expects a notification of a subscription, and returns what it acknowledges.
func (p *peer) heard(method, id string) string {
	p.t.Helper()
	f := p.next()
	var params struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications json.RawMessage
	}
	if f.Method != method || json.Unmarshal(f.raw, &params) != nil ||
		string(params.Meta["io.modelcontextprotocol/subscriptionId"]) != id {
		p.t.Fatalf("got %s %s %s, want %s of %s", f.Method, f.raw, f.Result, method, id)
	}
	return string(params.Notifications)
}

const acknowledged, toolsChanged = "notifications/subscriptions/acknowledged",
	"notifications/tools/list_changed"

// TestListen: a subscription is acknowledged first, hears what it asked for and nothing else, each
// message with its id byte for byte, and nothing any more once it is cancelled. The bridge's end is
// told.
func TestListen(t *testing.T) {
	b := build(t, func(c *Config) { c.Upstreams = changing() })
	p := connect(t, b)
	servers := 0
	change := func() {
		servers++
		b.Update([]discovery.Server{{Name: fmt.Sprint("s", servers)}}, nil)
	}
	change() // no one listens
	p.listen("9007199254740993", `{"toolsListChanged":true,"promptsListChanged":true,`+
		`"resourceSubscriptions":["x:y"]}`)
	if got := p.heard(acknowledged, "9007199254740993"); got != `{"toolsListChanged":true}` {
		t.Errorf("acknowledged is %s", got)
	}
	p.listen(`"two"`, `{"resourcesListChanged":true}`)
	if got := p.heard(acknowledged, `"two"`); got != `{"resourcesListChanged":true}` {
		t.Errorf("acknowledged is %s", got)
	}
	p.listen(`3`, `{}`)
	p.heard(acknowledged, `3`)
	if f := p.next(); string(f.ID) != "3" || f.Error != nil {
		t.Errorf("a subscription to nothing goes on: %+v", f)
	}
	change()
	p.heard(toolsChanged, "9007199254740993")
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9007199254740993}}`)
	p.listen(`4`, `{"toolsListChanged":true}`) // whose answer comes when the cancel has been read
	p.heard(acknowledged, `4`)
	change()
	p.heard(toolsChanged, "4")
	p.in.Close()
	ended := map[string]bool{}
	for f := range p.frames {
		ended[string(f.ID)] = true
		if string(f.Result) == "" || f.Method != "" {
			t.Errorf("at the end came %+v", f)
		}
	}
	if len(ended) != 2 || !ended[`"two"`] || !ended["4"] {
		t.Errorf("told to be over are %v", ended)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	p := connect(t, build(t, nil))
	for i := range 16 {
		p.listen(fmt.Sprint(i), `{"toolsListChanged":true}`)
		p.heard(acknowledged, fmt.Sprint(i))
	}
	p.listen(`"more"`, `{"toolsListChanged":true}`)
	if f := p.next(); f.Error == nil || f.Error.Code != jsonrpc.CodeBusy {
		t.Errorf("got %+v", f)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	for { // until the cancelled one has gone
		p.listen(`"again"`, `{"toolsListChanged":true}`)
		if f := p.next(); f.Error == nil {
			break
		}
	}
}

// TestMeta: what a request of 2026-07-28 lacks is an error in its parameters.
func TestMeta(t *testing.T) {
	p := connect(t, build(t, nil))
	const version, can, info = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		`"io.modelcontextprotocol/clientCapabilities":{}`,
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}`
	for _, tc := range []struct {
		name, method, params string
		code                 int
	}{
		{"no _meta", "server/discover", `{}`, -32602},
		{"no params", "server/discover", ``, -32602},
		{"no version", "server/discover", `{"_meta":{` + info + `,` + can + `}}`, -32602},
		{"a version that is no text", "server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":5,` +
			can + `}}`, -32602},
		{"no capabilities", "server/discover", `{"_meta":{` + version + `,` + info + `}}`, -32602},
		{"capabilities that are no object", "tools/call",
			`{"name":"run_python","arguments":{"code":"x"},"_meta":{` + version +
				`,"io.modelcontextprotocol/clientCapabilities":5}}`, -32602},
		{"no client", "server/discover", `{"_meta":{` + version + `,` + can + `}}`, 0},
		{"a version to come", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01",` +
			can + `}}`, -32022},
		{"listening without _meta", "subscriptions/listen", `{"notifications":{}}`, -32602},
		{"listening to nothing", "subscriptions/listen", `{` + modernMeta + `}`, -32602},
		{"listening to a list", "subscriptions/listen", `{"notifications":[],` + modernMeta + `}`, -32602},
		{"removed", "ping", `{` + modernMeta + `}`, -32601},
		{"the older protocol", "tools/list", `{}`, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			params := tc.params
			if params != "" {
				params = `,"params":` + params
			}
			p.send(`{"jsonrpc":"2.0","id":7,"method":%q%s}`, tc.method, params)
			f := p.next()
			got := 0
			if f.Error != nil {
				got = f.Error.Code
			}
			if got != tc.code || string(f.ID) != "7" {
				t.Errorf("got %+v %s, want code %d", f.Error, f.Result, tc.code)
			}
		})
	}
}

// TestUnknownResource: the error of resources/read has the URI in its data.
func TestUnknownResource(t *testing.T) {
	p := connect(t, build(t, nil))
	for _, uri := range []string{"x:y", "mcp-bridge://runs/0123456789ab/plot.png"} {
		for params, code := range map[string]int{"": -32002, "," + modernMeta: -32602} {
			p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":%q%s}}`, uri, params)
			f := p.next()
			if f.Error == nil || f.Error.Code != code || string(f.Error.Data) != fmt.Sprintf(`{"uri":%q}`, uri) {
				t.Errorf("%s%s: got %+v", uri, params, f.Error)
			}
		}
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":5}}`)
	if f := p.next(); f.Error == nil || f.Error.Data != nil {
		t.Errorf("a URI that is no text: %+v", f.Error)
	}
}

// TestPlainErrors: an error speaks of what was asked for.
func TestPlainErrors(t *testing.T) {
	p := connect(t, build(t, nil))
	for _, tc := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"nope"}`, `there is no tool "nope"; there are run_python, search_tools and ` +
			`read_output`},
		{"tools/list", `{"cursor":"****"}`, "the cursor was not issued by this server: leave it out to start " +
			"with the first page"},
		{"resources/list", `{"cursor":"****"}`, "the cursor was not issued by this server: leave it out to start " +
			"with the first page"},
	} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, tc.method, tc.params)
		if f := p.next(); f.Error == nil || f.Error.Code != -32602 || f.Error.Message != tc.want {
			t.Errorf("%s: got %+v", tc.method, f.Error)
		}
	}
}
