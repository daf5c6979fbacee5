package streamable_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestRevoked: streams end soon after the token of their client was revoked, and with its stream a
// call of a client without sessions. That it can't be found out whose a token is ends nothing.
func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var status atomic.Int64
		who := func(r *http.Request) (string, error) {
			if n := status.Load(); n != 0 {
				return "", &streamable.Refusal{Status: int(n), Message: "no"}
			}
			return byHeader(r)
		}
		cancelled := make(chan struct{})
		s, _, end := bubble(t, func(ctx context.Context, _ sandbox.Request,
			_ sandbox.Host) (sandbox.Result, error) {
			<-ctx.Done()
			close(cancelled)
			return sandbox.Result{Status: sandbox.StatusCancelled}, nil
		}, who)
		session := s.initialize(latest, `{}`, "X-Who: alice")
		ended := make(chan struct{}, 2)
		call := append(standard("tools/call", "run_python"), "X-Who: alice")
		for _, r := range []*answer{
			s.do(t.Context(), http.MethodGet, "", session...),
			s.do(t.Context(), http.MethodPost, run(1, "x", metaOf("")), call...),
		} {
			go func() {
				_, _ = io.Copy(io.Discard, r.Body)
				ended <- struct{}{}
			}()
		}
		time.Sleep(time.Minute)
		status.Store(http.StatusServiceUnavailable)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatal("a stream has ended")
		}
		status.Store(http.StatusUnauthorized)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if len(ended) != 2 {
			t.Errorf("%d of 2 streams have ended", len(ended))
		}
		select {
		case <-cancelled:
		default:
			t.Error("the call goes on")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
