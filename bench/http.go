package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"
)

// http makes calls over HTTP and, in turns, over stdio, and then opens sessions.
func (s *suite) http(ctx context.Context, stdio *client) error {
	web, err := s.warmHTTP(ctx)
	if err != nil {
		return err
	}
	over := row("warm `print(1)` over HTTP", web.one)
	pipes := beside("the same over stdio", stdio.one)
	err = s.turns(ctx, 100, pause, over, pipes)
	s.report.compare("HTTP in a warm call", over, pipes)
	if err = errors.Join(err, s.resident("the bridge's memory with one session", web)); err != nil {
		return err
	}
	hearing, stop := context.WithCancel(ctx)
	defer stop()
	more := s.rounds(1000)
	for range more {
		w := &overHTTP{url: web.wire.(*overHTTP).url} // warmHTTP has made it
		if err := (&client{wire: w, said: web.said}).initialize(ctx); err != nil {
			return err
		}
		if err := w.listen(hearing); err != nil {
			return err
		}
	}
	return s.resident(fmt.Sprintf("the same with %d more, each with its stream open", more), web)
}

// overHTTP carries messages as the bodies of requests and answers.
type overHTTP struct {
	url     string
	session string      // once the server has named it
	process *os.Process // nil in further sessions of a bridge
}

var listening = regexp.MustCompile(`msg=listening.* url=(\S+)\s`)

// warmHTTP starts a bridge that serves over HTTP, and makes calls until containers wait. It ends
// with the part.
func (s *suite) warmHTTP(ctx context.Context) (*client, error) {
	cmd, err := s.command(0)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "serve", "--http", "127.0.0.1:0")
	c := &client{cmd: cmd, said: &tail{}}
	cmd.Stderr, cmd.WaitDelay = c.said, endTimeout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &overHTTP{process: cmd.Process}
	c.wire = w
	s.clients = append(s.clients, c)
	for begun := time.Now(); w.url == ""; {
		if m := listening.FindStringSubmatch(c.said.String()); m != nil {
			w.url = m[1]
		} else if time.Since(begun) > endTimeout || ctx.Err() != nil {
			return nil, c.failed("the bridge does not listen")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.initialize(ctx); err != nil {
		return nil, err
	}
	return c, c.warmUp(ctx)
}

func (w *overHTTP) ask(ctx context.Context, m message) (message, error) {
	res, err := w.do(ctx, http.MethodPost, m, http.StatusOK)
	if err != nil {
		return message{}, err
	}
	defer res.Body.Close()
	if m.Method == "initialize" {
		w.session = res.Header.Get("Mcp-Session-Id")
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return message{}, err
	}
	if res.Header.Get("Content-Type") == "text/event-stream" { // an answer that takes its time
		_, text, _ = bytes.Cut(text, []byte("data: "))
	}
	var answer message
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&answer); err != nil {
		return message{}, fmt.Errorf("%w in %.200q", err, text)
	}
	return answer, nil
}

func (w *overHTTP) tell(ctx context.Context, m message) error {
	res, err := w.do(ctx, http.MethodPost, m, http.StatusAccepted)
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

// listen opens the stream of a session on which it hears what no call is answered with. It has a
// connection of its own until ctx ends.
func (w *overHTTP) listen(ctx context.Context) error {
	_, err := w.do(ctx, http.MethodGet, message{}, http.StatusOK) //nolint:bodyclose // ctx ends it
	return err
}

// do makes a request, whose answer must have that status and is closed by the caller.
func (w *overHTTP) do(
	ctx context.Context, method string, m message, status int,
) (*http.Response, error) {
	var body bytes.Buffer
	if method == http.MethodPost {
		if err := json.NewEncoder(&body).Encode(m); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url, &body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	res, err := http.DefaultClient.Do(r)
	if err == nil && res.StatusCode != status {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return nil, errors.Join(fmt.Errorf("%s: %s", res.Status, said), res.Body.Close())
	}
	return res, err
}

func (w *overHTTP) end() error {
	http.DefaultClient.CloseIdleConnections()
	return w.process.Signal(os.Interrupt)
}
