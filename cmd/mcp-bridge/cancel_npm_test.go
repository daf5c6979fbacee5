//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sent reads what a server was sent: the ids of its calls, and of those that it was told to stop.
func sent(t *testing.T, log string) (calls, stopped []string) {
	t.Helper()
	f, err := os.Open(log)
	must(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var m struct {
			ID     any
			Method string
			Params struct{ RequestID any }
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue // the last line, of which half is there
		}
		id, _ := m.ID.(string)
		of, _ := m.Params.RequestID.(string)
		switch m.Method {
		case "tools/call":
			calls = append(calls, id)
		case "notifications/cancelled":
			stopped = append(stopped, of)
		}
	}
	return calls, stopped
}

// TestRealServerHearsOfTheEnd: what a real server says of its progress reaches the client's token,
// and the server is told to stop the call when the client cancels the run, and when the run's time
// is up.
func TestRealServerHearsOfTheEnd(t *testing.T) {
	needTime(t)
	servers, _ := realServers(t, npm(t))
	log := filepath.Join(t.TempDir(), "sent")
	real := servers["everything"]
	real.Command, real.Args = "/bin/sh", []string{"-c", `tee "$0" | "$1"`, log, real.Command}
	c := serve(t, command(t, map[string]entry{"everything": real}))
	for i, tt := range []struct {
		name    string
		timeout int
		cancel  bool
	}{{"the client cancels", 100, true}, {"the time is up", 20, false}} {
		t.Run(tt.name, func(t *testing.T) {
			id, answer := c.start("tools/call", map[string]any{"name": "run_python",
				"_meta": map[string]any{"progressToken": tt.name}, "arguments": map[string]any{
					"code": "mcp_everything.trigger_long_running_operation(duration=90, steps=180)", "timeout": tt.timeout,
					"servers": []string{"everything"}}})
			deadline := time.After(2 * time.Minute)
			for reported := false; !reported; {
				select {
				case m := <-c.notes:
					reported = m.Method == "notifications/progress" && strings.Contains(string(m.Params), tt.name) &&
						strings.Contains(string(m.Params), "everything.trigger-long-running-operation: ")
				case m := <-answer:
					t.Fatalf("it ended before it was reported on: %s", m.Result)
				case <-deadline:
					t.Fatal("nothing is reported")
				}
			}
			if tt.cancel {
				c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled",
					"params": map[string]any{"requestId": id}})
			}
			withinTime(t, time.Minute, "it was told to stop the call", func() bool {
				calls, stopped := sent(t, log)
				return len(calls) == i+1 && len(stopped) == i+1 && calls[i] == stopped[i] && calls[i] != ""
			})
		})
	}
}
