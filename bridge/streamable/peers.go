package streamable

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// ofPeer is the part of all connections that one peer may have: it has them before it has said who
// it is.
const ofPeer = 4

// peers is a listener that closes the connections of a peer which has too many. Those of loopback
// are all taken: there a proxy may be the peer, or any program of this machine.
type peers struct {
	net.Listener
	most int
	log  *slog.Logger
	told time.Time // when a connection was last said to be closed; Accept is called by one goroutine

	mu    sync.Mutex
	conns map[netip.Prefix]int // by peer
}

func newPeers(l net.Listener, most int, log *slog.Logger) *peers {
	return &peers{Listener: l, most: most, log: log, conns: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (p *peers) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := peerOf(c.RemoteAddr())
		switch {
		case !ok:
			return c, nil
		case p.enter(peer):
			return &peerConn{Conn: c, left: sync.OnceFunc(func() { p.leave(peer) })}, nil
		}
		_ = c.Close() // no answer: that would take time, which others wait for
		if time.Since(p.told) >= time.Minute {
			p.told = time.Now()
			p.log.Warn("a peer has too many connections, and further ones are closed", "peer", peer, "most", p.most,
				"next", "if it is a proxy or a gateway of many clients, type --behind-proxy")
		}
	}
}

// peerOf returns whose connections are counted together: those of an address of IPv4, or of a
// network of IPv6 that one host may have for itself. It returns false for what isn't counted.
func peerOf(addr net.Addr) (netip.Prefix, bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if !ip.IsValid() || ip.IsLoopback() {
		return netip.Prefix{}, false
	}
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	peer, err := ip.Prefix(bits)
	return peer, err == nil
}

func (p *peers) enter(peer netip.Prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[peer] >= p.most {
		return false
	}
	p.conns[peer]++
	return true
}

func (p *peers) leave(peer netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[peer]--; p.conns[peer] == 0 {
		delete(p.conns, peer)
	}
}

// peerConn is a connection that is counted.
type peerConn struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *peerConn) Close() error {
	c.left()
	return c.Conn.Close()
}
