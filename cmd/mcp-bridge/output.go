package main

import (
	"io"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// maxHeld bounds the bytes that wait while a question is open. A run that prints more waits itself.
const maxHeld = 1 << 20

// codeOutput prints what the code of a run prints, and holds it back while a question is open: the
// code could otherwise write into the question, or write another one below it.
type codeOutput struct {
	stdout, stderr io.Writer

	mu        sync.Mutex
	answered  sync.Cond // of mu
	questions int       // that are open
	held      []sandbox.Chunk
	bytes     int // of held
}

func newCodeOutput(stdout, stderr io.Writer) *codeOutput {
	o := &codeOutput{stdout: stdout, stderr: stderr}
	o.answered.L = &o.mu
	return o
}

// take prints a chunk now, or when no question is open any more.
func (o *codeOutput) take(c sandbox.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.questions > 0 && o.bytes+len(c.Text) > maxHeld && o.bytes > 0 {
		o.answered.Wait()
	}
	if o.questions == 0 {
		o.print(c)
		return
	}
	o.held, o.bytes = append(o.held, c), o.bytes+len(c.Text)
}

// hold holds everything back until release is called, once for each hold.
func (o *codeOutput) hold() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.questions++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.questions--; o.questions > 0 {
			return
		}
		for _, c := range o.held {
			o.print(c)
		}
		o.held, o.bytes = nil, 0
		o.answered.Broadcast()
	}
}

// print writes a chunk. The caller has o.mu.
func (o *codeOutput) print(c sandbox.Chunk) {
	w := o.stdout
	if c.Stream == "stderr" {
		w = o.stderr
	}
	_, _ = io.WriteString(w, c.Text) // the Output remembers a failure
}
