package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestFailuresTellWhatTheProgramSaid: the answer alone seldom tells why.
func TestFailuresTellWhatTheProgramSaid(t *testing.T) {
	const script = `echo "the reason" >&2; read -r asked; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'; read -r asked; exit 3`
	c, err := dial(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(c.stderr.String(), "the reason"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the program's standard error doesn't arrive")
		}
	}
	if _, err := c.request(t.Context(), "x", nil); err == nil || !strings.Contains(err.Error(), "error -1: no; it said: the reason") {
		t.Errorf("a refusal: got %v", err)
	}
	if _, err := c.request(t.Context(), "y", nil); err == nil || !strings.Contains(err.Error(), "ended before it answered y; it said: the reason") {
		t.Errorf("an end: got %v", err)
	}
	if err := c.close(); err == nil || !strings.Contains(err.Error(), "exit status 3; it said: the reason") {
		t.Errorf("a status: got %v", err)
	}
}
