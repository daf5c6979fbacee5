package bridge

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// afterwards has something done once the request whose handler has ctx is answered, or is over without an answer: what nobody should
// have to wait for. It is done at once where there is no request. It is for the handler's own goroutine.
func afterwards(ctx context.Context, do func()) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		do()
		return
	}
	x.after = append(x.after, do)
}

// answered is called when the request's answer is written, or there is none, and it needs its place no more.
func (x *exchange) answered() {
	for _, do := range x.after {
		do()
	}
}

// maxTelling is how many lines about answered requests may be on their way to the log: who doesn't read it holds up no more than those.
const maxTelling = 64

// teller writes to the log what nobody waits for. Lines that the log doesn't take are left out, and counted in the next one that it does.
// It is safe for concurrent use.
type teller struct {
	log    *slog.Logger
	places chan struct{}
	lost   atomic.Int64
}

func newTeller(log *slog.Logger) *teller {
	return &teller{log: log, places: make(chan struct{}, maxTelling)}
}

func (t *teller) tell(level slog.Level, message string, attrs ...any) {
	select {
	case t.places <- struct{}{}:
	default:
		t.lost.Add(1)
		return
	}
	defer func() { <-t.places }()
	if n := t.lost.Swap(0); n > 0 {
		attrs = append(attrs, "lines_lost", n)
	}
	t.log.Log(context.Background(), level, message, attrs...)
}
