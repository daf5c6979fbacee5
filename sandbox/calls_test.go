package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestProgress: the code hears how far its call is, in order, all of it before the value; a call
// that doesn't ask is told nothing.
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
print(` + call + `.options(progress=seen)(text="value"), len(heard) < 100, heard == sorted(heard,
	key=lambda h: h[0]), heard[-1])
print(` + call + `(text="unasked"))
`,
			Timeout: 20 * time.Second, Providers: shop("echo"),
		}, host)
		if want := "value True True (20000, None, None)\nunasked\n"; err != nil || r.Stdout() != want {
			t.Errorf("%s: got %q, %s %s, %v", call, r.Stdout(), r.Status, r.Message, err)
		}
	}
}

// TestProgressWaitsForTheCode: progress of calls whose code reads nothing fills neither the guest
// nor the host, holds up no other call, and ends with its own.
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
	s := newSandbox(t, nil)
	r, err := s.Run(t.Context(), sandbox.Request{Code: code, Timeout: 20 * time.Second, Providers: shop("echo")},
		host)
	held := 0
	if _, scan := fmt.Sscanf(r.Stdout(), "%d KiB", &held); scan != nil || err != nil ||
		r.Status != sandbox.StatusOK {
		t.Fatalf("got %q, %s %s, %v", r.Stdout(), r.Status, r.Message, err)
	}
	if held > 40<<10 { // 16 MiB that the host sends, and what Python takes to hold them
		t.Errorf("the supervisor holds %d KiB more than before", held)
	}
}

// TestProgressWithoutEndToADeafGuest: a guest that reads nothing blocks no report.
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
	e := erratic{deaf: true, end: "wait", script: []string{ready,
		`{"type":"tool_call","callId":"1","providerName":"shop","safeToolName":"echo","progress":true}`}}
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

// TestCallsAreCancelled: when the code's await of a call ends, however it does, the call's context
// does, and the run goes on.
func TestCallsAreCancelled(t *testing.T) {
	for _, tt := range []struct{ name, code string }{
		{"task.cancel", `
call = asyncio.ensure_future(mcp_shop.hang())
await asyncio.sleep(0.1)
call.cancel()
`},
		{"wait_for", `
try: await asyncio.wait_for(mcp_shop.hang(), 0.1)
except asyncio.TimeoutError: pass
`},
		{"options(timeout=…), awaited", `
try: await mcp_shop.hang.options(timeout=0.1)()
except TimeoutError: pass
`},
		{"options(timeout=…), in a thread", `
def late():
    try: mcp_shop.hang.options(timeout=0.1)()
    except TimeoutError: pass
await asyncio.to_thread(late)
`},
		{"a loop that ends", `
async def main(): asyncio.ensure_future(mcp_shop.hang()); await asyncio.sleep(0.1)
await asyncio.to_thread(lambda: asyncio.run(main()))
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ended := make(chan error, 1)
			host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
				if c.Tool != "hang" {
					select {
					case err := <-ended:
						ended <- err
						return echo(ctx, c)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				<-ctx.Done()
				ended <- ctx.Err()
				return json.RawMessage(`{"content":[{"type":"text","text":"too late"}]}`), nil
			})
			r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{
				Code: "import asyncio\n" + tt.code + "print(await mcp_shop.echo(text='on'))", Timeout: 20 * time.Second,
				Providers: shop("echo", "hang"),
			}, host)
			if err != nil || r.Stdout() != "on\n" || r.Status != sandbox.StatusOK {
				t.Errorf("got %q, %s %s, %v", r.Stdout(), r.Status, r.Message, err)
			}
		})
	}
}

// TestFloodOfCancels: a guest in other hands that cancels all there is and isn't, before, during
// and after, has each of its calls answered exactly once and costs the host nothing else.
func TestFloodOfCancels(t *testing.T) {
	flood := []string{ready}
	for i := range 200 {
		for j := range 50 {
			flood = append(flood, fmt.Sprintf(`{"type":"tool_cancel","callId":"%d"}`, i+j))
		}
		flood = append(flood, fmt.Sprintf(`{"type":"tool_call","callId":"%d","providerName":"shop",`+
			`"safeToolName":"t"}`, i))
	}
	for i := range 200 {
		flood = append(flood, strings.Repeat(fmt.Sprintf(`{"type":"tool_cancel","callId":"%d"}`+"\n", i), 3))
	}
	p := &answered{script: flood, calls: 200, ids: map[string]int{}}
	s, err := sandbox.New(p, config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: "1", Timeout: time.Minute, Providers: shop("t")},
		hostFunc(
			func(ctx context.Context, _ sandbox.Call) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))
	if err != nil || r.Status != sandbox.StatusOK {
		t.Errorf("got %s %s, %v", r.Status, r.Message, err)
	}
	s.Close() // waits for the container, which still counts
	for id, n := range p.ids {
		if n != 1 {
			t.Errorf("call %s was answered %d times", id, n)
		}
	}
	if len(p.ids) != 200 {
		t.Errorf("%d calls were answered", len(p.ids))
	}
}

// answered is an engine whose container says its script, and is done once it has heard as many
// answers.
type answered struct {
	runtimetest.Local
	script []string
	calls  int
	ids    map[string]int // answers by call; all of them cancelled
}

func (a *answered) Run(_ context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return runtime.Exit{}, err
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		for _, line := range a.script {
			_, _ = io.WriteString(std.Stdout, line+"\n")
		}
	}()
	for len(a.ids) < a.calls {
		var f entrypoint.ToolResult
		line, err := in.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &f) != nil {
			return runtime.Exit{}, fmt.Errorf("after %d answers: %q, %w", len(a.ids), line, err)
		}
		if f.Type == entrypoint.TypeToolResult && f.Error != nil && f.Error.Code == entrypoint.CodeCancelled {
			a.ids[f.CallID]++
		}
	}
	<-said
	_, _ = io.WriteString(std.Stdout,
		`{"type":"done","id":"r","ok":true,"durationMs":1,"wait":{"exited":true,"status":0}}`+"\n")
	for { // what the host has sent by then is counted too
		var f entrypoint.ToolResult
		line, err := in.ReadBytes('\n')
		if err != nil {
			return runtime.Exit{}, nil
		}
		if json.Unmarshal(line, &f) == nil && f.Type == entrypoint.TypeToolResult {
			a.ids[f.CallID]++
		}
	}
}

// TestTimeoutNamesWhatItWaitedFor: who was out of time learns of the call that had no answer, and
// of no other.
func TestTimeoutNamesWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		if c.Tool == "echo" {
			return echo(ctx, c)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	r, err := newSandbox(t, nil).Run(t.Context(), sandbox.Request{
		Code: "mcp_shop.echo(text='a')\nmcp_shop.slow()", Timeout: 5 * time.Second, Providers: shop("echo", "slow"),
	}, host)
	want := regexp.MustCompile(`^The code was stopped after 5s, its time limit, ` +
		`while it waited for mcp_shop\.slow \(\d\.\ds\)\.$`)
	if err != nil || r.Status != sandbox.StatusTimeout || r.ExitCode != -1 || !want.MatchString(r.Message) {
		t.Errorf("got %s %d %q, %v, want %s", r.Status, r.ExitCode, r.Message, err, want)
	}
}
