package sandbox

import "github.com/mcp-bridge/mcp-bridge/entrypoint"

// Expect says what the next runs will most likely name, so that guests which wait make it ready before there is code: for each server the
// code has an object, a module and a file. What a run itself says counts. The slices must not be changed any more. It may be called
// concurrently with everything, and is cheap.
func (s *Sandbox) Expect(providers []entrypoint.Provider, discovered []entrypoint.Discovered) {
	s.expected.Store(&entrypoint.Expect{Type: entrypoint.TypeExpect, Providers: providers, Discovered: discovered})
}

// expectation is that as a line for a guest; nil where there is nothing to make ready, or too much to be sent to one that may not read.
func (s *Sandbox) expectation() []byte {
	e := s.expected.Load()
	if e == nil || len(e.Providers) == 0 {
		return nil
	}
	sent := *e
	if sent.Discovered == nil {
		sent.Discovered = []entrypoint.Discovered{}
	}
	line, err := entrypoint.Line(sent, maxAtOnce)
	if err != nil {
		return nil
	}
	return line
}

// expect tells a guest that is about to wait what to expect. It waits for nothing: a guest that doesn't read is found by its next ping.
func (g *guest) expect(line []byte) {
	if line != nil {
		go func() { _ = g.stdin.WriteLine(line) }() // it ends when the guest has read it, or is gone
	}
}
