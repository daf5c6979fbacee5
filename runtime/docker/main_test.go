package docker

import (
	"fmt"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
)

// relayVar is set for a stand-in of ssh, which is this program again: the socket that it relays to.
const relayVar = "MCP_BRIDGE_TEST_RELAY"

// TestMain fails when goroutines are left once every driver is closed.
func TestMain(m *testing.M) {
	if socket := os.Getenv(relayVar); socket != "" {
		os.Exit(relayTo(socket))
	}
	if instance := os.Getenv(victimVar); instance != "" {
		os.Exit(victim(instance))
	}
	code := m.Run()
	if code == 0 {
		if left := leaked(); left != "" {
			fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

// relayTo is what `docker system dial-stdio` does.
func relayTo(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
	}()
	io.Copy(os.Stdout, conn)
	return 0
}

// leaked are the goroutines that work in this package or for an HTTP client, after they had time to
// end.
func leaked() string {
	var left []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); goruntime.Gosched() {
		buf := make([]byte, 1<<20)
		left = nil
		for g := range strings.SplitSeq(string(buf[:goruntime.Stack(buf, true)]), "\n\n") {
			ours := strings.Contains(g, "/runtime/docker.") || strings.Contains(g, "/runtime/engine.") ||
				strings.Contains(g, "net/http.(*persistConn)") || strings.Contains(g, "docker/docker/client.")
			if ours && !strings.Contains(g, "docker.TestMain") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			break
		}
	}
	return strings.Join(left, "\n\n")
}
