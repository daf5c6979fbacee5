package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Stream is an attached container. What is read are the container's two outputs in pieces, each
// with a header of eight bytes: which output it is, three zeros, the length. What is written is its
// input.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error // ends the container's input
}

// Attach asks an engine for the streams of a container. The connection is its own, which is cut
// when ctx ends before the engine has answered. Neither docker's client nor podman's bindings heed
// a context here, and podman's also trust the length in a header.
func Attach(ctx context.Context, dial Dialer, path string) (Stream, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://d"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	h := &hijacked{Conn: conn, in: bufio.NewReaderSize(conn, 32<<10)}
	if err := request.Write(conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	response, err := http.ReadResponse(h.in, request)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the engine gives no answer: %w", err), conn.Close())
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		return h, nil
	}
	defer conn.Close()
	defer response.Body.Close()
	var says struct{ Message string }
	_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&says)
	return nil, &RefusedError{Status: response.Status, Message: runtime.OneLine(says.Message)}
}

// RefusedError is an engine's refusal to attach.
type RefusedError struct{ Status, Message string }

func (e *RefusedError) Error() string {
	if e.Message == "" {
		return "the engine answers " + e.Status
	}
	return e.Message
}

// hijacked is the connection of a request that has become a stream.
type hijacked struct {
	net.Conn
	in *bufio.Reader
}

func (h *hijacked) Read(p []byte) (int, error) { return h.in.Read(p) }

func (h *hijacked) CloseWrite() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// copySize is of the two buffers that a container has for as long as it lives: there may be a
// thousand of them.
const copySize = 4 << 10

// carry copies a container's streams until the engine ends them, which is no error, or a writer
// fails. It doesn't wait for a reader of standard input that blocks: that goroutine ends with the
// reader, or with its next bytes.
func carry(stream Stream, std runtime.Stdio) error {
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{stream}, std.Stdin, make([]byte, copySize))
		if err == nil {
			_ = stream.CloseWrite() // a container that has ended has no input either
		}
	}()
	buf := make([]byte, copySize)
	var header [8]byte
	for {
		switch _, err := io.ReadFull(stream, header[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		piece := io.LimitReader(stream, int64(binary.BigEndian.Uint32(header[4:])))
		var to io.Writer
		switch header[0] {
		case 0, 1:
			to = std.Stdout
		case 2:
			to = std.Stderr
		case 3:
			said, _ := io.ReadAll(io.LimitReader(piece, 2<<10))
			return fmt.Errorf("the engine says of the container's streams: %s", runtime.OneLine(string(said)))
		default:
			return fmt.Errorf("the engine sent a stream of number %d, and there are only 0 to 3", header[0])
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{to}, piece, buf); err != nil {
			return err
		}
	}
}
