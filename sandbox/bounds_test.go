package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestArgumentsUnderWayAreBounded: calls without an answer hold a bounded part of the host's memory
// and no more.
func TestArgumentsUnderWayAreBounded(t *testing.T) {
	var held, most atomic.Int64
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		n := held.Add(int64(len(c.Input)))
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{
		Code: `
import asyncio
async def one():
    try:
        await mcp_shop.echo(text="x" * 10_000_000)
    except Exception as e:
        return e.code
tasks = [asyncio.ensure_future(one()) for _ in range(12)]
done, _ = await asyncio.wait(tasks, timeout=30, return_when=asyncio.FIRST_COMPLETED)
print({t.result() for t in done})
`,
		Timeout: time.Minute, Providers: shop("echo"),
	}, host)
	if err != nil || r.Stdout() != "{'call_limit'}\n" {
		t.Errorf("got %q, %s, %v", r.Stdout(), r.Status, err)
	}
	if most.Load() > 64<<20 {
		t.Errorf("%d bytes of arguments were held", most.Load())
	}
}

// TestTooMuchForAFrame: what can't be sent is an error, not a timeout.
func TestTooMuchForAFrame(t *testing.T) {
	_, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{Code: "'" + strings.Repeat("\x01",
		3<<20) + "'", Timeout: 20 * time.Second}, hostFunc(echo))
	if err == nil || !strings.Contains(err.Error(), "can't be sent") {
		t.Errorf("got %v", err)
	}
}

// TestFloodOfCalls: a guest in other hands that makes calls beyond all limits costs the host no
// more than those.
func TestFloodOfCalls(t *testing.T) {
	var flood strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&flood, `{"type":"tool_call","callId":"%d","providerName":"%s","safeToolName":"t"}`+"\n", i,
			entrypoint.RuntimeProvider)
	}
	fmt.Fprintf(&flood, `{"type":"tool_call","callId":"%s","providerName":"p","safeToolName":"t"}`+"\n",
		strings.Repeat("x", 1000))
	flood.WriteString(`{"type":"done","id":"r","ok":true,"durationMs":1,"wait":{"exited":true,"status":0}}`)
	s, err := sandbox.New(scripted{before: ready, after: flood.String()}, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var calls atomic.Int64
	_, err = s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute},
		hostFunc(func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
			calls.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	if err != nil || calls.Load() > 64 {
		t.Errorf("got %d answered at once, %v", calls.Load(), err)
	}
}

// TestFullDiskSaysWhatToDo: a full tmpfs is an exception like another, but the code can't know how
// small the places are.
func TestFullDiskSaysWhatToDo(t *testing.T) {
	r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{Code: "raise OSError(28, 'No space left on " +
		"device')", Timeout: 20 * time.Second}, hostFunc(echo))
	if err != nil || r.Status != sandbox.StatusError || !strings.Contains(r.Message, "/workspace (128 MiB)") {
		t.Errorf("got %s, %q, %v", r.Status, r.Message, err)
	}
}
