package bridge

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

var argumentCases = []struct {
	name, args string
	want       string // part of the error; "" when the arguments are good
	servers    []string
	timeout    time.Duration
}{
	{"plain", `{"code":"print(1)"}`, "", []string{"My Files!", "broken", "github"}, 30 * time.Second},
	{"null is absent", `{"code":"x","servers":null,"timeout":null}`, "",
		[]string{"My Files!", "broken", "github"}, 30 * time.Second},
	{"no servers", `{"code":"x","servers":[]}`, "", []string{}, 30 * time.Second},
	{"by name, alias and prefix, each once", `{"code":"x","servers":["github","my_files_","mcp_github","My ` +
		`Files!"]}`, "", []string{"My Files!", "github"}, 30 * time.Second},
	{"fraction", `{"code":"x","timeout":0.25}`, "", []string{"My Files!", "broken", "github"},
		250 * time.Millisecond},
	{"tiny", `{"code":"x","timeout":1e-12,"servers":[]}`, "", []string{}, time.Millisecond},
	{"float", `{"code":"x","timeout":5.0,"servers":[]}`, "", []string{}, 5 * time.Second},
	{"in a string", `{"code":"x","timeout":"1.5","servers":[]}`, "", []string{}, 1500 * time.Millisecond},
	{"clamped", `{"code":"x","timeout":500,"servers":[]}`, "", []string{}, 120 * time.Second},
	{"clamped from beyond a Duration", `{"code":"x","timeout":1e300,"servers":[]}`, "", []string{},
		120 * time.Second},

	{"nothing", ``, `argument "code" is missing; pass the Python source`, nil, 0},
	{"null", `null`, `argument "code" is missing`, nil, 0},
	{"list", `["print(1)"]`, `must be an object such as {"code": "…"}, not a list`, nil, 0},
	{"string", `"print(1)"`, `not a string`, nil, 0},
	{"cut short", `{"code":"0"`, `no valid JSON`, nil, 0},
	{"code null", `{"code":null}`, `argument "code" is missing`, nil, 0},
	{"code blank", `{"code":" \n\t"}`, `argument "code" is empty`, nil, 0},
	{"code too long", `{"code":"` + strings.Repeat("x", sandbox.MaxCode+1) + `"}`,
		`argument "code" is 4194305 bytes long`, nil, 0},
	{"code a list", `{"code":["x"]}`, `argument "code" must be a string with Python source, not a list`, nil, 0},
	{"unknown argument", `{"code":"x","server":["github"]}`,
		`no argument "server" (did you mean "servers"?); it takes code, servers and timeout`, nil, 0},
	{"unknown argument like none", `{"code":"x","language":"js"}`,
		`no argument "language"; it takes code, servers and timeout`, nil, 0},
	{"a long unknown name", `{"code":"x","` + strings.Repeat("\x7f", 5000) + `":1}`, `no argument "\x7f\x7f`,
		nil, 0},
	{"a long unknown server", `{"code":"x","servers":["` + strings.Repeat("\x7f", 5000) + `"]}`,
		`no server "\x7f\x7f`, nil, 0},
	{"case counts", `{"Code":"x"}`, `no argument "Code" (did you mean "code"?)`, nil, 0},
	{"twice", `{"code":"x","code":"y"}`, `argument "code" is given twice`, nil, 0},
	{"servers a string", `{"code":"x","servers":"github"}`,
		`must be a list of server names such as ["github"], not a string`, nil, 0},
	{"servers an object", `{"code":"x","servers":{"github":true}}`, `not an object`, nil, 0},
	{"servers of numbers", `{"code":"x","servers":[1]}`, `but holds a number`, nil, 0},
	{"servers with null", `{"code":"x","servers":["github",null]}`, `but holds null`, nil, 0},
	{"unknown server", `{"code":"x","servers":["githib"]}`,
		`there is no server "githib" (did you mean "github"?); there are: "My Files!", "broken", "github"`, nil, 0},
	{"unusable server", `{"code":"x","servers":["linear"]}`,
		`server "linear" is configured in /home/u/.cursor/mcp.json but can't be used: remote servers are not ` +
			`supported yet. Next: use its stdio variant`, nil, 0},
	{"empty name", `{"code":"x","servers":[""]}`, `there is no server ""`, nil, 0},
	{"timeout zero", `{"code":"x","timeout":0}`, `"timeout" must be a positive number of seconds such as 30, ` +
		`not 0`, nil, 0},
	{"timeout negative", `{"code":"x","timeout":-1}`, `not -1`, nil, 0},
	{"timeout too large for a float", `{"code":"x","timeout":1e999}`, `not 1e999`, nil, 0},
	{"timeout a word", `{"code":"x","timeout":"soon"}`, `not "soon"`, nil, 0},
	{"timeout NaN", `{"code":"x","timeout":"NaN"}`, `not "NaN"`, nil, 0},
	{"timeout a bool", `{"code":"x","timeout":true}`, `not true`, nil, 0},
	{"timeout a list", `{"code":"x","timeout":[1]}`, `not [1]`, nil, 0},
}

