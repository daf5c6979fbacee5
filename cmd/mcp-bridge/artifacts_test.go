package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

func TestWriteArtifacts(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": outside, "out.txt": filepath.Join(outside, "victim")} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := writeArtifacts(dir, []sandbox.Artifact{
		{Name: "a.txt", Data: []byte("a")},
		{Name: "sub/b.txt", Data: []byte("b")},
		{Name: "mine.txt", Data: []byte("theirs")},
		{Name: "link/c.txt", Data: []byte("c")},
		{Name: "out.txt", Data: []byte("c")},
		{Name: "../d.txt", Data: []byte("d")}, // the sandbox makes no such names
		{Name: "e.txt"},
	})
	want := map[string]string{"a.txt": filepath.Join(dir, "a.txt"), "sub/b.txt": filepath.Join(dir, "sub", "b.txt"), "e.txt": filepath.Join(dir, "e.txt")}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for _, part := range []string{"mine.txt is in " + dir + " already", "link/c.txt could not", "../d.txt could not", "out.txt"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error %v says nothing of %s", err, part)
		}
	}
	for path, text := range map[string]string{"a.txt": "a", "sub/b.txt": "b", "mine.txt": "mine", "e.txt": ""} {
		if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, place := range []string{outside, filepath.Dir(dir)} {
		if left, err := os.ReadDir(place); err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "dir" {
			t.Errorf("%s has %v, %v", place, left, err)
		}
	}
}

// TestReport: the JSON of a run has the exit code that the command ends with, and of files that could not be written no advice is
// given that was followed already.
func TestReport(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := []sandbox.Artifact{{Name: "a.txt"}}
	for _, tt := range []struct {
		name string
		o    runOptions
		r    sandbox.Result
		want int
	}{
		{"ok", runOptions{}, sandbox.Result{Status: sandbox.StatusOK}, exitOK},
		{"timeout", runOptions{}, sandbox.Result{Status: sandbox.StatusTimeout, ExitCode: -1}, exitTimeout},
		{"memory", runOptions{}, sandbox.Result{Status: sandbox.StatusMemoryLimit, ExitCode: 1}, exitMemory},
		{"cancelled", runOptions{}, sandbox.Result{Status: sandbox.StatusCancelled, ExitCode: -1}, exitInterrupted},
		{"engine", runOptions{}, sandbox.Result{Status: sandbox.StatusEngine, ExitCode: -1}, exitUnavailable},
		{"exit", runOptions{}, sandbox.Result{Status: sandbox.StatusExit, ExitCode: 7}, 7},
		{"an exception, and 0", runOptions{}, sandbox.Result{Status: sandbox.StatusError}, exitFailure},
		{"no directory", runOptions{files: filepath.Join(inTheWay, "dir")}, sandbox.Result{Status: sandbox.StatusOK, Artifacts: file}, exitFailure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			a := &app{stdout: &stdout, stderr: &stderr}
			tt.o.json = true
			err := a.report(tt.o, bridge.Report{Result: tt.r}, nil)
			ends, ended := exitOK, exitError{}
			if errors.As(err, &ended) {
				ends = ended.code
			} else if err != nil {
				ends = exitFailure
			}
			var got struct{ ExitCode int }
			if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil || got.ExitCode != tt.want || ends != tt.want {
				t.Errorf("exitCode is %d, and the command ends with %d, want %d; %v", got.ExitCode, ends, tt.want, err)
			}
			tt.o.json = false
			if err := a.report(tt.o, bridge.Report{Result: tt.r}, nil); tt.o.files != "" &&
				(strings.Contains(stderr.String(), "--artifacts") || !strings.Contains(stderr.String(), "a.txt") || !strings.Contains(err.Error(), "the directory for the files can't be made: ")) {
				t.Errorf("got %q, %v", stderr.String(), err)
			}
		})
	}
}
