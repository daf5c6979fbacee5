package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// callsLater has a process of the code's own call a tool by the pipe of its call, once a file is
// there, and make another file then.
const callsLater = `
import gc, json, os, time
from guest.link import Link
link = next(one for one in gc.get_objects() if type(one) is Link)
if not os.fork():
    while not os.path.exists(%[1]q + '/go'):
        time.sleep(0.001)
    call = {'type': 'tool_call', 'callId': '77', 'providerName': 'shop', 'safeToolName': 'echo',
            'input': {'text': 'later'}}
    os.write(link.fd, json.dumps(call, separators=(',', ':')).encode() + b'\n')
    open(%[1]q + '/called', 'w').close()
    os._exit(0)
`

// TestKeptCallsNoToolBetween: what processes that run on between calls send as a call of a tool
// reaches no host: not between calls, and not in the next one, whether that is of code or not.
func TestKeptCallsNoToolBetween(t *testing.T) {
	var calls atomic.Int64
	host := hostFunc(func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
		calls.Add(1)
		return echo(ctx, c)
	})
	k, err := newSandbox(t, nil).Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour, Running: true})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // it has none to give
	run := func(code string) sandbox.Result {
		t.Helper()
		request := sandbox.Request{Code: code, Timeout: 20 * time.Second, Providers: shop("echo")}
		r, err := k.Run(t.Context(), request, host)
		if err != nil || r.Status != sandbox.StatusOK {
			t.Fatalf("%s: %+v, %v", code, r, err)
		}
		return r
	}
	for _, between := range []bool{true, false} {
		dir := t.TempDir()
		run(fmt.Sprintf(callsLater, dir))
		if err := os.Mkdir(filepath.Join(dir, "go"), 0o700); err != nil {
			t.Fatal(err)
		}
		waitFor(t, filepath.Join(dir, "called"))
		if between {
			if err := k.WriteFile(t.Context(), filepath.Join(dir, "f"), nil); err != nil {
				t.Fatal(err)
			}
		}
		run("print(1)")
		if n := calls.Load(); n != 0 {
			t.Fatalf("%d calls have reached the host", n)
		}
	}
	if r := run("print(mcp_shop.echo(text='now'))"); r.Stdout() != "now\n" || calls.Load() != 1 {
		t.Errorf("a call of the code's: %q, %d calls", r.Stdout(), calls.Load())
	}
}

// waitFor waits until there is a file.
func waitFor(t *testing.T, path string) {
	t.Helper()
	for late := time.After(20 * time.Second); ; {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("there is no %s", path)
		case <-time.After(time.Millisecond):
		}
	}
}
