package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
)

// TestBatch: a client of 2025-03-26 may send several messages in one, and has their answers in one.
// No other client may.
func TestBatch(t *testing.T) {
	const pings = `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0",` +
		`"method":"notifications/initialized"},` +
		`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"run_python",` +
		`"arguments":{"code":"x"}}},5]`
	for _, tc := range []struct {
		version, batch string
		want           []string // in the one line that answers it
	}{
		{"2025-03-26", pings, []string{`[{"`, `"id":1,"result"`, `"id":"b","result"`, `"id":null,"error"`}},
		{"2025-03-26", `[]`, []string{`"id":null`, `"code":-32600`}},
		{"2025-03-26", `[` + strings.Repeat(`1,`, client.MaxRequests) + `1]`,
			[]string{`"id":null`, `"code":-32600`}},
		{"2025-06-18", pings, []string{`{"jsonrpc":"2.0","id":null`, `"code":-32600`}},
	} {
		var out strings.Builder
		in := fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,`+
			`"capabilities":{}}}`+
			"\n%s\n", tc.version, tc.batch)
		if err := build(t, nil).Serve(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		answer := lines[0] // the two may come in either order
		if strings.Contains(answer, `"id":0`) {
			answer = lines[len(lines)-1]
		}
		for _, want := range tc.want {
			if len(lines) != 2 || !strings.Contains(answer, want) {
				t.Errorf("%s: %.80s: got %s, want %s", tc.version, tc.batch, answer, want)
			}
		}
	}
}

// TestRefusedInitialize: one that is refused changes nothing of what the client may send.
func TestRefusedInitialize(t *testing.T) {
	started := make(chan string, 1)
	p := connect(t, running(t, untilCancelled(started, make(chan string, 1))))
	p.run(1, `{"code":"x"}`, "")
	<-started
	p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26",` +
		`"capabilities":{}}}`)
	p.send(`[{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	for range 2 {
		if f := p.next(); string(f.ID) != "null" || f.Error == nil || f.Error.Code != -32600 {
			t.Errorf("got %s, %s, %+v", f.ID, f.Result, f.Error)
		}
	}
}
