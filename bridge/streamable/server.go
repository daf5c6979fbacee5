package streamable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// Serve answers the connections of l, over TLS if there are the files of a certificate and its
// key, which are read again when they change, until ctx ends. Then it finishes the calls that run,
// for DrainTime, and closes the Handler. What doesn't end in a few seconds is left behind. It
// returns nil if that was why it ended.
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
	if !h.cfg.Proxied {
		l = newPeers(l, max(1, maxConns()/ofPeer), h.cfg.Log)
	}
	ended := make(chan error, 1)
	go func() {
		if cert != "" {
			server.TLSConfig = &tls.Config{GetCertificate: (&keyPair{cert: cert, key: key, log: h.cfg.Log}).get}
			ended <- server.ServeTLS(l, "", "")
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.cfg.DrainTime)
	defer cancel()
	if left := h.Drain(ctx); left > 0 {
		h.cfg.Log.Warn("calls are ended that still run", "calls", left, "waited", h.cfg.DrainTime)
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

// Drain takes no new calls, and waits for those that run until ctx ends. It returns how many are
// left.
func (h *Handler) Drain(ctx context.Context) (left int) {
	running := h.calls.stop() // first: who is refused a session is told why by that
	h.sessions.refuseNew()
	if running > 0 {
		h.cfg.Log.Info("no new calls are taken, and those that run are finished", "calls", running)
	}
	select {
	case <-h.calls.drained:
	case <-ctx.Done():
	}
	left, _ = h.calls.count()
	return left
}

// Close ends all sessions and calls, and waits for them. Requests that still come are refused.
func (h *Handler) Close() {
	h.calls.stop()
	h.sessions.close()
}

// keyPair is a certificate and its key, in files that are replaced when it is renewed.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu   sync.Mutex
	read [2]fs.FileInfo // when they were read
	last *tls.Certificate
}

// get returns what the files hold. While that can't be used, as between the writing of the one and
// of the other, it returns what they held before.
func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now [2]fs.FileInfo
	changed := false
	for i, name := range []string{p.cert, p.key} {
		info, err := os.Stat(name)
		if now[i] = info; err != nil {
			now[i] = nil
		}
		was := p.read[i]
		changed = changed || (info == nil) != (was == nil) || info != nil && (!os.SameFile(info, was) ||
			!info.ModTime().Equal(was.ModTime()) || info.Size() != was.Size())
	}
	if !changed && p.last != nil {
		return p.last, nil
	}
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	p.read = now
	switch {
	case err == nil && p.last != nil:
		p.log.Info("the certificate was read again", "until", pair.Leaf.NotAfter)
	case err != nil && p.last != nil:
		p.log.Warn("the certificate has changed and can't be used; the one before is shown", "err", err,
			"next", "write the PEM files of a certificate and of its key to where they were")
		return p.last, nil
	case err != nil:
		return nil, err
	}
	p.last = &pair
	return p.last, nil
}
