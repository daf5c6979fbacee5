package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// container is what podman is asked for, in the words of its API: what the bridge itself has asked for, see record, or that with an
// item removed.
type container map[string]any

// without is a copy that lacks some fields.
func (c container) without(fields ...string) container {
	copied := maps.Clone(c)
	for _, f := range fields {
		delete(copied, f)
	}
	return copied
}

// with is a copy that has a field set.
func (c container) with(field string, value any) container {
	copied := maps.Clone(c)
	copied[field] = value
	return copied
}

// guest is a container of the baselines, with the guest program at its streams: the bare exchange, without a bridge.
type guest struct {
	engine *engine
	id     string
	conn   net.Conn
	stdin  *entrypoint.Writer
	frames *entrypoint.Reader
	stderr *tail
}

// launch makes and starts a container, and returns when its guest, which is sent this source, is ready.
func (e *engine) launch(ctx context.Context, c container, source []byte) (*guest, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := e.create(ctx, c)
	if err != nil {
		return nil, err
	}
	g := &guest{engine: e, id: id, stderr: &tail{limit: 2 << 10}}
	if err := g.begin(ctx, source); err != nil {
		return nil, errors.Join(err, e.remove(context.WithoutCancel(ctx), id))
	}
	return g, nil
}

func (g *guest) begin(ctx context.Context, source []byte) (err error) {
	var in *bufio.Reader
	if g.conn, in, err = g.engine.attach(ctx, g.id); err != nil {
		return err
	}
	if err := g.engine.start(ctx, g.id); err != nil {
		return errors.Join(err, g.conn.Close())
	}
	if _, err := g.conn.Write(source); err != nil {
		return errors.Join(err, g.conn.Close())
	}
	g.stdin = entrypoint.NewWriter(g.conn, entrypoint.MaxFrame)
	g.frames = entrypoint.NewReader(&streams{in: in, stderr: g.stderr}, entrypoint.MaxFrame)
	if _, err := g.until(entrypoint.TypeReady); err != nil {
		return errors.Join(err, g.conn.Close())
	}
	return nil
}

// until reads frames up to one of a type.
func (g *guest) until(kind string) (entrypoint.FromGuest, error) {
	for {
		f, err := g.read(kind)
		if err != nil || f.Type == kind {
			return f, err
		}
	}
}

func (g *guest) read(kind string) (entrypoint.FromGuest, error) {
	f, err := g.frames.Read()
	if err != nil {
		err = fmt.Errorf("waiting for the guest's %s: %w; %s", kind, err, g.stderr)
	}
	return f, err
}

// marks are the times of an exchange, from execute on.
type marks struct {
	started time.Duration // the guest has taken it
	output  time.Duration // the first that the code printed; 0 for none
	done    time.Duration
}

// execute runs code. A guest does so once.
func (g *guest) execute(o entrypoint.Options, code string) (marks, error) {
	x := entrypoint.Execute{Type: entrypoint.TypeExecute, ID: "bench", Code: code, Providers: []entrypoint.Provider{}, Options: o}
	var m marks
	begin := time.Now()
	if err := g.stdin.Write(x); err != nil {
		return m, err
	}
	for {
		f, err := g.read(entrypoint.TypeDone)
		switch {
		case err != nil:
			return m, err
		case f.Type == entrypoint.TypeStarted:
			m.started = time.Since(begin)
		case f.Type == entrypoint.TypeOutput && m.output == 0:
			m.output = time.Since(begin)
		case f.Type == entrypoint.TypeDone:
			m.done = time.Since(begin)
			if !f.OK {
				return m, fmt.Errorf("the code failed: %+v", f.Error)
			}
			return m, nil
		}
	}
}

// end has the guest end, and returns when podman has removed its container.
func (g *guest) end(ctx context.Context) error {
	g.conn.Close()
	return g.engine.gone(ctx, g.id)
}

// streams is the standard output out of podman's framing of both streams: the stream, three zeros, the length, big-endian.
type streams struct {
	in     *bufio.Reader
	stderr io.Writer
	left   int // of a piece of standard output
}

func (s *streams) Read(p []byte) (int, error) {
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.in, header[:]); err != nil {
			return 0, err
		}
		n := int(binary.BigEndian.Uint32(header[4:]))
		if header[0] == 1 {
			s.left = n
			continue
		}
		if _, err := io.CopyN(s.stderr, s.in, int64(n)); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
