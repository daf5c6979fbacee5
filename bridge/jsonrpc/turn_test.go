package jsonrpc

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestOrder: requests that are put in order reach their turns so, however their handlers run.
func TestOrder(t *testing.T) {
	var reached []string
	var release chan struct{}
	bubble(t, "", Options{MaxRequests: 3, Accept: func(r *Request) Handler {
		r.Order()
		return func(ctx context.Context) (any, error) {
			switch string(r.ID) {
			case "0":
				<-release
			case "1":
				return 1, nil // it never comes to its turn
			}
			if err := r.Turn.Wait(ctx); err != nil {
				return nil, err
			}
			reached = append(reached, string(r.ID))
			r.Turn.Pass()
			r.Turn.Pass()
			return 0, nil
		}
	}}, func(t *testing.T, p *peer) {
		release = make(chan struct{})
		p.send(`{"id":0,"method":"m"}`, `{"id":1,"method":"m"}`, `{"id":2,"method":"m"}`,
			`{"id":3,"method":"refused"}`)
		close(release)
		for range 4 {
			_, _ = p.out.ReadString('\n')
		}
		if got := strings.Join(reached, " "); got != "0 2" {
			t.Errorf("reached %s, want 0 2", got)
		}
		p.send(`{"id":4,"method":"m"}`)
		p.expect(`{"jsonrpc":"2.0","id":4,"result":0}`)
	})
}

// TestTurnEndsWithItsContext: a request that is cancelled waits for its turn no longer.
func TestTurnEndsWithItsContext(t *testing.T) {
	var release, gaveUp chan error
	bubble(t, "", Options{MaxRequests: 2, Accept: func(r *Request) Handler {
		r.Order()
		return func(ctx context.Context) (any, error) {
			if string(r.ID) == "0" {
				<-release
				return 0, nil
			}
			gaveUp <- r.Turn.Wait(ctx)
			return 1, nil
		}
	}}, func(t *testing.T, p *peer) {
		release, gaveUp = make(chan error), make(chan error, 1)
		p.send(`{"id":0,"method":"m"}`, `{"id":1,"method":"m"}`,
			`{"method":"notifications/cancelled","params":{"requestId":1}}`)
		if err := <-gaveUp; !errors.Is(err, ErrCancelled) {
			t.Errorf("got %v", err)
		}
		close(release)
		p.expect(`{"jsonrpc":"2.0","id":0,"result":0}`)
	})
}
