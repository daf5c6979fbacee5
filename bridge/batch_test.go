package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestBatch: a client of 2025-03-26 may send several messages in one, and has their answers in one.
// No other client may.
func TestBatch(t *testing.T) {
	started, ended := make(chan string, 1), make(chan string, 1)
	hangs := untilCancelled(started, ended)
	b := running(t, func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error) {
		if r.Code == "hang" {
			return hangs(ctx, r, h)
		}
		return printed(r.Code), nil
	})
	for _, tc := range []struct{ version, batch, want string }{
		{"2025-03-26", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},` +
			`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"run_python","arguments":{"code":"x"}}},{"jsonrpc":"2.0","id":3,"method":"nope"},5]`,
			`"b":result 1:result 3:-32601 null:-32600`},
		{"2025-03-26", ` [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"hang"}}},` +
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, `2:result`},
		{"2025-03-26", `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, ""},
		{"2025-03-26", `[]`, "one null:-32600"},
		{"2025-03-26", `[`, "one null:-32700"},
		{"2025-03-26", `[` + strings.Repeat(`1,`, client.MaxRequests) + `1]`, "one null:-32600"},
		{"2025-06-18", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "one null:-32600"},
	} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- b.Serve(t.Context(), inR, outW) }()
		d := json.NewDecoder(outR)
		read := func() (raw json.RawMessage) {
			if err := d.Decode(&raw); err != nil {
				t.Fatal(err)
			}
			return raw
		}
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{}}}`+"\n", tc.version)
		read()
		fmt.Fprintf(inW, "%s\n", tc.batch)
		if got := answers(t, tc.want, read); got != tc.want {
			t.Errorf("%.80s: got %s, want %s", tc.batch, got, tc.want)
		}
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":"after","method":"ping"}`)
		if got := string(read()); !strings.Contains(got, `"after"`) {
			t.Errorf("after %.80s came %s", tc.batch, got)
		}
		inW.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// answers reads a line and says what answers are in it.
func answers(t *testing.T, want string, read func() json.RawMessage) string {
	t.Helper()
	if want == "" {
		return ""
	}
	line, one := read(), ""
	if line[0] != '[' {
		line, one = json.RawMessage("["+string(line)+"]"), "one "
	}
	var frames []frame
	if err := json.Unmarshal(line, &frames); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	var got []string
	for _, f := range frames {
		said := "result"
		if f.Error != nil {
			said = fmt.Sprint(f.Error.Code)
		}
		got = append(got, string(f.ID)+":"+said)
	}
	slices.Sort(got)
	return one + strings.Join(got, " ")
}
