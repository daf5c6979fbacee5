//go:build unix

package streamable_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestConnections: of more connections than half of the files that may be open, as many are
// accepted, and the next one is when one has ended.
func TestConnections(t *testing.T) {
	const most = 20
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	fewer := before
	fewer.Cur = 2*most + 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &fewer); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubble(t, echo)
		var accepted atomic.Int64
		conns := make(chan net.Conn, 3*most)
		var dials sync.WaitGroup
		for range 2 * most {
			dials.Go(func() {
				c := p.dial()
				accepted.Add(1)
				conns <- c
			})
		}
		for ended := range 3 {
			synctest.Wait()
			if got := accepted.Load(); got != most+int64(ended) {
				t.Errorf("%d connections are accepted when %d have ended, want %d", got, ended, most+ended)
			}
			c := <-conns
			_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		for range 2*most - 3 {
			(<-conns).Close()
		}
		dials.Wait()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
