package detect_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func TestStart(t *testing.T) {
	dormant := func(err error) bool {
		var u *runtime.UnavailableError
		return errors.As(err, &u) && u.Dormant
	}
	t.Run("nothing else runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &script{kind: refuses}, &script{kind: rests}
			d := over(t, a, b)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			if b.started.Load() != 0 {
				t.Error("it was started unasked")
			}
			var lines []string
			if err := d.Start(t.Context(), func(l string) { lines = append(lines, l) }); err != nil ||
				len(lines) != 1 {
				t.Errorf("got %v, %q", err, lines)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "b" || !d.Verdicts()[1].Chosen {
				t.Errorf("got %+v, %v", f, err)
			}
			b.become(rests) // stopped because it was idle
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Errorf("got %v, want a dormant engine", err)
			}
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if _, err := d.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			closed(t, d, a, b)
		})
	})
	t.Run("its caller gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: rests, boot: time.Minute}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			first := a.opened.Load()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := d.Start(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
			for range 2 { // during the start, and after it was given up
				if _, err := d.Facts(t.Context()); !dormant(err) {
					t.Errorf("got %v, want a dormant engine", err)
				}
				wg.Wait()
			}
			if n := a.opened.Load() - first; n != 0 {
				t.Errorf("the driver that is starting was replaced %d times", n)
			}
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" {
				t.Errorf("got %+v, %v", f, err)
			}
			closed(t, d, a)
		})
	})
	t.Run("who asks meanwhile gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: rests}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			a.become(hangs) // it is starting, and doesn't say what it is
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := d.Facts(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
			a.become(rests)
			if err := d.Start(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if f, err := d.Facts(t.Context()); err != nil || f.Engine != "a" || a.opened.Load() != 1 {
				t.Errorf("got %+v, %v, and the driver was opened %d times", f, err, a.opened.Load())
			}
			closed(t, d, a)
		})
	})
	t.Run("it doesn't start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: broken}
			d := over(t, a)
			if _, err := d.Facts(t.Context()); !dormant(err) {
				t.Fatalf("got %v, want a dormant engine", err)
			}
			if err := d.Start(t.Context(), nil); err == nil ||
				!strings.Contains(d.Verdicts()[0].Err.Error(), "doesn't start") {
				t.Errorf("got %v, %+v", err, d.Verdicts())
			}
			a.become(rootless)
			if _, err := d.Facts(t.Context()); err != nil {
				t.Error(err)
			}
			closed(t, d, a)
		})
	})
	t.Run("nothing is at rest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := &script{kind: refuses}
			d := over(t, a)
			if err := d.Start(t.Context(), nil); err == nil {
				t.Error("no error")
			}
			closed(t, d, a)
		})
	})
}
