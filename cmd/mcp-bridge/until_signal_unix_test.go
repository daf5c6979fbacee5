//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// TestUntilSignal: the cause of the context's end is the signal, and a cancellation.
func TestUntilSignal(t *testing.T) {
	for _, want := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ctx, stop := untilSignal(t.Context())
		must(t, sendSignal(os.Getpid(), want))
		<-ctx.Done()
		var got signalError
		if cause := context.Cause(ctx); !errors.As(cause, &got) || got.Signal != want ||
			!errors.Is(cause, context.Canceled) {
			t.Errorf("got %v, want %v", cause, want)
		}
		stop()
	}
	ctx, stop := untilSignal(t.Context())
	stop()
	if cause := context.Cause(ctx); cause != context.Canceled {
		t.Errorf("stopped by %v", cause)
	}
}
