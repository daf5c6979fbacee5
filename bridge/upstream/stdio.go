package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
)

const (
	exitWait  = 500 * time.Millisecond // for the exit of a server that closed its output, to tell how it ended
	leftGrace = 500 * time.Millisecond // for what a server left behind, between SIGTERM and SIGKILL
	drainWait = 300 * time.Millisecond // for the rest of the output of a server that has ended
)

// process is a server that runs as our child, with its standard streams.
type process struct {
	s       *session
	proc    *guard.Process
	stdin   *os.File // our ends
	stdout  *os.File
	stderr  *os.File
	lines   *jsonrpc.Lines
	eof     chan struct{} // stdout ended, and all of it was received
	errors  *ring         // on stderr
	saidAll chan struct{} // stderr ended
	copying sync.WaitGroup
	endErr  error
}

// startProcess starts the server's process and makes everything that reads and writes for it.
func startProcess(s *session) (*process, error) {
	cmd, err := command(s.server, s.cfg.Environ)
	if err != nil {
		return nil, err
	}
	files, err := openStreams()
	if err != nil {
		return nil, err
	}
	p := &process{s: s, errors: &ring{mask: s.mask}, eof: make(chan struct{}), saidAll: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files.theirs[0], files.theirs[1], files.theirs[2]
	p.proc, err = guard.LaunchTracked(cmd, s.cfg.Guard)
	closeAll(files.theirs[:])
	if err != nil {
		closeAll(files.ours[:])
		return nil, startError(s.server, err)
	}
	p.stdin, p.stdout, p.stderr = files.ours[0], files.ours[1], files.ours[2]
	p.lines = jsonrpc.NewLines(p.stdin, s.cfg.StallTimeout, func() {
		s.fail(over("it has read nothing of its input for %v, and is ended", s.cfg.StallTimeout))
	})
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

// Send implements jsonrpc.Carrier.
func (p *process) Send(ctx context.Context, m *jsonrpc.Message) error { return p.lines.Send(ctx, m) }

// Post implements jsonrpc.Carrier.
func (p *process) Post(m *jsonrpc.Message) bool { return p.lines.Post(m) }

func (p *process) open(context.Context, bool) error { return nil }

// agreed notes that a server of the older protocol tells of changes by itself.
func (p *process) agreed(version string) { p.s.changes.hear(!mcp.IsModernProtocol(version)) }

func (p *process) instead(error) bool { return false }

func (p *process) modernFirst() bool { return false }

func (p *process) serve() {
	p.copying.Go(p.read)
	p.copying.Go(func() {
		<-p.lines.Ended()
		p.s.fail(errInputClosed)
	})
	p.copying.Go(func() {
		p.errors.drain(p.stderr)
		close(p.saidAll)
	})
}

// read receives messages until the server's output ends.
func (p *process) read() {
	in := jsonrpc.NewReader(p.stdout, p.s.cfg.MaxLine)
	in.MaxSkip = p.s.cfg.MaxLine
	err := <-p.s.conn.Read(in)
	close(p.eof)
	if errors.Is(err, jsonrpc.ErrNoEnd) {
		p.s.fail(lineTooLongError(p.s.cfg.MaxLine))
	}
	p.s.fail(errOutputEnded)
}

func (p *process) left() <-chan struct{} { return p.proc.Exited() }

// hangUp closes the server's input. What still waits to be written is dropped.
func (p *process) hangUp() {
	_ = p.stdin.Close()
	_ = p.lines.HangUp(p.s.dying, 0)
}

func (p *process) said() string { return p.errors.tail() }

func (p *process) noise(line []byte) { p.errors.noise(line) }

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

// autopsy first waits a moment, where the server ended by itself, for the rest of its output, which
// may hold answers, and for its exit status.
func (p *process) autopsy(reason error) error {
	if !errors.Is(reason, errOutputEnded) && !errors.Is(reason, errInputClosed) && !errors.Is(reason, errLeft) {
		return reason
	}
	if !within(exitWait, p.proc.Exited()) {
		within(drainWait, p.saidAll)
		return reason
	}
	p.endErr = p.proc.End(leftGrace)
	within(drainWait, p.eof)
	within(drainWait, p.saidAll)
	state := "unknown status"
	if st := p.proc.State(); st != nil {
		state = st.String()
	}
	return over("it ended by itself (%s)", state)
}
