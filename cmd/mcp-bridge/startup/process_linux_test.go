package startup

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// asLimited says, in a process that was started with few descriptors, how many OpenFiles must say.
const asLimited = "MCP_BRIDGE_TEST_OPEN_FILES"

// TestOpenFiles: a container gets no more descriptors than the user may have, and no more than is
// asked for. The bridge itself may open as many as the user may have, but its children start with
// the limit that it was started with: some programs count on a low one (select(2)).
func TestOpenFiles(t *testing.T) {
	const most = 1024
	if want := os.Getenv(asLimited); want != "" {
		if got := strconv.FormatInt(OpenFiles(most), 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		limits, err := exec.Command("sh", "-c", "ulimit -Sn; ulimit -Hn").Output()
		if got := strings.Fields(string(limits)); err != nil || len(got) != 2 || got[0] != "90" ||
			got[1] != os.Getenv(asLimited+"_HARD") {
			t.Errorf("a child has the limits %v, %v", got, err)
		}
		return
	}
	if got := OpenFiles(most); got <= 0 || got > most {
		t.Errorf("here: got %d, want at most %d", got, most)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ hard, want string }{{"200", "200"}, {"1024", "1024"}, {"1025", "1024"}} {
		limited := exec.Command("sh", "-c",
			`ulimit -Sn 90 && ulimit -Hn "$1" && exec "$0" -test.run '^TestOpenFiles$' -test.v`, self, tt.hard)
		limited.Env = append(os.Environ(), asLimited+"="+tt.want, asLimited+"_HARD="+tt.hard)
		if out, err := limited.CombinedOutput(); err != nil ||
			!strings.Contains(string(out), "--- PASS: TestOpenFiles") {
			t.Errorf("with at most %s: %v\n%s", tt.hard, err, out)
		}
	}
}