func TestArguments(t *testing.T) {
	b := build(t, nil)
	for _, tc := range argumentCases {
		t.Run(tc.name, func(t *testing.T) {
			a, err := b.decoder.decode(b.Catalog(), json.RawMessage(tc.args))
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 4000 {
					t.Fatalf("got %v, want an error with %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.servers, catalog.Names(a.servers)); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if a.timeout != tc.timeout {
				t.Errorf("timeout %v, want %v", a.timeout, tc.timeout)
			}
			if clamped := strings.HasPrefix(tc.name, "clamped"); clamped != (a.clamped != "") {
				t.Errorf("clamped: %q", a.clamped)
			}
		})
	}
}

// TestArgumentErrorsAreToolErrors: a model sees the text of a tool error, and of a JSON-RPC error
// not always all.
func TestArgumentErrorsAreToolErrors(t *testing.T) {
	p := connect(t, build(t, nil))
	for _, tc := range argumentCases {
		// these come no further than mcp-go
		if tc.want == "" || tc.args == "" || tc.name == "timeout too large for a float" || tc.name == "cut short" {
			continue
		}
		res := p.call(tc.args)
		if !res.IsError || !strings.HasPrefix(res.Content[0].Text, "status: validation_error — ") ||
			!strings.Contains(res.Content[0].Text, tc.want) {
			t.Errorf("%s: got %+v", tc.name, res)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python"}}`)
	if res := p.next().tool(t); !res.IsError || !strings.Contains(res.Content[0].Text, `"code" is missing`) {
		t.Errorf("no arguments: got %+v", res)
	}
	if res := p.call(`{"code":"ok\n","timeout":500}`); res.IsError ||
		res.Content[0].Text != "ok\n[timeout: 500 s is longer than this server allows; the run had 120 s]" {
		t.Errorf("clamped: got %+v", res)
	}
}

func TestNoServersAtAll(t *testing.T) {
	b := build(t, func(c *Config) { c.Servers = nil })
	_, err := b.decoder.decode(b.Catalog(), json.RawMessage(`{"code":"x","servers":["github"]}`))
	if err == nil || !strings.Contains(err.Error(), "`mcp-bridge servers` shows") {
		t.Errorf("got %v", err)
	}
}

func FuzzArguments(f *testing.F) {
	if len(argumentCases) == 0 {
		f.Fatal("no seeds")
	}
	for _, tc := range argumentCases {
		f.Add([]byte(tc.args))
	}
	b := build(f, nil)
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := b.decoder.decode(b.Catalog(), raw)
		if err != nil {
			if msg := err.Error(); msg == "" || len(msg) > 4000 {
				t.Errorf("a message of %d bytes", len(msg))
			}
			return
		}
		if strings.TrimSpace(a.code) == "" || a.timeout <= 0 || a.timeout > b.limits.MaxTimeout ||
			a.timeout == math.MaxInt64 {
			t.Errorf("accepted %q as %+v", raw, a)
		}
		if !json.Valid(raw) {
			t.Errorf("accepted %q", raw)
		}
	})
}
