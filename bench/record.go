package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A box is what the bridge asks podman for and sends its guest, as it was heard between the two. So
// the baselines have the very same lock-down and guest, whatever they become.
type box struct {
	image   string
	create  []byte         // the body of podman's create request
	source  []byte         // what a guest is sent first
	execute map[string]any // the frame
}

// order returns the frame that has a guest run code.
func (b *box) order(code string) ([]byte, error) {
	frame := maps.Clone(b.execute)
	frame["code"] = code
	text, err := json.Marshal(frame)
	return append(text, '\n'), err
}

// warmups is how many calls come before the one that is heard: after a few guests of an image the
// bridge sends code that the image's own Python has compiled.
const warmups = 5

// listen has a bridge run code over a socket that is listened in on.
func (l *lab) listen(ctx context.Context) (_ *box, err error) {
	socket := filepath.Join(l.dir, "heard.sock")
	heard, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	e := &ear{to: l.podman.socket}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "podman"})
	proxy.Transport = &http.Transport{DialContext: e.dial}
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that the bridge gives up
	server := &http.Server{Handler: proxy}      //nolint:gosec // a socket of ours
	done := make(chan error, 1)
	go func() { done <- server.Serve(heard) }()
	defer func() {
		_ = server.Close() // connections are the bridge's, which has ended
		<-done
	}()

	c, err := l.serve(ctx, nil, "MCP_BRIDGE_RUNTIME=unix://"+socket, "MCP_BRIDGE_STANDBY=0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for range warmups {
		e.forget()
		if _, _, err := c.python(ctx, "print(1)", "1\n", noServers); err != nil {
			return nil, err
		}
		sleep(ctx, pause)
	}
	return e.heard(l.dir)
}

// An ear keeps what is written to the connections that it dials.
type ear struct {
	to string

	mu   sync.Mutex
	said []*bytes.Buffer
}

func (e *ear) dial(context.Context, string, string) (net.Conn, error) {
	conn, err := net.Dial("unix", e.to)
	if err != nil {
		return nil, err
	}
	return &heardConn{conn, e, nil}, nil
}

func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = nil
}

type heardConn struct {
	net.Conn
	ear  *ear
	kept *bytes.Buffer
}

func (c *heardConn) Write(b []byte) (int, error) {
	c.ear.mu.Lock()
	if c.kept == nil || len(c.ear.said) == 0 {
		c.kept = &bytes.Buffer{}
		c.ear.said = append(c.ear.said, c.kept)
	}
	c.kept.Write(b)
	c.ear.mu.Unlock()
	return c.Conn.Write(b)
}

// heard puts a box together out of what the connections have carried.
func (e *ear) heard(dir string) (*box, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &box{}
	for _, said := range e.said {
		in := bufio.NewReader(said)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				break
			}
			body, _ := io.ReadAll(req.Body)
			switch {
			case strings.HasSuffix(req.URL.Path, "/containers/create") && bytes.Contains(body, []byte("python3")):
				if err := b.created(body, dir); err != nil {
					return nil, err
				}
			case strings.HasSuffix(req.URL.Path, "/attach"):
				if err := b.sent(in); err != nil {
					return nil, err
				}
			}
		}
	}
	if b.create == nil || b.source == nil || b.execute == nil {
		return nil, errors.New("between bridge and podman nothing was heard of a container, its guest or its code")
	}
	return b, nil
}

// created takes a create request without what belongs to the bridge's own container.
func (b *box) created(body []byte, dir string) error {
	var c map[string]any
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	delete(c, "name")
	c["labels"] = map[string]any{"io.mcp-bridge.bench": "1"}
	if path, ok := c["seccomp_profile_path"].(string); ok { // the file goes with the bridge
		text, err := os.ReadFile(path) //nolint:gosec // what the bridge has named
		kept := filepath.Join(dir, "seccomp.json")
		if err == nil {
			err = os.WriteFile(kept, text, 0o600)
		}
		if err != nil {
			return err
		}
		c["seccomp_profile_path"] = kept
	}
	b.image, _ = c["image"].(string)
	var err error
	b.create, err = json.Marshal(c)
	return err
}

// sent takes what a guest was sent: a line of lengths, as many bytes of source, then frames.
func (b *box) sent(in *bufio.Reader) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil //nolint:nilerr // a container that is not the guest's
	}
	size := 0
	for _, word := range strings.Fields(string(line)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("the guest's source begins with %.80q", line)
		}
		size += n
	}
	source := make([]byte, size)
	if _, err := io.ReadFull(in, source); err != nil {
		return nil //nolint:nilerr // likewise
	}
	b.source = append(line, source...)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the end of what was heard
		}
		var frame map[string]any
		if json.Unmarshal(line, &frame) == nil && frame["type"] == "execute" {
			b.execute = frame
		}
	}
}
