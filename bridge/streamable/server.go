package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Serve answers the connections of l, over TLS if there are the files of a certificate and its key,
// until ctx ends. Then it finishes the calls that run, for drainTime, and closes the Handler. What
// doesn't end in a few seconds is left behind. It returns nil if that was why it ended.
func (h *Handler) Serve(ctx context.Context, l net.Listener, cert, key string) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAlive, MaxHeaderBytes: maxHeaders,
		HTTP2: &http.HTTP2Config{
			WriteByteTimeout: writeTimeout, SendPingTimeout: writeTimeout, PingTimeout: ping,
			MaxReceiveBufferPerConnection: maxBuffered, MaxReceiveBufferPerStream: maxBuffered,
		},
		ErrorLog: slog.NewLogLogger(h.cfg.Log.Handler(), slog.LevelDebug),
	}
	l = netutil.LimitListener(l, maxConns())
	ended := make(chan error, 1)
	go func() {
		if cert != "" {
			ended <- server.ServeTLS(l, cert, key)
		} else {
			ended <- server.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		h.closeSoon()
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if left := h.Drain(ctx); left > 0 {
		h.cfg.Log.Warn("calls are ended that still run", "calls", left, "waited", drainTime)
	}
	h.closeSoon()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := server.Shutdown(ctx) // what is left to be written
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended
	return err
}

// closeSoon closes h, and leaves behind what doesn't end.
func (h *Handler) closeSoon() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.Close()
	}()
	select {
	case <-closed:
	case <-time.After(endTime):
		h.cfg.Log.Warn("sessions don't end, and are left behind", "waited", endTime)
	}
}

// begin counts one more call that runs, unless no more are taken.
func (h *Handler) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return false
	}
	h.calls++
	return true
}

// finish is begin's counterpart.
func (h *Handler) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls--
	h.checkDrained()
}

// checkDrained is called with mu held.
func (h *Handler) checkDrained() {
	if h.draining && h.calls == 0 {
		select {
		case <-h.drained:
		default:
			close(h.drained)
		}
	}
}

func (h *Handler) isDraining() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.draining
}

// Drain takes no new calls, and waits for those that run until ctx ends. It returns how many are
// left.
func (h *Handler) Drain(ctx context.Context) (left int) {
	h.mu.Lock()
	h.draining = true
	h.checkDrained()
	if h.calls > 0 {
		h.cfg.Log.Info("no new calls are taken, and those that run are finished", "calls", h.calls)
	}
	h.mu.Unlock()
	select {
	case <-h.drained:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// Close ends all sessions and calls, and waits for them. Requests that still come are refused.
func (h *Handler) Close() {
	h.mu.Lock()
	h.draining = true
	var all []*session
	for _, s := range h.sessions {
		all = append(all, s)
	}
	for _, o := range h.owners {
		if o.shared != nil {
			all = append(all, o.shared)
		}
	}
	for _, s := range all {
		h.remove(s)
	}
	h.mu.Unlock()
	for _, s := range all {
		h.end(s, errEnding)
	}
	h.ends.Wait()
	h.cancel(errEnding)
}
