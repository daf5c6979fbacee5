package streamable

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRefusals is how many refusals of a status are logged in a minute: who is turned away may try
// without end.
const maxRefusals = 5

// refusals logs requests that are refused.
type refusals struct {
	log     *slog.Logger
	proxied bool

	mu       sync.Mutex
	byStatus map[int]*refused
}

// refused are the refusals of a status.
type refused struct {
	since  time.Time // of the minute
	logged int       // in it
	silent int       // that weren't logged since the last that was
}

// add logs one, or counts it.
func (l *refusals) add(r *http.Request, w *seenWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.byStatus[w.status]
	if of == nil {
		of = &refused{}
		l.byStatus[w.status] = of
	}
	if now := time.Now(); now.Sub(of.since) >= time.Minute {
		of.since, of.logged = now, 0
	}
	if of.logged == maxRefusals {
		of.silent++
		return
	}
	of.logged++
	level := slog.LevelInfo
	if w.status == http.StatusUnauthorized || w.status == http.StatusForbidden {
		level = slog.LevelWarn
	}
	about := []any{"status", w.status, "why", w.why, "request", w.name, "peer", r.RemoteAddr}
	if forwarded := r.Header.Values("X-Forwarded-For"); l.proxied && len(forwarded) > 0 {
		about = append(about, "forwarded_for", last(forwarded[len(forwarded)-1]))
	}
	if w.principal != "" {
		about = append(about, "principal", w.principal)
	}
	if id := r.Header.Get(headerSession); len(id) >= idLength {
		about = append(about, "session", shown(id))
	}
	l.log.Log(context.Background(), level, "a request was refused", append(about, "not_logged", of.silent)...)
	of.silent = 0
}

// last returns the last address of a list, which the proxy in front has added.
func last(addresses string) string {
	address := strings.TrimSpace(addresses[strings.LastIndexByte(addresses, ',')+1:])
	return address[:min(len(address), 64)]
}

// seenWriter notes what is seen of a request and its answer.
type seenWriter struct {
	http.ResponseWriter
	name      string // of the request, in the log
	principal string // empty until it is known
	status    int    // of the answer; 0 until it is known
	why       string // the request is refused; empty where it isn't
}

// WriteHeader implements http.ResponseWriter. The peer is given writeTimeout to read the beginning.
func (w *seenWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			w.Header().Set("Connection", "close")
		}
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
