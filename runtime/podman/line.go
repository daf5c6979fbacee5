//go:build remote && containers_image_openpgp && exclude_graphdriver_btrfs

package podman

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// line is an attached container: one connection of its own, which carries its streams and can be cut.
//
// It takes the place of the bindings' Attach, which inspects the container first, reads standard input before there is a
// process to have it, replaces the transport that all calls share, allocates what a frame's header says, and ignores its context.
type line struct {
	body io.ReadWriteCloser

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

// attach connects to a container that was created and not started. The line is cut when ctx ends.
func (r *run) attach(ctx context.Context) (*line, error) {
	shared, transport, err := transportOf(r.c.values)
	if err != nil {
		return nil, err
	}
	l := &line{}
	own := *shared
	own.Client = &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext:        l.dialer(transport, false),
		DialTLSContext:     l.dialer(transport, true),
	}}
	context.AfterFunc(ctx, l.hangUp)
	params := url.Values{"stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	headers := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	response, err := own.DoRequest(r.c.with(ctx), nil, http.MethodPost, "/containers/%s/attach", params, headers, r.id)
	if err != nil {
		l.hangUp()
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer l.hangUp()
		defer response.Body.Close()
		if err := response.Process(nil); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the engine answered %s where it should have switched protocols", response.Status)
	}
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		l.hangUp()
		return nil, errors.New("the engine's answer can't be written to")
	}
	l.body = body
	return l, nil
}

// dialer is the transport's, with the TLS over it if there is any, and remembers what it has dialled.
func (l *line) dialer(t *http.Transport, secure bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := t.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if secure {
			cfg := t.TLSClientConfig.Clone()
			if host, _, err := net.SplitHostPort(address); err == nil && cfg.ServerName == "" {
				cfg.ServerName = host
			}
			conn = tls.Client(conn, cfg)
		}
		return conn, l.keep(conn)
	}
}

// keep remembers a connection, to be cut with the others.
func (l *line) keep(conn net.Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errors.Join(net.ErrClosed, conn.Close())
	}
	l.conns = append(l.conns, conn)
	return nil
}

// hangUp cuts the connection. It may be called more than once.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// endInput tells the engine that there is no more input.
func (l *line) endInput() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // a line that is cut has no input either
		}
	}
}

// carry copies the streams until the engine ends them, which is no error, or a writer fails. It doesn't wait for a reader of
// standard input that blocks: that goroutine ends with the reader, or with its next bytes.
func (l *line) carry(std runtime.Stdio) error {
	go func() {
		if _, err := io.Copy(l.body, std.Stdin); err == nil {
			l.endInput()
		}
	}()
	in := bufio.NewReaderSize(l.body, 32<<10)
	buf := make([]byte, 32<<10)
	var header [8]byte // the stream, three zeros, the length
	for {
		switch _, err := io.ReadFull(in, header[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		frame := io.LimitReader(in, int64(binary.BigEndian.Uint32(header[4:])))
		var to io.Writer
		switch header[0] {
		case 0, 1:
			to = std.Stdout
		case 2:
			to = std.Stderr
		case 3:
			said, _ := io.ReadAll(io.LimitReader(frame, 2<<10))
			return fmt.Errorf("the engine says of the container's streams: %s", runtime.OneLine(string(said)))
		default:
			return fmt.Errorf("the engine sent a stream of number %d, and there are none but 0 to 3", header[0])
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{to}, frame, buf); err != nil {
			return err
		}
	}
}
