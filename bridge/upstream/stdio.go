package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	exitWait  = 500 * time.Millisecond // for the exit of a server that closed its output, to be able to say how it ended
	leftGrace = 500 * time.Millisecond // for what a server left behind, between SIGTERM and SIGKILL
	drainWait = 300 * time.Millisecond // for the rest of the output of a server that has ended
)

// process is a server that runs as our child, with its standard streams.
//
// mcp-go is given our own streams (transport.NewIO) instead of the command, because its own transport ends a process but not
// its group, closes stderr before the process had a chance to say goodbye, blocks all callers while a server doesn't read,
// and has no limit for a line.
type process struct {
	s       *session
	proc    *guard.Process
	stdout  *os.File // our ends
	stderr  *os.File
	out     *outbox
	errors  *ring         // on stderr
	saidAll chan struct{} // stderr ended
	tr      *transport.Stdio
	copying sync.WaitGroup
	endErr  error
}

// startProcess starts the server's process and makes everything that reads and writes for it.
func startProcess(s *session) (*process, error) {
	environ := s.cfg.Environ
	if environ == nil {
		environ = os.Environ()
	}
	cmd, err := command(s.server, environ)
	if err != nil {
		return nil, err
	}
	files, err := openStreams()
	if err != nil {
		return nil, err
	}
	p := &process{s: s, errors: &ring{mask: s.mask}, saidAll: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files.theirs[0], files.theirs[1], files.theirs[2]
	p.proc, err = guard.LaunchTracked(cmd, s.cfg.Guard)
	closeAll(files.theirs[:])
	if err != nil {
		closeAll(files.ours[:])
		return nil, startError(s.server, err)
	}
	p.stdout, p.stderr = files.ours[1], files.ours[2]
	p.out = newOutbox(files.ours[0], s.cfg.MaxBacklog, s.cfg.StallTimeout, s.fail)
	s.asks = newQuestions(s.server.Name, s.cfg.Log, p.out.reply)
	s.in = newInbox(p.stdout, s.cfg.MaxLine, s.mask, s.asks, p.errors.noise, s.fail)
	p.tr = transport.NewIO(s.in, p.out, nil)
	return p, nil
}

// streams are the two ends of each standard stream of a child.
type streams struct{ ours, theirs [3]*os.File }

func openStreams() (s streams, err error) {
	for i := range s.ours {
		if i < 2 {
			s.ours[i], s.theirs[i], err = pair(i == 0)
		} else { // a pipe: shell scripts write to /dev/stderr, which a socket doesn't allow
			s.ours[i], s.theirs[i], err = os.Pipe()
		}
		if err != nil {
			closeAll(s.ours[:i])
			closeAll(s.theirs[:i])
			return s, fmt.Errorf("opening its standard streams: %w", err)
		}
	}
	return s, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// renumbered gives requests other ids than a client before it on the same transport has used. The transport forgets an id only
// after it has handed over its answer, and would forget a new request of the same id with it.
type renumbered struct{ transport.Interface }

func (r renumbered) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	if id, ok := req.ID.Value().(int64); ok {
		req.ID = mcp.NewRequestId(id + 1<<32)
	}
	return r.Interface.SendRequest(ctx, req)
}

// open is always the same transport: there is only one pair of streams.
func (p *process) open(modern bool) (transport.Interface, error) {
	if modern {
		return renumbered{p.tr}, nil
	}
	return p.tr, nil
}

func (p *process) instead(error) bool { return false }

func (p *process) serve() {
	p.copying.Go(p.out.send)
	p.copying.Go(func() {
		p.errors.drain(p.stderr)
		close(p.saidAll)
	})
}

func (p *process) post(line []byte) { _, _ = p.out.Write(line) }

func (p *process) left() <-chan struct{} { return p.proc.Exited() }

func (p *process) hangUp() { _ = p.tr.Close() } // closes the server's stdin

func (p *process) modernFirst() bool { return false }

func (p *process) said() string { return p.errors.tail() }

// end waits for the process to go now that its stdin is closed, and then ends its group.
func (p *process) end() error {
	p.copying.Go(func() { _, _ = io.Copy(io.Discard, p.stdout) })
	within(p.s.cfg.CloseTimeout*3/10, p.proc.Exited())
	p.endErr = p.proc.End(p.s.cfg.CloseTimeout * 3 / 10)
	within(drainWait, p.saidAll)
	closeAll([]*os.File{p.stdout, p.stderr}) // somebody may hold the other ends
	p.copying.Wait()
	return p.endErr
}

// autopsy first waits a moment, where the server ended by itself, for the rest of its output, which may hold answers, and for
// its exit status.
func (p *process) autopsy(reason error) error {
	if !errors.Is(reason, errOutputEnded) && !errors.Is(reason, errInputClosed) && !errors.Is(reason, errLeft) {
		return reason
	}
	if !within(exitWait, p.proc.Exited()) {
		within(drainWait, p.saidAll)
		return reason
	}
	p.endErr = p.proc.End(leftGrace)
	within(drainWait, p.s.in.eof)
	within(drainWait, p.saidAll)
	state := "unknown status"
	if st := p.proc.State(); st != nil {
		state = st.String()
	}
	return over("it ended by itself (%s)", state)
}
