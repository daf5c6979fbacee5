package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

// SSHArgs returns the arguments with which ssh reaches the host of an endpoint, some options more
// among them. It never asks for a password, which nothing could answer. The user's settings of
// keys and hosts hold. But they may hand more to a host than an engine needs: the agent, the
// screen, a shared connection that outlives this one. Here it gets none of that.
func SSHArgs(u *url.URL, options ...string) ([]string, error) {
	host, user := u.Hostname(), u.User.Username()
	if _, has := u.User.Password(); has {
		return nil, errors.New("it has a password in it, which ssh doesn't take: use a key")
	}
	switch {
	case host == "", strings.HasPrefix(host, "-"), strings.HasPrefix(user, "-"):
		return nil, errors.New("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("an ssh URL is ssh://[user@]host[:port][/socket]")
	}
	args := []string{"-T"}
	for _, o := range append([]string{
		"BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
		"ControlMaster=no", "ControlPath=none",
	}, options...) {
		args = append(args, "-o", o)
	}
	if user != "" {
		args = append(args, "-l", user)
	}
	if port := u.Port(); port != "" {
		args = append(args, "-p", port)
	}
	return append(args, "--", host), nil
}

// Relays are programs whose standard input and output are connections to an engine.
type Relays struct {
	mu     sync.Mutex
	closed bool
	all    map[*relay]bool
}

// relay is one program as a net.Conn.
type relay struct {
	in, out *os.File // the program's
	process *guard.Process
	said    *runtime.Tail
	forget  func()

	heard atomic.Bool // anything at all
	once  sync.Once
}

// relayGrace is the time between a relay's polite end and its hard one.
const relayGrace = time.Second

// Start starts a program in a process group of its own, which ends with the connection. Its
// environment has what ssh and engines read, and none of the user's secrets.
func (rs *Relays) Start(ctx context.Context, groups guard.Groups, name string, args ...string) (net.Conn,
	error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), in.Close())
	}
	said := &runtime.Tail{Limit: 2 << 10}
	cmd := exec.Command(name, args...) //nolint:noctx // ended as a group
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, said
	cmd.Env = runtime.EngineEnviron()
	cmd.WaitDelay = time.Second // for a ProxyCommand of ssh's, which may live on and hold stderr
	p, err := guard.Launch(cmd, groups)
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: name, Err: errors.Join(err, in.Close(), out.Close())}
	}
	r := &relay{in: in, out: out, process: p, said: said}
	r.forget = func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		delete(rs.all, r)
	}
	rs.mu.Lock()
	closed := rs.closed
	if rs.all == nil {
		rs.all = map[*relay]bool{}
	}
	rs.all[r] = true
	rs.mu.Unlock()
	if closed { // since the caller looked; Close has not seen this one
		return nil, errors.Join(ErrClosed, r.Close())
	}
	return r, nil
}

// Close ends all of them.
func (rs *Relays) Close() {
	rs.mu.Lock()
	rs.closed = true
	var all []*relay
	for r := range rs.all {
		all = append(all, r)
	}
	rs.mu.Unlock()
	for _, r := range all {
		_ = r.Close()
	}
}

func (r *relay) Read(p []byte) (int, error) {
	n, err := r.out.Read(p)
	if n > 0 {
		r.heard.Store(true)
	}
	return n, r.explain(err)
}

func (r *relay) Write(p []byte) (int, error) {
	n, err := r.in.Write(p)
	return n, r.explain(err)
}

// explain returns why the program ended, where it did so without a word of the engine's.
func (r *relay) explain(err error) error {
	if r.heard.Load() || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	_ = r.process.End(relayGrace) // its last words are in once it is reaped
	why := fmt.Errorf("ssh ended: %s", runtime.OneLine(r.said.String()))
	return &net.OpError{Op: "dial", Net: "ssh", Err: why}
}

// CloseWrite ends the program's standard input.
func (r *relay) CloseWrite() error { return r.in.Close() }

// Close ends the program and returns when it is gone.
func (r *relay) Close() error {
	err := os.ErrClosed
	r.once.Do(func() {
		r.in.Close()
		err = errors.Join(r.out.Close(), r.process.End(relayGrace))
		r.forget()
	})
	return err
}

func (r *relay) SetDeadline(t time.Time) error {
	return errors.Join(r.out.SetReadDeadline(t), r.in.SetWriteDeadline(t))
}

func (r *relay) SetReadDeadline(t time.Time) error { return r.out.SetReadDeadline(t) }

func (r *relay) SetWriteDeadline(t time.Time) error { return r.in.SetWriteDeadline(t) }

func (r *relay) LocalAddr() net.Addr { return relayAddr{} }

func (r *relay) RemoteAddr() net.Addr { return relayAddr{} }

type relayAddr struct{}

func (relayAddr) Network() string { return "ssh" }

func (relayAddr) String() string { return "ssh" }
