package sandbox_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// big answers every call with ten megabytes.
func big(t *testing.T) hostFunc {
	t.Helper()
	data, err := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text",
		"text": strings.Repeat("x", 10_000_000)}}})
	if err != nil {
		t.Fatal(err)
	}
	return func(context.Context, sandbox.Call) (json.RawMessage, error) { return data, nil }
}

// TestBigResultsThatWait: results that the code is slow to read, or doesn't read at all, wait with
// the host. Once they were pushed on to the guest, and 64 MiB of them ended the run.
func TestBigResultsThatWait(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{"all asked for at once", `
import asyncio
async def one():
    return len(await mcp_shop.echo(text="a"))
print(sum(await asyncio.gather(*(one() for _ in range(24)))))
`, "240000000\n"},
		{"read late", `
import json, os, time
link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in range(1, 25):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"echo","input":{}}\n' % call)
time.sleep(1)
answers = open(os.dup(link), "rb")
print(sum(len(json.loads(answers.readline())["result"]["content"][0]["text"]) for _ in range(24)))
`, "240000000\n"},
		{"never read", `
import os, time
link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in range(1, 25):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"echo","input":{}}\n' % call)
time.sleep(1)
print("over")
`, "over\n"},
	}
	s := newSandbox(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := s.Run(t.Context(), sandbox.Request{Code: tt.code, Timeout: time.Minute, Providers: shop("echo")},
				big(t))
			if err != nil || r.Stdout() != tt.want || r.Status != sandbox.StatusOK {
				t.Errorf("got %q, %s %s, %+v, %v", r.Stdout(), r.Status, r.Message, r.Error, err)
			}
		})
	}
}
