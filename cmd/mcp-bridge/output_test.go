package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

// TestCodeCantWriteIntoAQuestion: what code prints while a question is open comes after the answer,
// or after the call's end, all of it and in its order; of more than is held the code waits.
func TestCodeCantWriteIntoAQuestion(t *testing.T) {
	for _, ends := range []string{"an answer", "the end of the call"} {
		t.Run(ends, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var screen bytes.Buffer
				in, typed := io.Pipe()
				a := &app{io: &terminal.Streams{In: in, Err: terminal.New(&screen)}}
				o := terminal.NewCodeOutput(&screen, &screen)
				ctx, cancel := context.WithCancel(t.Context())
				o.Take("stdout", "before")
				asked := make(chan bool)
				go func() {
					yes, _ := a.askAmid(ctx, o, "May it?")
					asked <- yes
				}()
				synctest.Wait()
				const question = "before\nMay it?\nAllow it? [y/N] "
				if got := screen.String(); got != question {
					t.Fatalf("asked %q", got)
				}
				big := strings.Repeat("x", 1<<20)
				printed := false
				go func() {
					o.Take("stdout", "\rAllow ls? ")
					o.Take("stderr", big)
					printed = true
				}()
				synctest.Wait()
				if got := screen.String(); got != question || printed {
					t.Errorf("while it is open: %.60q, the code went on: %v", got, printed)
				}
				after := question
				if ends == "an answer" {
					_, _ = io.WriteString(typed, "y\n")
				} else {
					cancel()
					after += "\nmcp-bridge: the call has ended; the answer is not needed\n"
				}
				if yes := <-asked; yes != (ends == "an answer") {
					t.Errorf("the answer is %v", yes)
				}
				cancel()
				synctest.Wait()
				if got := screen.String(); got != after+"\rAllow ls? "+big {
					t.Errorf("afterwards: %.120q", got)
				}
				typed.Close() // ends a read that stayed behind
			})
		})
	}
}
