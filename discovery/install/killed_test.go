package install

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/discovery/config"
	"github.com/mcp-bridge/mcp-bridge/discovery/edit"
)

// cycle does something again and again, until it is killed. After the second time it says how long
// that takes.
func cycle(do func()) {
	for i := 0; ; i++ {
		began := time.Now()
		do()
		if i == 1 {
			fmt.Println(time.Since(began))
		}
	}
}

// killLater runs a test in a process of its own, with a variable that names a home, and kills it
// once it cycles, after a part of a cycle. It fails if the process has said anything else.
func (h *home) killLater(test, variable string, part float64) {
	h.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), variable+"="+h.dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, _ := lines.ReadString('\n')
	took, bad := time.ParseDuration(strings.TrimSpace(first))
	time.Sleep(time.Duration(part * float64(took))) // to a moment to be killed at
	_ = cmd.Process.Kill()
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if bad != nil || len(rest) > 0 {
		h.t.Fatalf("it failed:\n%.2000s%.2000s", first, rest)
	}
}

// state returns which of the files are there that a write makes, and whether the host's file holds
// what it did.
func (h *home) state(text string) string {
	all := []string{"changed"}
	if h.read(cursorFile) == text {
		all[0] = "as it was"
	}
	for what, pattern := range map[string]string{"a backup": cursorFile + backupEnding + "*",
		"a new file": ".cursor/.*.mcp-bridge-new", "a note": ".local/*.json",
		"notes":            ".local/state/mcp-bridge/*.json",
		"the bridge's own": adopted} {
		if found, _ := filepath.Glob(h.path(pattern)); len(found) > 0 {
			all = append(all, what)
		}
	}
	slices.Sort(all[1:])
	return strings.Join(all, ", ")
}

// severalStates fails unless the kills have found a file in more than one state.
func severalStates(t *testing.T, seen map[string]int) {
	t.Helper()
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%2d times %s", seen[s], s)
	}
	if len(seen) < 2 {
		t.Error("all kills came between two writes")
	}
}

// TestKilled: a process that installs and undoes is killed at many moments. The file holds what it
// held or what it was to hold, and the next undo brings back what it held.
func TestKilled(t *testing.T) {
	const text = "{\n  \"mcpServers\": {}\n}\n"
	if dir := os.Getenv("MCP_BRIDGE_TEST_INSTALL"); dir != "" {
		h := &home{t: t, dir: dir, journal: &Journal{Dir: filepath.Join(dir, ".local"), Verb: "install"}}
		cycle(func() {
			f, err := Open(h.path(cursorFile))
			if err != nil {
				t.Fatal(err)
			}
			long := config.Of(strings.Repeat("x", 1<<16))
			c := edit.Change{Path: []string{"mcpServers", "mcp-bridge"}, Value: long}
			if err := f.Change(c); err != nil {
				t.Fatal(err)
			}
			if err := h.journal.Write(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			if err := h.undo(); err != nil {
				t.Fatal(err)
			}
		})
	}
	h := newHome(t, map[string]string{cursorFile: text})
	h.journal.Dir = filepath.Join(h.dir, ".local")
	seen := map[string]int{}
	for i := range 30 {
		h.killLater("TestKilled", "MCP_BRIDGE_TEST_INSTALL", float64(i)/30)
		seen[h.state(text)]++
		got := h.read(cursorFile)
		if _, err := edit.Parse(cursorFile, []byte(got)); err != nil || got != text && len(got) < 1<<16 {
			t.Fatalf("it holds half: %v\n%.200s", err, got)
		}
		if err := h.undo(); err != nil {
			t.Fatal(err)
		}
		if got := h.read(cursorFile); got != text {
			t.Fatalf("undone it holds %.200s", got)
		}
	}
	severalStates(t, seen)
	h.install("cursor") // the leftovers are no obstacle
	if err := h.undo(); err != nil {
		t.Error(err)
	}
}

// TestAdoptKilled: a process that moves servers and gives them back is killed at many moments. At
// each a server is in its host's file or in the bridge's own, and the next undo brings back all.
func TestAdoptKilled(t *testing.T) {
	text := `{"mcpServers": {"a": {"command": "` + strings.Repeat("x", 1<<14) + `"}}}`
	if dir := os.Getenv("MCP_BRIDGE_TEST_ADOPT"); dir != "" {
		h := &home{t: t, dir: dir, journal: &Journal{Verb: "adopt"}}
		h.journal.Dir = h.path(".local/state/mcp-bridge")
		h.cfg = Config{FS: discovery.Root(), Env: discovery.Env{Home: dir, GOOS: "linux",
			Executable: filepath.Join(dir, "bin/mcp-bridge")}}
		cycle(func() {
			h.adoptAll()
			if err := h.undo(); err != nil {
				t.Fatal(err)
			}
		})
	}
	h := newHost(t, "cursor", map[string]string{cursor: text})
	installed, seen := h.read(cursor), map[string]int{}
	for i := range 16 {
		h.killLater("TestAdoptKilled", "MCP_BRIDGE_TEST_ADOPT", float64(i)/16)
		seen[h.state(installed)]++
		if len(h.used(false))+len(h.used(true)) == 0 {
			t.Fatal("the server is lost")
		}
		if i%2 == 0 {
			h.adoptAll() // goes on
		}
		if err := h.undo(); err != nil {
			t.Fatal(err)
		}
		if h.read(cursor) != installed || len(h.used(true)) > 0 {
			t.Fatalf("undone it holds %.200s", h.read(cursor))
		}
	}
	severalStates(t, seen)
}
