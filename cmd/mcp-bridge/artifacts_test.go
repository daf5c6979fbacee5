package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestReport: the JSON of a run has the exit code that the command ends with, and of files that
// could not be written no advice is given that was followed already.
func TestReport(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(inTheWay, nil, 0o600))
	file := []sandbox.Artifact{{Name: "a.txt"}}
	for _, tt := range []struct {
		name string
		o    runOptions
		r    sandbox.Result
		want int
	}{
		{"ok", runOptions{}, sandbox.Result{Status: sandbox.StatusOK}, exit.OK},
		{"timeout", runOptions{}, sandbox.Result{Status: sandbox.StatusTimeout, ExitCode: -1}, exit.Timeout},
		{"memory", runOptions{}, sandbox.Result{Status: sandbox.StatusMemoryLimit, ExitCode: 1}, exit.Memory},
		{"cancelled", runOptions{}, sandbox.Result{Status: sandbox.StatusCancelled, ExitCode: -1},
			exit.Interrupted},
		{"engine", runOptions{}, sandbox.Result{Status: sandbox.StatusEngine, ExitCode: -1}, exit.Unavailable},
		{"exit", runOptions{}, sandbox.Result{Status: sandbox.StatusExit, ExitCode: 7}, 7},
		{"an exception, and 0", runOptions{}, sandbox.Result{Status: sandbox.StatusError}, exit.Failed},
		{"no directory", runOptions{files: filepath.Join(inTheWay, "dir")},
			sandbox.Result{Status: sandbox.StatusOK, Artifacts: file}, exit.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			a := &app{io: &terminal.Streams{Out: terminal.New(&stdout), Err: terminal.New(&stderr)}}
			tt.o.json = true
			err := a.report(tt.o, bridge.Report{Result: tt.r})
			ends, ended := exit.OK, exit.Error{}
			if errors.As(err, &ended) {
				ends = ended.Code
			} else if err != nil {
				ends = exit.Failed
			}
			var got struct{ ExitCode int }
			if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil || got.ExitCode != tt.want ||
				ends != tt.want {
				t.Errorf("exitCode is %d, and the command ends with %d, want %d; %v", got.ExitCode, ends, tt.want, err)
			}
			tt.o.json = false
			if err := a.report(tt.o, bridge.Report{Result: tt.r}); tt.o.files != "" &&
				(strings.Contains(stderr.String(), "--artifacts") || !strings.Contains(stderr.String(), "a.txt") ||
					!strings.Contains(err.Error(), "the directory for the files can't be made: ")) {
				t.Errorf("got %q, %v", stderr.String(), err)
			}
		})
	}
}
