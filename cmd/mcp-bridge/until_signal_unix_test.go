//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/console"
)

// TestUntilSignal: the cause of the context's end is the signal, and a cancellation.
func TestUntilSignal(t *testing.T) {
	for _, want := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(want) { // as SIGHUP is under nohup(1)
			continue
		}
		ctx, stop := untilSignal(t.Context(), new(console.Interrupts).Takes)
		must(t, sendSignal(os.Getpid(), want))
		<-ctx.Done()
		cause := context.Cause(ctx)
		var by signalError
		if !errors.Is(cause, context.Canceled) || interrupted(ctx) != (want == syscall.SIGINT) ||
			!errors.As(cause, &by) || by.signal != want {
			t.Errorf("%v: got %v", want, cause)
		}
		stop()
	}
	ctx, stop := untilSignal(t.Context(), new(console.Interrupts).Takes)
	stop()
	if cause := context.Cause(ctx); cause != context.Canceled || interrupted(ctx) {
		t.Errorf("stopped by %v", cause)
	}
}

// TestUntilSignalUnderNohup: a hang-up that is ignored ends nothing.
func TestUntilSignalUnderNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := untilSignal(t.Context(), new(console.Interrupts).Takes)
	defer stop()
	must(t, sendSignal(os.Getpid(), syscall.SIGHUP))
	must(t, sendSignal(os.Getpid(), syscall.SIGTERM))
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != error(signalError{syscall.SIGTERM}) {
		t.Errorf("got %v", cause)
	}
}
