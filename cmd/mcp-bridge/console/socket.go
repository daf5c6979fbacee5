// Package console is how the user works on the sandboxes of bridges that are running: a socket of
// each bridge, for this user alone, and the commands that use it.
package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Socket is where a bridge listens to its user. It is there from the first sandbox on.
type Socket struct {
	once   sync.Once
	cancel context.CancelFunc // nil before there is a socket
	work   sync.WaitGroup
}

// Config is what a bridge has for its socket.
type Config struct {
	State string                              // directory of the user's state
	Serve func(context.Context, net.Listener) // until the context ends
	File  func(path string) (forget func())   // has a file removed when the bridge is killed
	Log   *slog.Logger
}

// Open makes the socket, once. What keeps it from being made is logged: the bridge works without.
func (s *Socket) Open(c Config) {
	s.once.Do(func() {
		dir, name, err := place(c.State)
		if err == nil {
			err = s.listen(c, filepath.Join(dir, name+strconv.Itoa(os.Getpid())+".sock"))
		}
		if err != nil {
			c.Log.Warn("mcp-bridge sandbox can't reach this bridge", "err", err)
		}
	})
}

func (s *Socket) listen(c Config, path string) error {
	if conn, err := net.Dial("unix", path); err == nil {
		return errors.Join(fmt.Errorf("another process listens to %s", path), conn.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a dead bridge with our PID
		return err
	}
	forget := c.File(path)
	l, err := net.Listen("unix", path) // in a directory of the user's alone
	if err != nil {
		forget()
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		forget()
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.work.Go(func() {
		c.Serve(ctx, l)
		l.Close() // which removes the file
		forget()
	})
	return nil
}

// Close ends the socket and what is done over it.
func (s *Socket) Close() {
	s.once.Do(func() {}) // none is made any more
	if s.cancel != nil {
		s.cancel()
		s.work.Wait()
	}
}

// place returns the directory of sockets, and what the names of ours begin with. The name of
// a directory for state is in it, so that bridges of other settings have others.
func place(state string) (dir, name string, err error) {
	sum := sha256.Sum256([]byte(state))
	name = fmt.Sprintf("mcp-bridge.sandboxes.%x.", sum[:4])
	if dir = os.Getenv("XDG_RUNTIME_DIR"); dir != "" && trust.System().OwnDirectory(dir) == nil {
		return dir, name, nil
	}
	if state == "" {
		return "", "", errors.New("there is no place for its socket; set XDG_RUNTIME_DIR or HOME")
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", "", err
	}
	return state, name, trust.System().OwnDirectory(state)
}
