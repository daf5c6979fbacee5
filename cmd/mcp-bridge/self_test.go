package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBridgeBehindAnotherName: a bridge that nothing in its configuration gives away, a copy under another name, is known when it
// answers, and isn't used.
func TestBridgeBehindAnotherName(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "weather-server")
	if err := os.Link(self(t), copied); err != nil {
		copyFile(t, self(t), copied)
	}
	cmd := command(t, map[string]entry{"weather": {Command: copied, Env: map[string]string{asMain: "1"}}}, "tools", "weather")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it is mcp-bridge itself") || !strings.Contains(string(out), "servers.json") {
		t.Errorf("got %v:\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
