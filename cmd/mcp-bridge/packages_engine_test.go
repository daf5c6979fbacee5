package main

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// packaged builds an environment with the package big.
func packaged(t *testing.T) *wheelhouse {
	t.Helper()
	s := newWheelhouse(t, map[string]string{
		"big/__init__.py": "import time\nmade = time.time()\n", "big/deep.py": "",
		"sitecustomize2.py": "", "big.pth": "import sys; sys.stderr.write('SHOUT')\n",
	})
	s.says("env", "build", s.name)
	return s
}

const wantsBig = "# /// script\n# dependencies = [\"big>=1\"]\n# ///\n"

// TestPackagesOfARunOnEngine: code has the packages that it asks for, or those that are configured,
// and what can't be had is refused before anything runs.
func TestPackagesOfARunOnEngine(t *testing.T) {
	anyEngine(t)
	s := packaged(t)
	for _, tc := range []struct {
		name, code, env string
		stdout, stderr  string
		exit            int
	}{
		{name: "asked for", code: wantsBig + "import big.deep, sys\nprint('has', sys.path.count('/opt/env'))",
			stdout: "has 1\n", stderr: "environment: " + s.name},
		{name: "configured", code: "import big\nprint('has')", env: s.name, stdout: "has\n"},
		{name: "not asked for", code: "import big\nprint('has')", env: "base", exit: 1,
			stderr: "# dependencies = [\"big\"]"},
		{name: "a program that it starts has none", env: s.name, stdout: "1\n", code: "import subprocess, sys\n" +
			"print(subprocess.run([sys.executable, '-c', 'import big'], stderr=-3).returncode)"},
		{name: "nowhere", code: strings.Replace(wantsBig, "big>=1", "big>=2", 1) + "print('ran')",
			exit:   exit.Unavailable,
			stderr: "mcp-bridge env add NAME 'big>=2'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := with(s.command("run", "-c", tc.code), "MCP_BRIDGE_ENV="+tc.env)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.Output()
			exit := &exec.ExitError{}
			if tc.exit == 0 && err != nil || tc.exit != 0 && (!errors.As(err, &exit) || exit.ExitCode() != tc.exit) {
				t.Errorf("it ended with %v, want code %d", err, tc.exit)
			}
			if string(stdout) != tc.stdout || !strings.Contains(stderr.String(), tc.stderr) ||
				strings.Contains(stderr.String(), "SHOUT") {
				t.Errorf("it printed %q and %q, want %q and %q", stdout, stderr.String(), tc.stdout, tc.stderr)
			}
		})
	}
}

// TestPackagesAhead: a run has imported already what runs before it imported. It is locked down as
// all runs are.
func TestPackagesAhead(t *testing.T) {
	needTime(t)
	needEngine(t)
	s := packaged(t)
	t.Setenv("MCP_BRIDGE_TEST_SECRET", "must-not-be-seen")
	c := serve(t, with(command(t, map[string]entry{"shop": shop(t)}), append(s.dirs, "MCP_BRIDGE_ENV=base")...))
	code := wantsBig + "import time\nbegan = time.time()\nimport big\nprint(big.made < began)\n" + looksAround(t)
	report := ""
	within(t, "a guest has imported it ahead", func() bool {
		got := c.python(code, map[string]any{"timeout": 60})
		text, named := strings.CutSuffix(got.Text, "\n[environment: "+s.name+"]")
		if got.IsError || !named {
			t.Fatal(got.Text)
		}
		var is bool
		report, is = strings.CutPrefix(text, "True\n")
		return is
	})
	checkLockDown(t, report)
}
