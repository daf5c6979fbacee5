package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow takes some time for each write.
type slow struct{ each time.Duration }

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(s.each)
	return len(b), nil
}

// TestSlowReader: a peer that reads slowly is given longer than one that doesn't read, and not as
// long as it wants.
func TestSlowReader(t *testing.T) {
	for _, tt := range []struct {
		size int
		want error
	}{{4 * chunk, nil}, {100 * chunk, ErrNotReading}} {
		synctest.Test(t, func(t *testing.T) {
			in, w := io.Pipe()
			out := NewLines(slow{grace - time.Second}, 0, nil)
			c := NewConn(t.Context(), out, Options{MaxRequests: 4, Accept: func(*Request) Handler {
				return func(context.Context) (any, error) { return strings.Repeat("x", tt.size), nil }
			}})
			go func() {
				for i := range 2 {
					fmt.Fprintf(w, `{"id":%d,"method":"m"}`+"\n", i)
				}
				w.Close()
			}()
			began := time.Now()
			if err := c.Serve(NewReader(in, 1000), out, grace); !errors.Is(err, tt.want) {
				t.Errorf("Serve of %d bytes: %v, want %v", tt.size, err, tt.want)
			}
			<-out.Ended()
			if took := time.Since(began); took > (maxGraces+1)*grace {
				t.Errorf("Serve of %d bytes took %v to end", tt.size, took)
			}
		})
	}
}

// TestStall: each part of a long message has the whole time.
func TestStall(t *testing.T) {
	for _, tt := range []struct {
		each time.Duration
		want bool
	}{{time.Second, false}, {3 * time.Second, true}} {
		t.Run(tt.each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stalled := make(chan struct{}, 100)
				l := NewLines(slow{tt.each}, 2*time.Second, func() { stalled <- struct{}{} })
				if err := l.Send(t.Context(), &Message{Raw: make([]byte, 10*chunk)}); err != nil {
					t.Error(err)
				}
				l.Flush()
				done := make(chan struct{})
				close(done)
				if err := l.HangUp(done, time.Minute); err != nil || (len(stalled) > 0) != tt.want {
					t.Errorf("HangUp: %v; stalled %d times", err, len(stalled))
				}
			})
		})
	}
}
