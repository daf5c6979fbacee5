package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// erratic is an engine whose container says what a script tells it to, in any order, whatever the
// host says, and then ends in one of several ways.
type erratic struct {
	runtimetest.Local
	script []string // lines, or "@wait" for a frame of the host
	deaf   bool     // it doesn't read what the host sends once the script is over
	end    string   // "exit", "error", "wait" for the context
	exit   runtime.Exit
}

func (e erratic) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return e.exit, nil
	}
	heard := make(chan struct{}, 1000)
	if !e.deaf {
		go func() {
			defer close(heard)
			for {
				if _, err := in.ReadBytes('\n'); err != nil {
					return
				}
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		}()
	}
	for _, line := range e.script {
		if line == "@wait" {
			select {
			case <-heard:
			case <-ctx.Done():
				return e.exit, nil
			case <-time.After(20 * time.Millisecond): // the host may have nothing to say
			}
			continue
		}
		if _, err := io.WriteString(std.Stdout, line+"\n"); err != nil {
			return e.exit, nil // the host listens no more
		}
	}
	switch e.end {
	case "error":
		return runtime.Exit{}, errors.New("the engine broke down")
	case "wait":
		<-ctx.Done()
		return e.exit, ctx.Err()
	}
	return e.exit, nil
}

// orderLines are what an order is made of: every guest's line of the transcripts, and such as are
// in none.
func orderLines(t *testing.T) []string {
	t.Helper()
	all, err := transcript.Load(os.DirFS("../entrypoint/testdata/transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var lines []string
	add := func(line string) {
		if len(line) < 1<<16 && !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	for _, tr := range all {
		for _, l := range tr.Lines {
			if l.From == transcript.Guest && l.Exit == nil {
				add(string(l.Sample()) + string(l.Raw))
			}
		}
	}
	if len(lines) < 20 {
		t.Fatalf("only %d different lines of a guest in the transcripts", len(lines))
	}
	for _, line := range []string{
		"", "null", "[]", "{}", `{"type":7}`, `{"type":"execute","id":"run-1","code":"1"}`,
		`{"type":"tool_result","callId":"1","ok":true}`,
		`{"type":"ready","protocol":99}`, `{"type":"ready","extra":["/host"]}`,
		`{"type":"taken","bytes":-1}`, `{"type":"taken","bytes":9223372036854775807}`,
		`{"type":"artifact","id":"run-1","name":"../x","mime":"text/plain","data":"!!","chunk":5,"of":2}`,
		`{"type":"artifact","id":"run-1","name":"x","mime":"text/plain","data":"eA==","chunk":1,"of":1000000}`,
		`{"type":"output","id":"run-1","stream":"stdin","text":"x"}`,
		`{"type":"output","id":"run-1","stream":"stdout","text":"` + strings.Repeat("y", 10_000) + `"}`,
		`{"type":"tool_call","callId":"","providerName":"shop","safeToolName":"echo"}`,
		`{"type":"tool_call","callId":"1","providerName":"nobody","safeToolName":"x","input":[]}`,
		`{"type":"tool_call","callId":"` + strings.Repeat("9",
			200) + `","providerName":"shop","safeToolName":"echo"}`,
		`{"type":"tool_cancel","callId":"1"}`, `{"type":"tool_cancel","callId":"77"}`, `{"type":"tool_cancel"}`,
		`{"type":"done","id":"run-1","ok":true}`, `{"type":"done","id":"run-1","ok":true,"wait":null,"error":null}`,
		`{"type":"done","id":"run-1","ok":true,"wait":{"exited":false,"status":0}}`,
		`{"type":"done","id":"run-1","ok":true,"wait":{"exited":true,"status":0,"signal":9}}`,
		`{"type":"done","id":"run-1","ok":false,"wait":{"exited":true,"status":3}}`,
		`{"type":"done","id":"run-1","ok":true,"durationMs":"x"}`,
		`{"type":"done","id":"run-1","ok":true,"wait":{"exited":true,"status":0},"error":{"code":"timeout",` +
			`"type":"T","message":"` + strings.Repeat("z", 100_000) + `"}}`,
	} {
		add(line)
	}
	return append(lines, "@wait", "@wait", "@wait")
}

// TestAnyOrderOfFrames plays random orders of legal and illegal frames: whatever a guest sends,
// there is one outcome, it is ok only where a done of this run said so with waitpid's word, nothing
// is left running, and what it can make the host hold is bounded.
func TestAnyOrderOfFrames(t *testing.T) {
	lines := orderLines(t)
	rounds := 300
	if testing.Short() { // each waits for what the host may say
		rounds = 80
	}
	var before goruntime.MemStats
	goruntime.ReadMemStats(&before)
	var mu sync.Mutex
	statuses := map[sandbox.Status]int{}
	var wg sync.WaitGroup
	for worker := range 8 { // most of the time is spent waiting
		wg.Go(func() {
			for seed := worker; seed < rounds; seed += 8 {
				e, timeout := randomOrder(uint64(seed), lines)
				got, err := playOrder(t, e, timeout)
				mu.Lock()
				if err != nil {
					statuses["none"]++
				} else {
					statuses[got.Status]++
				}
				mu.Unlock()
				if why := impossible(e, got); err == nil && why != "" {
					t.Errorf("seed %d: %s: %s %q after\n%.4000s", seed, why, got.Status, got.Message,
						strings.Join(e.script, "\n"))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d orders came to %v", rounds, statuses)
	if statuses[sandbox.StatusOK] == 0 || statuses[sandbox.StatusTimeout] == 0 || statuses["none"] == 0 ||
		len(statuses) < 6 {
		t.Errorf("the orders are too much alike: %v", statuses)
	}
	var after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MiB are held after the runs", grown>>20)
	}
}

// randomOrder is the same for the same seed.
func randomOrder(seed uint64, lines []string) (erratic, time.Duration) {
	r := rand.New(rand.NewPCG(seed, 6)) //nolint:gosec // to be the same each time
	e := erratic{deaf: r.IntN(8) == 0, end: []string{"exit", "exit", "error", "wait"}[r.IntN(4)]}
	e.exit = runtime.Exit{Code: []int{0, 1, 65, 66, 67, 70, 137, -1}[r.IntN(8)], OOMKilled: r.IntN(10) == 0}
	if r.IntN(10) > 0 {
		e.script = append(e.script, ready)
	}
	for range r.IntN(40) {
		e.script = append(e.script, lines[r.IntN(len(lines))])
	}
	return e, time.Duration(20+r.IntN(100)) * time.Millisecond
}

func playOrder(t *testing.T, e erratic, timeout time.Duration) (sandbox.Result, error) {
	t.Helper()
	cfg := config()
	cfg.StartTimeout = 100 * time.Millisecond
	s, err := sandbox.New(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Run(t.Context(), sandbox.Request{ID: "run-1", Code: "1", Timeout: timeout, Providers: shop("echo")},
		hostFunc(
			func(ctx context.Context, c sandbox.Call) (json.RawMessage, error) {
				if c.ID == "1" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return json.RawMessage(fmt.Sprintf(`{"content":[],"id":%q}`, c.ID)), nil
			}))
}

// impossible says what of a result can't follow from the script; "" when all of it can.
func impossible(e erratic, got sandbox.Result) string {
	var first *entrypoint.FromGuest // done after the code was sent
	sent := false
	for _, line := range e.script {
		var f entrypoint.FromGuest
		if json.Unmarshal([]byte(line), &f) != nil {
			continue
		}
		sent = sent || f.Type == entrypoint.TypeReady
		if sent && f.Type == entrypoint.TypeDone && f.ID == "run-1" {
			first = &f
			break
		}
	}
	ended := first != nil && first.Wait != nil && first.Wait.Exited && first.Wait.Status == 0 &&
		first.Wait.Signal == 0
	size := 0
	for _, c := range got.Output {
		size += len(c.Text)
	}
	switch {
	case got.Status == "":
		return "there is no status"
	case got.Status == sandbox.StatusOK && !ended:
		return "it is ok, and no done said that the code exited with 0"
	case got.Status == sandbox.StatusOK && first.Error != nil && first.Error.Type != "":
		return "it is ok, and done told of an exception"
	case got.Status == sandbox.StatusOK && (got.ExitCode != 0 || got.Signal != 0 || got.Message != ""):
		return fmt.Sprintf("it is ok with code %d, signal %d", got.ExitCode, got.Signal)
	case got.Status != sandbox.StatusOK && got.Message == "":
		return "nothing says why"
	case size > 300<<10:
		return fmt.Sprintf("%d bytes of output were kept", size)
	}
	return ""
}
