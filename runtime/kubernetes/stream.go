//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// stream is an attached pod as an engine.Stream: what client-go hands over of two outputs, in
// pieces with a header each. It keeps the container's first answer to itself.
type stream struct {
	*io.PipeReader // the pieces
	pod            string
	in             *io.PipeWriter
	cut            context.CancelFunc
	asked          sync.Once     // whether the container is there
	answered       chan struct{} // closed by its answer
	over           chan struct{} // closed once nothing more comes
	err            error         // why; set before over is closed
}

// attach connects to a pod that runs. The connection is tried in the background, and Start says
// what came of it.
func (c *cluster) attach(id string) (*stream, error) {
	url := c.cli.CoreV1().RESTClient().Post().Resource("pods").Namespace(c.namespace).Name(id).
		SubResource("attach").VersionedParams(&corev1.PodAttachOptions{
		Container: container, Stdin: true, Stdout: true, Stderr: true,
	}, scheme.ParameterCodec).URL()
	web, err := remotecommand.NewWebSocketExecutor(c.cfg, "GET", url.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.cfg, "POST", url)
	if err != nil {
		return nil, err
	}
	either, err := remotecommand.NewFallbackExecutor(web, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.d.leases.streaming())
	stdin, in := io.Pipe()
	out, pieces := io.Pipe()
	s := &stream{PipeReader: out, pod: id, in: in, cut: cancel, answered: make(chan struct{}),
		over: make(chan struct{})}
	go func() {
		defer cancel()
		var mu sync.Mutex
		err := either.StreamWithContext(ctx, remotecommand.StreamOptions{
			Stdin:  stdin,
			Stdout: &answer{to: &output{number: 1, mu: &mu, to: pieces}, seen: s.answered},
			Stderr: &output{number: 2, mu: &mu, to: pieces},
		})
		var exit interface{ ExitStatus() int }
		if errors.As(err, &exit) { // it has ended, with a code that the pod's status has too
			err = nil
		}
		s.err = err
		close(s.over)
		stdin.CloseWithError(io.ErrClosedPipe)
		pieces.CloseWithError(err) // nil is the end
	}()
	return s, nil
}

var errNoGate = errors.New("its stream ended before the container answered")

// open has the container run its program, and returns once it has answered, or why it doesn't.
func (s *stream) open(ctx context.Context) error {
	s.asked.Do(func() {
		go func() { _, _ = s.in.Write([]byte("\n")) }() // ends with the stream
	})
	select {
	case <-s.answered:
		return nil
	case <-s.over:
		select {
		case <-s.answered: // and ended at once
			return nil
		default:
		}
		if s.err != nil {
			return s.err
		}
		return errNoGate
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *stream) Write(p []byte) (int, error) { return s.in.Write(p) }

func (s *stream) CloseWrite() error { return s.in.Close() }

// Close ends the connection, which the container sees as the end of its input.
func (s *stream) Close() error {
	s.cut()
	return errors.Join(s.in.CloseWithError(io.ErrClosedPipe), s.PipeReader.Close())
}

// abandon leaves a stream to a pod that may be another claim's. It isn't closed, since the pod
// would take that for the end of its input, but ends with the pod or the bridge.
func (s *stream) abandon() {
	go func() { _, _ = io.Copy(io.Discard, s.PipeReader) }()
}

// output writes pieces of one of the two outputs.
type output struct {
	number byte
	mu     *sync.Mutex
	to     io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	header := [8]byte{o.number}
	binary.BigEndian.PutUint32(header[4:], uint32(len(p))) //nolint:gosec // client-go's are of 32 KiB
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.to.Write(header[:]); err != nil {
		return 0, err
	}
	return o.to.Write(p)
}

// ReadFrom copies pieces with a smaller buffer than io.Copy's: each pod that lasts has two of them.
func (o *output) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{o}, r, make([]byte, pieceSize))
}

const pieceSize = 4 << 10

// answer takes the line that answers ours off an output.
type answer struct {
	to   io.Writer
	seen chan struct{}
	done bool
}

func (a *answer) Write(p []byte) (int, error) {
	n := 0
	if !a.done && len(p) > 0 {
		a.done, n = true, 1
		close(a.seen)
	}
	if n == len(p) {
		return n, nil
	}
	m, err := a.to.Write(p[n:])
	return n + m, err
}

// ReadFrom is as output's.
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{a}, r, make([]byte, pieceSize))
}
