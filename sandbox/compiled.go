package sandbox

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	compileAfter   = 3       // guests that were ready: who runs less gains nothing by it
	maxCompileWait = 10      // doublings of that, one for each try that failed
	maxCompiled    = 4 << 20 // bytes of a guest's code that are kept
	compileTimeout = 30 * time.Second
)

// compiled is the guest's source with the code that the image's own Python has made of it, which spares each further guest to do so. It
// is made once for each image that the bridge uses, in a container like any other that runs nothing else, off everybody's path; it is
// kept in memory only. A guest whose Python is another one passes the code over.
type compiled struct {
	mu     sync.Mutex
	image  string // id
	guests int    // that were ready in containers of it since the last try
	failed int    // tries in a row
	source []byte // nil until it is made
}

// sourceFor is what a guest in a container of an image is to be sent.
func (s *Sandbox) sourceFor(image string) []byte {
	c := &s.compiled
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.image == image && c.source != nil {
		return c.source
	}
	return entrypoint.Source()
}

// seenReady counts a guest, and has the code made when it is time.
func (s *Sandbox) seenReady(m machine) {
	c := &s.compiled
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.image != m.image.ID {
		c.image, c.guests, c.failed, c.source = m.image.ID, 0, 0, nil
	}
	c.guests++
	if c.guests != compileAfter<<min(c.failed, maxCompileWait) {
		return
	}
	select {
	case s.containers <- struct{}{}:
	default:
		c.guests-- // all are in use: the next one tries again
		return
	}
	if s.enter() != nil {
		<-s.containers
		return
	}
	go s.compile(m)
}

// compile runs the compiler once. Where that fails it is tried again after twice as many guests as before, be it for a moment's lack of
// memory or an image that can't ever.
func (s *Sandbox) compile(m machine) {
	defer s.runs.Done()
	defer func() {
		<-s.containers
		s.standby.refill()
	}()
	ctx, cancel := context.WithTimeout(s.life, compileTimeout)
	defer cancel()
	spec := s.spec(m.image.ID)
	spec.Command = entrypoint.Compiler()
	spec.MaxAge = compileTimeout + ageSlack
	out := &headWriter{limit: maxCompiled}
	exit, err := s.driver.Run(ctx, spec, runtime.Stdio{Stdin: bytes.NewReader(entrypoint.Source()), Stdout: out, Stderr: &runtime.Tail{Limit: stderrTail}})
	var source []byte
	if err == nil && exit.Code == 0 && !out.cut {
		source, err = entrypoint.SourceWith(out.data)
	}
	if source == nil {
		s.log.Debug("the guest's code was not compiled ahead", "image", m.image.ID, "code", exit.Code, "err", err)
	}
	c := &s.compiled
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.image != m.image.ID:
	case source == nil:
		c.guests, c.failed = 0, c.failed+1
	default:
		c.source = source
	}
}

// headWriter keeps the first bytes written to it, for one goroutine.
type headWriter struct {
	limit int
	data  []byte
	cut   bool // there were more
}

func (h *headWriter) Write(p []byte) (int, error) {
	n := min(len(p), h.limit-len(h.data))
	h.data = append(h.data, p[:n]...)
	h.cut = h.cut || n < len(p)
	return len(p), nil
}
