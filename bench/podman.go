package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// podman is an API service of the benchmark's own, and a client of it that shares no line with the
// bridge's driver.
type podman struct {
	socket string
	cmd    *exec.Cmd
	stderr *tail
	http   *http.Client
	stop   context.CancelFunc
}

func startPodman(ctx context.Context, dir string) (*podman, error) {
	p := &podman{socket: filepath.Join(dir, "podman.sock"), stderr: &tail{limit: 2 << 10}}
	life, stop := context.WithCancel(context.WithoutCancel(ctx)) // the baselines' containers are ended first
	p.stop = stop
	argv := []string{"system", "service", "--time=3600", "unix://" + p.socket}
	p.cmd = exec.CommandContext(life, "podman", argv...) //nolint:gosec // a path of ours
	p.cmd.Stderr = p.stderr
	p.cmd.Dir = dir
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = 2 * time.Second // podman's pause process holds stderr
	if err := p.cmd.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("starting podman's API service: %w", err)
	}
	p.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return p.dial() },
		MaxIdleConnsPerHost: 16,
	}}
	for begun := time.Now(); time.Since(begun) < 30*time.Second && sleep(ctx, 10*time.Millisecond); {
		if conn, err := p.dial(); err == nil {
			conn.Close()
			return p, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("podman's API service does not listen; %s", p.stderr), p.close())
}

func (p *podman) dial() (net.Conn, error) { return net.Dial("unix", p.socket) }

func (p *podman) close() error {
	p.http.CloseIdleConnections()
	p.stop()
	_ = p.cmd.Wait() // it was told to end
	return nil
}

// apiRoot is of the oldest version that the bridge works with.
const apiRoot = "/v4.0.0/libpod/containers/"

// ask makes one request. The answer goes into into unless that is nil; missing is a status of 404.
func (p *podman) ask(
	ctx context.Context, method, path string, body []byte, into any,
) (missing bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://podman"+apiRoot+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	switch {
	case err != nil:
		return false, err
	case res.StatusCode == http.StatusNotFound:
		return true, nil
	case res.StatusCode >= 300:
		return false, fmt.Errorf("podman answered %s %s with %s: %.500s", method, path, res.Status, said)
	case into == nil:
		return false, nil
	}
	return false, json.Unmarshal(said, into)
}

// A guest is a container of the baselines with the guest program in it: the bare exchange.
type guest struct {
	podman *podman
	id     string
	conn   net.Conn
	frames *bufio.Reader
	stderr *tail
}

// launch starts a container as the bridge does, and returns when its guest is ready.
func (p *podman) launch(ctx context.Context, b *box) (_ *guest, err error) {
	var made struct{ ID string }
	if missing, err := p.ask(ctx, http.MethodPost, "create", b.create, &made); err != nil || missing {
		return nil, errors.Join(err, errors.New("podman made no container"))
	}
	g := &guest{podman: p, id: made.ID, stderr: &tail{limit: 2 << 10}}
	defer func() {
		if err != nil {
			_, gone := p.ask(context.WithoutCancel(ctx), http.MethodDelete, g.id+"?force=true&timeout=0", nil, nil)
			err = errors.Join(err, gone)
		}
	}()
	if err := g.attach(); err != nil {
		return nil, err
	}
	if _, err := p.ask(ctx, http.MethodPost, g.id+"/start", nil, nil); err != nil {
		return nil, err
	}
	if _, err := g.conn.Write(b.source); err != nil {
		return nil, err
	}
	return g, g.until("ready")
}

// attach connects to the container's streams.
func (g *guest) attach() (err error) {
	if g.conn, err = g.podman.dial(); err != nil {
		return err
	}
	if err := g.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.conn, "POST %s%s/attach?stdin=true&stdout=true&stderr=true&stream=true HTTP/1.1\r\n"+
		"Host: podman\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n", apiRoot, g.id)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(g.conn, 64<<10)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("attaching to a container: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("podman answered the attachment with %s", res.Status)
	}
	g.frames = bufio.NewReaderSize(&streams{in: in, stderr: g.stderr}, 64<<10)
	return nil
}

// until reads frames up to one of a type.
func (g *guest) until(kind string) error {
	for {
		line, err := g.frames.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("waiting for the guest's %s: %w; %s", kind, err, g.stderr)
		}
		var f struct {
			Type  string
			OK    bool
			Error json.RawMessage
		}
		switch err := json.Unmarshal(line, &f); {
		case err != nil:
			return err
		case f.Type == kind && kind == "done" && !f.OK:
			return fmt.Errorf("the code failed: %s", f.Error)
		case f.Type == kind:
			return nil
		}
	}
}

// execute runs code, which a guest does once, and returns the time until it is done.
func (g *guest) execute(b *box, code string) (time.Duration, error) {
	order, err := b.order(code)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if _, err := g.conn.Write(order); err != nil {
		return 0, err
	}
	err = g.until("done")
	return time.Since(begin), err
}

// end has the guest end, and returns when podman has removed its container.
func (g *guest) end(ctx context.Context) error {
	g.conn.Close()
	for begun := time.Now(); time.Since(begun) < callTimeout; sleep(ctx, 5*time.Millisecond) {
		if missing, err := g.podman.ask(ctx, http.MethodGet, g.id+"/exists", nil, nil); missing || err != nil {
			return err
		}
	}
	return fmt.Errorf("container %.12s is still there", g.id)
}

// streams reads standard output out of podman's framing of both streams: the stream, three zeros,
// the length, big-endian.
type streams struct {
	in     *bufio.Reader
	stderr io.Writer
	left   int // of a piece of standard output
}

func (s *streams) Read(b []byte) (int, error) {
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.in, header[:]); err != nil {
			return 0, err
		}
		n := int(binary.BigEndian.Uint32(header[4:]))
		if header[0] == 1 {
			s.left = n
		} else if _, err := io.CopyN(s.stderr, s.in, int64(n)); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(b[:min(len(b), s.left)])
	s.left -= n
	return n, err
}
