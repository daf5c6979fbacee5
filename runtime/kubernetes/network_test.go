//go:build kubernetes

package kubernetes

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestClusterNetwork: where a pod has an interface, the guest's own filter denies code each socket
// that could use it, and lo's. A pod without the guest shows that there was something to reach.
func TestClusterNetwork(t *testing.T) {
	if os.Getenv("MCP_BRIDGE_NODE_NET") != "veth" {
		t.Skip("MCP_BRIDGE_NODE_NET is not veth: pods have no interface")
	}
	d := realDriver(t)
	l, err := net.Listen("tcp4", "0.0.0.0:0") //nolint:noctx // it is closed below
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	try := fmt.Sprintf(triesSockets, l.Addr().(*net.TCPAddr).Port)

	var out strings.Builder
	std := silent()
	std.Stdout = &out
	raw := realTarget(d)(t)
	if exit, err := d.Run(t.Context(), raw.Spec(try), std); err != nil || exit.Code != 0 {
		t.Fatalf("a pod without the guest: %+v, %v", exit, err)
	}
	if !strings.Contains(out.String(), "the machine: connected\n") {
		t.Fatalf("a pod without the guest reached nothing, so the rest would show nothing:\n%s", out.String())
	}

	const denied = "AF_INET: EPERM\nAF_INET6: EPERM\nAF_PACKET: EPERM\nthe machine: EPERM\nlo: EPERM\n"
	child := "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', '''" + try +
		"'''], capture_output=True, text=True, check=True).stdout, end='')"
	s := warm(t, d, imageRef)
	k, err := s.Keep(t.Context(), sandbox.KeepRequest{MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close() //nolint:errcheck // it has none to give
	for _, code := range []string{try, child} {
		r, err := s.Run(t.Context(), sandbox.Request{ID: "r", Code: code, Timeout: time.Minute}, nil)
		if err != nil || r.Stdout() != denied {
			t.Errorf("a run: %v, %s, got\n%s%swant\n%s", err, r.Status, r.Stdout(), r.Stderr(), denied)
		}
		r, err = k.Run(t.Context(), sandbox.Request{ID: "k", Code: code, Timeout: time.Minute}, nil)
		if err != nil || r.Stdout() != denied {
			t.Errorf("a sandbox that lasts: %v, %s, got\n%s%swant\n%s", err, r.Status, r.Stdout(), r.Stderr(), denied)
		}
	}
}

// triesSockets prints what becomes of a socket of each family, and of a connection to the machine,
// by the pod's route, and to lo.
const triesSockets = `import errno, socket

def gateway():
    for line in open("/proc/net/route").read().splitlines()[1:]:
        if line.split()[1] == "00000000":
            return socket.inet_ntoa(bytes.fromhex(line.split()[2])[::-1])

def tried(what, do):
    try:
        do()
        print(what + ": connected" if " " in what else what + ": opened")
    except OSError as e:
        print(what + ":", errno.errorcode.get(e.errno, str(e)))

tried("AF_INET", lambda: socket.socket(socket.AF_INET).close())
tried("AF_INET6", lambda: socket.socket(socket.AF_INET6).close())
tried("AF_PACKET", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
tried("the machine", lambda: socket.create_connection((gateway(), %d), 5).close())
tried("lo", lambda: socket.create_server(("127.0.0.1", 0)).close())
`
