package upstream

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ended := make(chan time.Duration, 10)
		r := &idleTimer{after: time.Minute, end: func() { ended <- time.Since(begin) }}
		defer r.stop()
		r.begin()
		time.Sleep(50 * time.Second)
		r.use()()
		time.Sleep(50 * time.Second)
		done, also := r.use(), r.use()
		done()
		time.Sleep(10 * time.Minute)
		also()
		if got, want := <-ended, 12*time.Minute+40*time.Second; got < want || got > want+10*time.Second {
			t.Errorf("it ended after %v, want %v or a little more", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := &idleTimer{after: time.Minute, end: func() { t.Error("it ended") }}
		r.begin()
		done := r.use()
		r.stop()
		done()
		time.Sleep(time.Hour)
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b backoff
		broken := errors.New("broken")
		last := &ServerError{Err: broken}
		for i, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second, 30 * time.Second, 30 * time.Second} {
			b.failure()
			if err := b.refusal(last); (err != nil) != (pause > 0) ||
				err != nil && (!errors.Is(err, broken) || !strings.Contains(err.Error(), "in a row")) {
				t.Errorf("after failure %d: got %v", i+1, err)
			}
			time.Sleep(pause - time.Millisecond)
			if pause > 0 && b.refusal(last) == nil {
				t.Errorf("after failure %d: started again before %v", i+1, pause)
			}
			time.Sleep(time.Millisecond)
			if err := b.refusal(last); err != nil {
				t.Errorf("after failure %d and %v: got %v", i+1, pause, err)
			}
		}
		b = backoff{}
		if b.failure(); b.refusal(last) != nil {
			t.Error("a first failure has no pause")
		}
	})
}
