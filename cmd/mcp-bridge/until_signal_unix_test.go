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
		cause := context.Cause(ctx)
		if !errors.Is(cause, context.Canceled) || interrupted(ctx) != (want == syscall.SIGINT) {
			t.Errorf("%v: got %v", want, cause)
		}
		stop()
	}
	ctx, stop := untilSignal(t.Context())
	stop()
	if cause := context.Cause(ctx); cause != context.Canceled || interrupted(ctx) {
		t.Errorf("stopped by %v", cause)
	}
}
