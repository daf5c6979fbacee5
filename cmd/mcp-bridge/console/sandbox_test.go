package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

// TestSandboxRows: a sandbox that several bridges could wake is listed once, and not where one has
// it; one that is saved has a size.
func TestSandboxRows(t *testing.T) {
	row := func(id string, size int64, busy bool, pid int) sandboxRow {
		status := "active"
		if size > 0 {
			status = "hibernated"
		}
		return sandboxRow{bridge.UserSandbox{ID: id, Status: status, Template: "base", Size: size, Busy: busy,
			Calls: 2, Used: time.Now().Add(-3 * time.Hour)}, pid}
	}
	var got [][]string
	for _, r := range eachOnce([]sandboxRow{
		row("k7f2", 0, false, 1), row("saved", 1536, false, 1), row("woken", 10, false, 1),
		row("woken", 0, true, 2), row("k7f2", 0, false, 2), row("saved", 1536, false, 2),
	}) {
		got = append(got, r.cells())
	}
	want := [][]string{
		{"k7f2", "", "active", "base", "2", "3 hours ago", "1"},
		{"saved", "", "hibernated, 1.5KiB", "base", "2", "3 hours ago", "1"},
		{"woken", "", "active", "base", "2", "now", "2"},
		{"k7f2", "", "active", "base", "2", "3 hours ago", "2"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for file, want := range map[string]bool{"k7f2:a": true, "k7f2mq4d:/a": true, "C:/a": false,
		"a/bcde:f": false, "k7f2:": false} {
		if _, _, is := of(file); is != want {
			t.Errorf("%s: %v", file, is)
		}
	}
}

// TestInterruptedLine: Ctrl-C at a command of sandbox shell ends the command, and the program only
// where none runs.
func TestInterruptedLine(t *testing.T) {
	var said bytes.Buffer
	c := &Client{Streams: &terminal.Streams{Out: terminal.New(io.Discard), Err: terminal.New(&said)},
		Interrupts: new(Interrupts)}
	call := func(ctx context.Context, _ string, _ map[string]any, _ any) (failed bool, err error) {
		if !c.Interrupts.Takes(os.Interrupt) || c.Interrupts.Takes(syscall.SIGTERM) {
			t.Error("SIGINT isn't the command's, or SIGTERM is")
		}
		<-ctx.Done()
		return false, context.Cause(ctx)
	}
	if code, err := c.shellLine(t.Context(), call, "/", "sleep 100"); code != exit.Interrupted || err != nil {
		t.Errorf("got %d, %v", code, err)
	}
	if c.Interrupts.Takes(os.Interrupt) {
		t.Error("SIGINT doesn't end the program when the command has ended")
	}
}
