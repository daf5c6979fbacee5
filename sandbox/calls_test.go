package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestProgress: the code hears how far its call is, in order, all of it before the value; a call that doesn't ask has nobody to tell.
func TestProgress(t *testing.T) {
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		if c.Progress == nil {
			return echo(ctx, c)
		}
		total := 20_000.0
		for i := range 20_000 { // faster than it can be passed on
			c.Progress(sandbox.Progress{Progress: float64(i), Total: &total, Message: "going"})
		}
		c.Progress(sandbox.Progress{Progress: total})
		return echo(ctx, c)
	})
	for _, call := range []string{"mcp_shop.echo", "await mcp_shop.echo"} {
		r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{
			Code: `
heard = []
def seen(progress, total, message):
    heard.append((progress, total, message))
print(` + call + `.options(progress=seen)(text="value"), len(heard) < 100, heard == sorted(heard, key=lambda h: h[0]), heard[-1])
print(` + call + `(text="unasked"))
`,
			Timeout: 20 * time.Second, Providers: shop("echo"),
		}, host)
		if want := "value True True (20000, None, None)\nunasked\n"; err != nil || r.Stdout() != want {
			t.Errorf("%s: got %q, %s %s, %v", call, r.Stdout(), r.Status, r.Message, err)
		}
	}
}

// TestProgressWaitsForTheCode: progress of calls whose code reads nothing fills neither the guest nor the host, holds up no other
// call, and ends with its own.
func TestProgressWaitsForTheCode(t *testing.T) {
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-tick.C:
				c.Progress(sandbox.Progress{Progress: 1, Message: strings.Repeat("x", 1000)})
			}
		}
	})
	code := `
import os, time
link = max(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}"))
for call in range(1, 601):
    os.write(link, b'{"type":"tool_call","callId":"%d","providerName":"shop","safeToolName":"echo","progress":true}\n' % call)
def held():
    status = open(f"/proc/{os.getppid()}/status").read()
    return int(status.split("VmRSS:")[1].split()[0])
before = held()
time.sleep(4)
print(held() - before, "KiB")
`
	s := newSandbox(t, func(c *sandbox.Config) { c.Concurrency = 600 })
	r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: 20 * time.Second, Providers: shop("echo")}, host)
	held := 0
	if _, scan := fmt.Sscanf(r.Stdout(), "%d KiB", &held); scan != nil || err != nil || r.Status != sandbox.StatusOK {
		t.Fatalf("got %q, %s %s, %v", r.Stdout(), r.Status, r.Message, err)
	}
	if held > 40<<10 { // 16 MiB that the host sends, and what Python takes to hold them
		t.Errorf("the supervisor holds %d KiB more than before", held)
	}
}

// TestProgressWithoutEndToADeafGuest: a guest that reads nothing blocks nobody who reports.
func TestProgressWithoutEndToADeafGuest(t *testing.T) {
	told := make(chan struct{})
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		for i := range 100_000 {
			c.Progress(sandbox.Progress{Progress: float64(i), Message: strings.Repeat("x", 1000)})
		}
		close(told)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	e := erratic{deaf: true, end: "wait", script: []string{ready, `{"type":"tool_call","callId":"1","providerName":"shop","safeToolName":"echo","progress":true}`}}
	s, err := sandbox.New(e, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-told
		cancel()
	}()
	r, err := s.Run(ctx, sandbox.Request{Code: "1", Timeout: time.Minute, Providers: shop("echo")}, host)
	if err != nil || r.Status != sandbox.StatusCancelled {
		t.Errorf("got %s, %v", r.Status, err)
	}
	<-told
}
