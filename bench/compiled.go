package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// maxCompiled bounds what the compiler may write, in bytes.
const maxCompiled = 4 << 20

// compile is the guest's source with the code that the Python of a container's image makes of it, which is what the bridge sends each guest
// but the first few of an image. It is made as the bridge makes it, once, in a container with the same lock-down.
func (e *engine) compile(ctx context.Context, c container) (source []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := e.create(ctx, compiling(c))
	if err != nil {
		return nil, err
	}
	said := &tail{limit: 2 << 10}
	line, err := e.filter(ctx, id, entrypoint.Source(), said)
	if err == nil {
		source, err = entrypoint.SourceWith(line)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("compiling the guest's source: %w; %s", err, said), e.remove(context.WithoutCancel(ctx), id))
		return nil, err
	}
	return source, e.gone(ctx, id)
}

// compiling is a container that runs the compiler in the guest's place.
func compiling(c container) container {
	return c.without("command").with("entrypoint", entrypoint.Compiler())
}

// filter starts a container, gives it all of its standard input and returns all that it writes to its standard output.
func (e *engine) filter(ctx context.Context, id string, input []byte, stderr io.Writer) (output []byte, err error) {
	conn, in, err := e.attach(ctx, id)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := e.start(ctx, id); err != nil {
		return nil, err
	}
	if _, err := conn.Write(input); err != nil {
		return nil, err
	}
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return nil, fmt.Errorf("podman's socket, %T, has no end of its own for what is sent", conn)
	}
	if err := half.CloseWrite(); err != nil {
		return nil, err
	}
	output, err = io.ReadAll(io.LimitReader(&streams{in: in, stderr: stderr}, maxCompiled+1))
	if err == nil && len(output) > maxCompiled {
		err = fmt.Errorf("it has written more than %d bytes", maxCompiled)
	}
	return output, err
}
