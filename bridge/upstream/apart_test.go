//go:build linux

package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// carriesMark tells whether a process is alive and carries a guard's mark.
func carriesMark(pid int) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && strings.Contains(string(environ), guard.MarkVar+"=")
}

// TestOpenedForTheUser: what a server has started in a session of its own lives on when the server
// is ended as unused, and when the bridge ends; the server's group doesn't.
func TestOpenedForTheUser(t *testing.T) {
	for _, tt := range []struct {
		name string
		idle time.Duration
	}{{"idle", 100 * time.Millisecond}, {"close", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			p := open(t, func(c *Config) { c.IdleTimeout = tt.idle }, fake("opens"))
			s := look(t, p)
			t.Cleanup(func() { _ = syscall.Kill(s.Child, syscall.SIGKILL) })
			if !carriesMark(s.Child) {
				t.Fatal("it doesn't carry the mark, and this test can't fail")
			}
			if tt.idle == 0 {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
			vanished(t, s.PID)
			if err := p.Close(); err != nil { // which waits for all that the end does
				t.Error(err)
			}
			if !carriesMark(s.Child) {
				t.Error("what the server opened was ended")
			}
		})
	}
}

// TestServersCannotReachEachOther: a server can't open another's input or output by /proc, though
// both are the same user's.
func TestServersCannotReachEachOther(t *testing.T) {
	p := open(t, nil, fake("normal"))
	pid := look(t, p).PID
	for fd, flags := range map[int]int{0: os.O_WRONLY, 1: os.O_RDONLY} {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), flags, 0)
		if !errors.Is(err, syscall.ENXIO) {
			t.Errorf("descriptor %d: got %v, %v, want ENXIO", fd, f, err)
		}
	}
}

// TestStreamsOfAServer: servers find their streams usable however they look at them.
func TestStreamsOfAServer(t *testing.T) {
	const asyncio = `
import asyncio, sys
async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    while line := await reader.readline():
        await asyncio.sleep(0.05)  # a closed output would be noticed meanwhile
        transport.write(line)
asyncio.run(main())
`
	for _, tt := range []struct{ name, program, code string }{
		{"cat", "cat", ""},
		{"shell that writes to /dev/stderr", "sh",
			"echo ready >/dev/stderr && while read -r line; do echo \"$line\"; done"},
		{"shell that writes to its input", "sh", "echo x >&0; while read -r line; do echo \"$line\"; done"},
		{"Python", "python3",
			"import sys, os; os.fstat(0); sys.stdin.isatty()\nfor line in sys.stdin: print(line, end='', flush=True)"},
		{"Python's asyncio", "python3", asyncio},
		{"Node", "node", "process.stdin.pipe(process.stdout)"},
		{"Node, synchronously", "node",
			"const fs = require('fs'), b = Buffer.alloc(99); let n; while ((n = fs.readSync(0, b)) > 0) " +
				"fs.writeSync(1, b.subarray(0, n))"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.program); err != nil {
				t.Skip(err)
			}
			args := map[string][]string{"cat": nil, "node": {"-e", tt.code}}[tt.program]
			if args == nil && tt.code != "" {
				args = []string{"-c", tt.code}
			}
			files, err := openStreams()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(tt.program, args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = files.theirs[0], files.theirs[1], files.theirs[2]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			closeAll(files.theirs[:])
			defer closeAll(files.ours[:])
			_ = files.ours[1].SetReadDeadline(time.Now().Add(time.Minute))
			out := bufio.NewReader(files.ours[1])
			for i := range 3 {
				line := strconv.Itoa(i) + "\n"
				if _, err := files.ours[0].WriteString(line); err != nil {
					t.Fatal(err)
				}
				if got, err := out.ReadString('\n'); got != line {
					t.Fatalf("got %q, %v, want %q", got, err, line)
				}
			}
			_ = files.ours[0].Close()
			if rest, err := out.ReadString('\n'); rest != "" || err == nil {
				t.Errorf("after the end of its input: %q, %v", rest, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
