package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// engine is a podman API service that the benchmarks have started for themselves, and a client of it that shares no line with the
// bridge's driver: the baselines are what podman costs, not what our code for it does.
type engine struct {
	socket string
	cmd    *exec.Cmd
	stderr *tail
	http   *http.Client
	stop   context.CancelFunc
}

// Bounds of the waits for podman's service.
const (
	serviceStart = 30 * time.Second
	serviceIdle  = defaultLimit    // without a request, until it ends by itself: when the benchmarks were killed
	serviceStop  = 2 * time.Second // from TERM to KILL; podman's pause process stays, and may hold stderr as long
)

func startEngine(ctx context.Context, dir string) (*engine, error) {
	e := &engine{socket: filepath.Join(dir, "podman.sock"), stderr: &tail{limit: 2 << 10}}
	life, stop := context.WithCancel(context.WithoutCancel(ctx)) // the baselines' containers are ended first
	e.stop = stop
	e.cmd = exec.CommandContext(life, "podman", "system", "service", fmt.Sprintf("--time=%.0f", serviceIdle.Seconds()), "unix://"+e.socket) //nolint:gosec // a path of ours
	e.cmd.Stderr = e.stderr
	e.cmd.Dir = dir
	e.cmd.Cancel = func() error { return e.cmd.Process.Signal(syscall.SIGTERM) }
	e.cmd.WaitDelay = serviceStop
	if err := e.cmd.Start(); err != nil {
		stop()
		return nil, fmt.Errorf("starting podman's API service: %w", err)
	}
	e.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
		MaxIdleConnsPerHost: 16,
	}}
	ctx, cancel := context.WithTimeout(ctx, serviceStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := e.dial(ctx)
		if err == nil {
			conn.Close()
			return e, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("podman's API service does not listen: %w; %s", err, e.stderr), e.close())
		}
	}
}

func (e *engine) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", e.socket)
}

func (e *engine) close() error {
	e.http.CloseIdleConnections()
	e.stop()
	var exit *exec.ExitError
	err := e.cmd.Wait()
	if gone := os.Remove(e.socket); gone != nil && !errors.Is(gone, fs.ErrNotExist) { // the next service listens there
		return gone
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, exec.ErrWaitDelay) || errors.As(err, &exit) {
		return nil
	}
	return err
}

// The version of the API is the oldest that the bridge works with.
func apiPath(path string) string { return "/v4.0.0/libpod" + path }

// ask makes one request; the answer goes into into unless that is nil. missing is a status of 404.
func (e *engine) ask(ctx context.Context, method, path string, body, into any) (missing bool, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return false, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://podman"+apiPath(path), bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := e.http.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
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

func (e *engine) create(ctx context.Context, c container) (id string, err error) {
	var made struct{ ID string }
	missing, err := e.ask(ctx, http.MethodPost, "/containers/create", c, &made)
	if err == nil && missing {
		err = errors.New("podman doesn't know the image")
	}
	return made.ID, err
}

func (e *engine) start(ctx context.Context, id string) error {
	missing, err := e.ask(ctx, http.MethodPost, "/containers/"+id+"/start", nil, nil)
	if err == nil && missing {
		err = errors.New("the container is gone before its start")
	}
	return err
}

// gone waits until podman has removed a container that has ended.
func (e *engine) gone(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := e.ask(ctx, http.MethodGet, "/containers/"+id+"/exists", nil, nil)
		if missing || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("container %.12s is still there: %w", id, context.Cause(ctx))
		}
	}
}

// remove ends and removes a container, which may be gone already.
func (e *engine) remove(ctx context.Context, id string) error {
	_, err := e.ask(ctx, http.MethodDelete, "/containers/"+id+"?force=true&timeout=0", nil, nil)
	return err
}

// attach connects to a container's streams before it is started.
func (e *engine) attach(ctx context.Context, id string) (net.Conn, *bufio.Reader, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	path := apiPath("/containers/" + id + "/attach?stdin=true&stdout=true&stderr=true&stream=true")
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: podman\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n", path); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("attaching to a container: %w", err), conn.Close())
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 2<<10)) // what there is
		return nil, nil, errors.Join(fmt.Errorf("podman answered the attachment to a container with %s: %s", res.Status, said), conn.Close())
	}
	return conn, in, nil
}
