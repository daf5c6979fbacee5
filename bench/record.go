package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// record has a bridge run code over a socket that is listened in on, and returns the container that it asked podman for and the bounds
// that it gave the guest. So the baselines have the very same lock-down, whatever it becomes.
func (s *suite) record(ctx context.Context) (_ container, o entrypoint.Options, err error) {
	p, err := listenIn(filepath.Join(s.dir, "recorded.sock"), s.engine.socket)
	if err != nil {
		return nil, o, err
	}
	defer p.close()
	c, err := s.serve(ctx, nil, "MCP_BRIDGE_RUNTIME=unix://"+p.listener.Addr().String(), "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return nil, o, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
		return nil, o, err
	}
	asked, o, err := p.heard()
	if err != nil {
		return nil, o, err
	}
	// The profile's file is the driver's, and goes with it.
	if path, ok := asked["seccomp_profile_path"].(string); ok {
		kept := filepath.Join(s.dir, "seccomp.json")
		text, err := os.ReadFile(path) //nolint:gosec // what the bridge has named
		if err == nil {
			err = os.WriteFile(kept, text, 0o600)
		}
		if err != nil {
			return nil, o, err
		}
		asked["seccomp_profile_path"] = kept
	}
	// Neither a name that is taken nor an owner whose death would have a bridge remove it.
	return asked.without("name").with("labels", map[string]any{"io.mcp-bridge.bench": "1"}), o, nil
}

// maxRecorded bounds what is kept of one connection, in bytes.
const maxRecorded = 1 << 20

// ear passes connections on to a socket and keeps what the clients say.
type ear struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu     sync.Mutex
	said   []*bytes.Buffer // by connection
	conns  []net.Conn
	closed bool
}

func listenIn(path, to string) (*ear, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	p := &ear{listener: l, to: to}
	p.work.Go(p.accept)
	return p, nil
}

func (p *ear) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // close was called
		}
		to, err := net.Dial("unix", p.to)
		if err != nil {
			from.Close()
			continue
		}
		kept := &bytes.Buffer{}
		p.mu.Lock()
		p.said = append(p.said, kept)
		p.conns = append(p.conns, from, to)
		closed := p.closed
		p.mu.Unlock()
		if closed {
			from.Close()
			to.Close()
			return
		}
		p.work.Go(func() { p.pass(to, io.TeeReader(from, locked{p, kept})) })
		p.work.Go(func() { p.pass(from, to) })
	}
}

// pass copies until one side ends, and tells the other.
func (p *ear) pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // it ends with either side
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// locked is a bounded buffer that heard may look into meanwhile.
type locked struct {
	p    *ear
	kept *bytes.Buffer
}

func (l locked) Write(b []byte) (int, error) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.kept.Write(b[:min(len(b), maxRecorded-l.kept.Len())])
	return len(b), nil
}

func (p *ear) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// heard is the container of the guest among all that was asked for, and the bounds of its execute.
func (p *ear) heard() (c container, o entrypoint.Options, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var x *entrypoint.Execute
	for _, said := range p.said {
		if c == nil {
			c = findCreate(said.Bytes(), entrypoint.Boot())
		}
		if x == nil {
			x = findExecute(said.Bytes())
		}
	}
	switch {
	case c == nil:
		return nil, o, errors.New("the bridge asked podman for no container with its guest in it")
	case x == nil:
		return nil, o, errors.New("the bridge sent no execute to its guest")
	}
	return c, x.Options, nil
}

// findExecute is the frame among what a connection has carried: requests, the guest's source, frames.
func findExecute(said []byte) *entrypoint.Execute {
	for text := range bytes.Lines(said) {
		var x entrypoint.Execute
		if i := bytes.Index(text, []byte(`{"type":"execute"`)); i >= 0 && json.Unmarshal(text[i:], &x) == nil && x.Type == entrypoint.TypeExecute {
			return &x
		}
	}
	return nil
}

// findCreate goes through the requests of one connection. What follows a request that it can't read is left.
func findCreate(said []byte, boot []string) container {
	in := bufio.NewReader(bytes.NewReader(said))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return nil
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil
		}
		var c container
		if !strings.HasSuffix(req.URL.Path, "/containers/create") || json.Unmarshal(body, &c) != nil {
			continue
		}
		if argv := append(texts(c["entrypoint"]), texts(c["command"])...); slices.Equal(argv, boot) {
			return c
		}
	}
}

// texts is a JSON array of strings.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, x := range list {
		all = append(all, fmt.Sprint(x))
	}
	return all
}
