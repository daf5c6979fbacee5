package console

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestListOfStoppedBridge: a bridge that doesn't answer doesn't keep the list of the others.
func TestListOfStoppedBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		b := newBridgeConn(t.Context(), 1, ours, nil)
		begin := time.Now()
		if all, err := b.list(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", all, err)
		}
		if took := time.Since(begin); took != listTime {
			t.Errorf("it took %v", took)
		}
		b.close()
	})
}
