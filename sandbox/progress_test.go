package sandbox

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// sent is what a progress has sent, and when.
type sent struct {
	mu     sync.Mutex
	frames []entrypoint.Progress
	at     []time.Time
}

func (s *sent) send(_ context.Context, frame entrypoint.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames, s.at = append(s.frames, frame), append(s.at, time.Now())
}

func (s *sent) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.frames)
}

// TestProgressIsBounded: of any number of reports a few are sent a second, in order, and the
// last of all before finish returns.
func TestProgressIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sent
		p := newProgress(t.Context(), "7", func(f func()) { go f() }, s.send)
		for i := range 50_000 {
			p.tell(Progress{Progress: float64(i), Message: strings.Repeat("é", 1000)})
			if i%10 == 0 {
				time.Sleep(time.Millisecond) // five seconds in all
			}
		}
		p.finish()
		if n := len(s.frames); n < 95 || n > 102 {
			t.Errorf("%d frames in 5 s", n)
		}
		last := -1.0
		for i, f := range s.frames {
			if f.Progress <= last || f.CallID != "7" || f.Type != "progress" {
				t.Errorf("frame %d is %+v after %v", i, f, last)
			}
			if len(f.Message) != entrypoint.MaxProgressText || !utf8.ValidString(f.Message) {
				t.Errorf("a message of %d bytes", len(f.Message))
			}
			if i > 0 && i < len(s.frames)-1 && s.at[i].Sub(s.at[i-1]) < progressSpacing {
				t.Errorf("frames %d and %d are %v apart", i-1, i, s.at[i].Sub(s.at[i-1]))
			}
			last = f.Progress
		}
		if last != 49_999 {
			t.Errorf("the last report is %v", last)
		}
		p.tell(Progress{Progress: 1})
		synctest.Wait()
		if n := s.count(); s.frames[n-1].Progress != 49_999 {
			t.Error("a report was taken after the end")
		}
	})
}

func TestProgressOfNothing(t *testing.T) {
	p := newProgress(t.Context(), "1", func(func()) { t.Error("a goroutine was started for nothing") }, nil)
	p.finish()
	p.tell(Progress{})
}

// TestProgressOfACancelledCall: it is not listened to any more.
func TestProgressOfACancelledCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sent
		ctx, cancel := context.WithCancel(t.Context())
		p := newProgress(ctx, "1", func(f func()) { go f() }, s.send)
		p.tell(Progress{Progress: 1})
		synctest.Wait()
		p.tell(Progress{Progress: 2}) // waits for its time
		cancel()
		p.finish()
		if s.count() != 1 {
			t.Errorf("%d reports were sent", s.count())
		}
	})
}
