package streamable

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// maxRefusals is how many refusals are logged in a minute: who is turned away may try without end.
const maxRefusals = 5

// refusals logs requests that aren't let in.
type refusals struct {
	log *slog.Logger

	mu     sync.Mutex
	since  time.Time // of the minute
	logged int       // in it
	silent int       // that weren't logged since the last that was
}

// add logs one that is answered with a status, or counts it.
func (l *refusals) add(r *http.Request, status int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= time.Minute {
		l.since, l.logged = now, 0
	}
	if l.logged == maxRefusals {
		l.silent++
		return
	}
	l.logged++
	l.log.Warn("a request was refused", "status", status, "why", why, "peer", r.RemoteAddr,
		"not_logged", l.silent)
	l.silent = 0
}
