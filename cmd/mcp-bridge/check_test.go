package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestServersCheck: each server is tried and told apart: one that works, one that dies with a word, one that isn't there.
func TestServersCheck(t *testing.T) {
	servers := map[string]entry{
		"shop": shop(t),
		"dies": {Command: "/bin/sh", Args: []string{"-c", `echo "no database at $DB_PASSWORD" >&2; exit 3`}, Env: map[string]string{"DB_PASSWORD": "hunter2-long"}},
		"gone": {Command: "/no/such/program"},
	}
	run := func(args ...string) (string, int) {
		t.Helper()
		out, err := command(t, servers, append([]string{"servers", "--check"}, args...)...).Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if strings.Contains(string(out), "hunter2") {
			t.Errorf("a secret is shown: %s", out)
		}
		if exit == nil {
			return string(out), 0
		}
		return string(out), exit.ExitCode()
	}
	text, code := run("-v")
	for _, want := range []string{"ok     shop  ", `server "dies": starting it: it ended by itself (exit status 3)`, "no database at ***", `server "gone": starting it: `, "correct the server's command"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !strings.HasPrefix(text, "1 ok, 2 failing; 3 used, 0 not\nSTATE  SERVER  TOOLS") || strings.Count(text, "SERVER") != 1 {
		t.Errorf("it doesn't begin with one table, the states first:\n%s", text)
	}
	if dies, shop := strings.Index(text, "\nfails  dies"), strings.Index(text, "\nok     shop"); dies < 0 || shop < dies {
		t.Errorf("what fails isn't first:\n%s", text)
	}
	if code != exitFailure {
		t.Errorf("it ended with %d, want %d", code, exitFailure)
	}
	out, _ := run("--json")
	var got struct {
		Servers []struct {
			Name  string
			Check checkJSON
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Servers) != 3 {
		t.Fatalf("%v in %s", err, out)
	}
	for _, s := range got.Servers {
		switch c := s.Check; s.Name {
		case "shop":
			if !c.OK || c.Tools < 5 || c.Error != "" {
				t.Errorf("shop: %+v", c)
			}
		case "dies":
			if c.OK || c.Stderr != "no database at ***" || !strings.HasPrefix(c.Error, "starting it: it ended by itself") {
				t.Errorf("dies: %+v", c)
			}
		case "gone":
			if c.OK || c.Stderr != "" || !strings.HasPrefix(c.Error, "starting it: ") {
				t.Errorf("gone: %+v", c)
			}
		}
	}
	delete(servers, "dies")
	delete(servers, "gone")
	if text, code := run(); code != 0 || !strings.Contains(text, "ok") {
		t.Errorf("with the good one alone: %d, %s", code, text)
	}
}
