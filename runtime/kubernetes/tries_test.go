//go:build kubernetes

package kubernetes

import (
	"os"
	"os/exec"
	"testing"
)

// TestTries: of the three tries of a pod to reach the API server the last one counts, whatever
// those before it came to.
func TestTries(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("there is no python3")
	} else if err != nil {
		t.Fatal(err)
	}
	const scripted = `import os, socket, sys, time
outcomes = list(sys.argv[1])
class Connection:
    def close(self): pass
def connect(to, timeout):
    assert to == ("192.0.2.1", 443)
    if outcomes.pop(0) == "-":
        raise OSError("refused")
    return Connection()
socket.create_connection, time.sleep = connect, lambda seconds: None
`
	for outcomes, want := range map[string]int{"+++": reachedServer, "---": reachedNothing,
		"--+": reachedServer, "++-": reachedNothing, "-+-": reachedNothing, "+-+": reachedServer} {
		cmd := exec.CommandContext(t.Context(), python, "-I", "-B", "-c", scripted+tries, outcomes)
		cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=192.0.2.1", "KUBERNETES_SERVICE_PORT=443")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want || len(out) > 0 {
			t.Errorf("%s: code %d, want %d\n%s", outcomes, got, want, out)
		}
	}
}
