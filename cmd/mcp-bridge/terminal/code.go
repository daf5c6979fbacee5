package terminal

import (
	"io"
	"sync"
)

// maxHeld bounds the bytes that wait while a question is open. A run that prints more waits itself.
const maxHeld = 1 << 20

// CodeOutput prints what the code of a run prints, and holds it back while a question is open: the
// code could otherwise write into the question, or write another one below it.
type CodeOutput struct {
	stdout, stderr io.Writer

	mu        sync.Mutex
	answered  sync.Cond // of mu
	questions int       // that are open
	held      []func()
	bytes     int // of held
}

// NewCodeOutput returns what prints to writers of Output.Code.
func NewCodeOutput(stdout, stderr io.Writer) *CodeOutput {
	o := &CodeOutput{stdout: stdout, stderr: stderr}
	o.answered.L = &o.mu
	return o
}

// Take prints a chunk now, or when no question is open any more.
func (o *CodeOutput) Take(stream, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.questions > 0 && o.bytes+len(text) > maxHeld && o.bytes > 0 {
		o.answered.Wait()
	}
	w := o.stdout
	if stream == "stderr" {
		w = o.stderr
	}
	write := func() { _, _ = io.WriteString(w, text) } // the Output remembers a failure
	if o.questions == 0 {
		write()
		return
	}
	o.held, o.bytes = append(o.held, write), o.bytes+len(text)
}

// Hold holds everything back until release is called, once for each hold.
func (o *CodeOutput) Hold() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.questions++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.questions--; o.questions > 0 {
			return
		}
		for _, write := range o.held {
			write()
		}
		o.held, o.bytes = nil, 0
		o.answered.Broadcast()
	}
}
