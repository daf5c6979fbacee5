package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/trust"
)

const (
	peerWait   = 2 * time.Second // for another bridge's answer
	maxMessage = 8 << 20         // bytes of a message or an answer
	ending     = ".sock"
)

// What bridges say to each other.
const (
	doJoin    = "join"    // what do you know?
	doLearn   = "learn"   // this is let in, and code is run since then
	doApprove = "approve" // the user has said yes
)

// message is one line of JSON, as its answer is.
type message struct {
	Do    string            `json:"do"`
	ID    string            `json:"id,omitempty"`
	Known map[string]string `json:"known,omitempty"`
	Since time.Time         `json:"since,omitzero"`
}

// reply is the answer to any message.
type reply struct {
	state
	Since time.Time `json:"since,omitzero"`
}

// door is where others reach this process.
type door struct {
	listener net.Listener
	path     string
	answers  sync.WaitGroup
}

// listen makes this process one that others reach.
func (a *Approvals) listen() {
	if a.cfg.Sockets == "" {
		return
	}
	err := os.MkdirAll(a.cfg.Sockets, 0o700)
	if err == nil {
		err = runtime.OwnRuntimeDir(a.cfg.Sockets)
	}
	if err != nil {
		a.cfg.Log.Warn("other bridges can't be told which servers are approved", "err", err)
		return
	}
	path := filepath.Join(a.cfg.Sockets, fmt.Sprintf("%d-%x%s", os.Getpid(), time.Now().UnixNano(), ending))
	l, err := net.Listen("unix", path) // in a directory that only its owner can enter
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		a.cfg.Log.Warn("other bridges can't be told which servers are approved", "err", err)
		return
	}
	d := &door{listener: l, path: path}
	a.mu.Lock()
	a.door = d
	a.mu.Unlock()
	d.answers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // such as no descriptor is left
				continue
			}
			d.answers.Go(func() { a.answer(conn) })
		}
	})
}

func (d *door) close() {
	_ = d.listener.Close() // which removes the socket too
	d.answers.Wait()
}

// answer does what another process says.
func (a *Approvals) answer(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(peerWait))
	var m message
	if json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&m) != nil {
		return
	}
	if m.Do == doApprove {
		a.approve(m.ID)
	}
	a.mu.Lock()
	if m.Do == doLearn {
		a.learn(state{Known: m.Known})
		a.serving(m.Since)
		a.keep()
	}
	text, err := json.Marshal(reply{a.bounded(), a.since})
	a.mu.Unlock()
	if err == nil {
		_, _ = conn.Write(append(text, '\n'))
	}
	if m.Do == doApprove && a.cfg.Changed != nil {
		a.cfg.Changed()
	}
}

// send says something to all other bridges, and returns their answers; silent means that one is there and doesn't answer.
func (a *Approvals) send(m message) (replies []reply, silent bool) {
	entries, err := os.ReadDir(a.cfg.Sockets)
	if a.cfg.Sockets == "" || err != nil || runtime.OwnRuntimeDir(a.cfg.Sockets) != nil {
		return nil, false
	}
	a.mu.Lock()
	own := ""
	if a.door != nil {
		own = filepath.Base(a.door.path)
	}
	a.mu.Unlock()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ending) || e.Name() == own {
			continue
		}
		r, err := tell(filepath.Join(a.cfg.Sockets, e.Name()), m)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED): // of one that is dead
			_ = os.Remove(filepath.Join(a.cfg.Sockets, e.Name()))
		case errors.Is(err, fs.ErrNotExist): // of one that has just ended
		case err != nil:
			silent = true
		default:
			replies = append(replies, r)
		}
	}
	return replies, silent
}

func tell(socket string, m message) (r reply, err error) {
	conn, err := net.DialTimeout("unix", socket, peerWait)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(peerWait))
	text, err := json.Marshal(m)
	if err != nil {
		return r, err
	}
	if _, err = conn.Write(append(text, '\n')); err != nil {
		return r, err
	}
	return r, json.NewDecoder(io.LimitReader(conn, maxMessage)).Decode(&r)
}
