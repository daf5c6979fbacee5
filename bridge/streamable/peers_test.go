package streamable

import (
	"errors"
	"log/slog"
	"net"
	"testing"
)

// offered is a listener with connections from addresses.
type offered []string

func (o *offered) Accept() (net.Conn, error) {
	if len(*o) == 0 {
		return nil, net.ErrClosed
	}
	addr, err := net.ResolveTCPAddr("tcp", (*o)[0])
	*o = (*o)[1:]
	return &offeredConn{addr: addr}, err
}
func (*offered) Close() error   { return nil }
func (*offered) Addr() net.Addr { return nil }

type offeredConn struct {
	net.Conn
	addr   net.Addr
	closed bool
}

func (c *offeredConn) RemoteAddr() net.Addr { return c.addr }
func (c *offeredConn) Close() error {
	c.closed = true
	return nil
}

// TestPeers: a peer that has its connections gets no more of them until it has closed some; others
// do, and those of loopback aren't counted.
func TestPeers(t *testing.T) {
	from := &offered{}
	p := newPeers(from, 2, slog.New(slog.DiscardHandler))
	taken := func(addrs ...string) (conns []net.Conn) {
		*from = addrs
		for {
			c, err := p.Accept()
			if errors.Is(err, net.ErrClosed) {
				return conns
			}
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
	}
	first := taken("192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "[::ffff:192.0.2.1]:4")
	if len(first) != 2 {
		t.Errorf("%d connections of one peer are taken", len(first))
	}
	if got := taken("192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1",
		"[2001:db8:0:1::3]:1"); len(got) != 4 {
		t.Errorf("%d connections of others are taken", len(got))
	}
	if got := taken("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "[::1]:1"); len(got) != 4 {
		t.Errorf("%d connections of loopback are taken", len(got))
	}
	for range 2 { // closing it again gives nothing back
		if err := first[0].Close(); err != nil {
			t.Error(err)
		}
	}
	if got := taken("192.0.2.1:5", "192.0.2.1:6"); len(got) != 1 {
		t.Errorf("%d connections are taken once one was closed", len(got))
	}
}
