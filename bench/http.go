package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// sessions is how many are open at once in part k.
const sessions = 1000

// served is a bridge that serves over HTTP.
type served struct {
	cmd    *exec.Cmd
	url    string
	drawn  chan struct{} // closed when its log has ended
	client http.Client
}

var listening = regexp.MustCompile(`msg=listening.* url=(\S+)`)

// listenHTTP starts a bridge on a port of loopback.
func (l *lab) listenHTTP() (*served, error) {
	cmd, err := l.command(nil)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args, "serve", "--http", "127.0.0.1:0")
	cmd.WaitDelay = 20 * time.Second
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &served{cmd: cmd, drawn: make(chan struct{})}
	lines := bufio.NewScanner(log)
	for h.url == "" && lines.Scan() {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			h.url = m[1]
		}
	}
	go func() { // until the program ends, which close waits for
		defer close(h.drawn)
		_, _ = io.Copy(io.Discard, log)
	}()
	if h.url == "" {
		return nil, errors.Join(errors.New("the bridge doesn't listen"), h.close())
	}
	return h, nil
}

// close ends the bridge and waits for it.
func (h *served) close() error {
	h.client.CloseIdleConnections()
	if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	<-h.drawn
	return h.cmd.Wait()
}

// post sends a message of a session, none if that is empty, and returns the answer and its session.
func (h *served) post(
	ctx context.Context, session, method string, params any,
) (json.RawMessage, string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, "", err
	}
	answer, err := h.do(ctx, http.MethodPost, session, body)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.Header.Get("Content-Type") == "text/event-stream" { // an answer that takes its time
		_, text, _ = bytes.Cut(text, []byte("data: {"))
		text = append([]byte("{"), text...)
	}
	var m message
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &m) != nil || m.Error != nil {
		return nil, "", fmt.Errorf("%s: %s, %.500s, %w", method, answer.Status, text, err)
	}
	return m.Result, answer.Header.Get("Mcp-Session-Id"), nil
}

// do makes a request of a session, whose answer the caller closes.
func (h *served) do(ctx context.Context, method, session string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return h.client.Do(r)
}

// begin opens a session, as clients do: it says that it is initialized.
func (h *served) begin(ctx context.Context) (session string, err error) {
	_, session, err = h.post(ctx, "", "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "0"},
	})
	if err != nil {
		return "", err
	}
	answer, err := h.do(ctx, http.MethodPost, session,
		[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("notifications/initialized: %s", answer.Status)
	}
	return session, errors.Join(err, answer.Body.Close())
}

// listen opens the stream of a session on which it hears what no call is answered with. It has a
// connection of its own until ctx ends.
func (h *served) listen(ctx context.Context, session string) error {
	answer, err := h.do(ctx, http.MethodGet, session, nil) //nolint:bodyclose // ctx ends it
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET: %s", answer.Status)
	}
	return err
}

// python runs printOne, and returns how long it took.
func (h *served) python(ctx context.Context, session string) (time.Duration, error) {
	begin := time.Now()
	result, _, err := h.post(ctx, session, "tools/call", map[string]any{
		"name": "run_python", "arguments": map[string]any{"code": printOne, "servers": []string{}},
	})
	took := time.Since(begin)
	if err == nil && !strings.Contains(string(result), `"1\n"`) {
		err = fmt.Errorf("got %.500s", result)
	}
	return took, err
}

// overHTTP has one bridge called over stdio and another one over HTTP, in turns, and then opens
// sessions.
func (s *suite) overHTTP(ctx context.Context) error {
	h, err := s.listenHTTP()
	if err != nil {
		return err
	}
	return errors.Join(s.measureHTTP(ctx, h), h.close())
}

func (s *suite) measureHTTP(ctx context.Context, h *served) error {
	session, err := h.begin(ctx)
	if err != nil {
		return err
	}
	for range warmups {
		if _, err := h.python(ctx, session); err != nil {
			return err
		}
		sleep(ctx, pause)
	}
	var web, stdio, rest, many, heard series
	err = s.withWarm(ctx, nil, func(c *client) error {
		for range s.rounds(200) {
			if !sleep(ctx, pause) {
				break
			}
			web.took(h.python(ctx, session))
			sleep(ctx, pause) // its container's end is no part of the next one's turn
			_, took, err := c.python(ctx, printOne, "1\n", noServers)
			stdio.took(took, err)
		}
		return nil
	})
	rest.add(resident(h.cmd.Process.Pid))
	listening, stop := context.WithCancel(ctx)
	defer stop()
	var all []string
	for range s.rounds(sessions) {
		session, err := h.begin(ctx)
		if err != nil {
			return err
		}
		all = append(all, session)
	}
	many.add(resident(h.cmd.Process.Pid))
	for _, session := range all {
		if err := h.listen(listening, session); err != nil {
			return err
		}
	}
	heard.add(resident(h.cmd.Process.Pid))
	s.report.figure("k", "warm run_python of print(1) over HTTP", "ms", web, false)
	s.report.figure("k", "the same over stdio", "ms", stdio, true)
	s.report.compare("k", "HTTP in a warm call", web, stdio, "ms")
	s.report.figure("k", "the bridge's memory with a session", "MB", rest, false)
	s.report.figure("k", fmt.Sprintf("the same with %d more", len(all)), "MB", many, false)
	s.report.figure("k", "the same, each with its stream open", "MB", heard, false)
	return err
}
