package sandbox_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

var replay = flag.Uint64("seed", 0, "have TestStandbyProperty do what it did with this seed, instead of "+
	"what it does with others")

// TestStandbyProperty: whatever comes, no container has two runs, no more are alive than may be,
// every run is answered truthfully, runs that come when all is well again are served, as many
// guests wait then as are wanted, and none is left at the end. The name of a case has its seed.
func TestStandbyProperty(t *testing.T) {
	seeds := []uint64{*replay}
	if *replay == 0 {
		seeds = make([]uint64, 20)
		for i := range seeds {
			seeds[i] = rand.Uint64()
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := &storm{t: t, r: rand.New(rand.NewPCG(seed, 0))}
			bubble(t, w.config, w.blow)
		})
	}
}

// storm is one engine's bad days, all of which come from its seed; but the sandbox has its own
// chance in its delays, and the scheduler.
type storm struct {
	t  *testing.T
	s  *sandbox.Sandbox
	fl *fleet

	r       *rand.Rand // for one goroutine
	cfg     sandbox.Config
	failing int // percent of the starts
	images  int // that there were

	mu     sync.Mutex
	closed time.Time
}

var errOutOfOrder = errors.New("out of order")

func (w *storm) config(c *sandbox.Config) {
	c.Standby = w.r.IntN(5)
	c.MaxContainers = c.Standby + 1 + w.r.IntN(6)
	c.MaxRuns = 1 + w.r.IntN(8)
	c.StandbyIdle = time.Duration(1+w.r.IntN(100)) * time.Second
	if w.r.IntN(3) > 0 {
		c.StandbyIdle += allIsQuiet + 10*time.Second
	}
	w.cfg = *c
}

// allIsQuiet is longer than any pause after failures, and than it matters how runs came.
const allIsQuiet = 3 * time.Minute

func (w *storm) blow(t *testing.T, s *sandbox.Sandbox, fl *fleet) {
	w.t, w.s, w.fl = t, s, fl
	chance := rand.New(rand.NewPCG(w.r.Uint64(), 0)) // under the fleet's lock
	fl.set(func() {
		fl.image, fl.removed, fl.compiles = "image-0", true, fl.startTime
		fl.broken = func() error {
			if chance.IntN(100) < w.failing {
				return errOutOfOrder
			}
			return nil
		}
	})
	var runs sync.WaitGroup
	const steps = 200
	closeAt := w.r.IntN(2 * steps)
	for i := range steps {
		w.change()
		if i == closeAt {
			w.close(&runs)
		}
		w.run(&runs, i)
	}
	runs.Wait()
	if closeAt >= steps {
		w.settle()
	}
}

// change has something go wrong or well again, or lets time pass.
func (w *storm) change() {
	fl, r := w.fl, w.r
	switch r.IntN(16) {
	case 0:
		rate := []int{0, 0, 20, 100}[r.IntN(4)]
		fl.set(func() { w.failing = rate })
	case 1:
		deaf := r.IntN(3) == 0
		fl.set(func() { fl.deaf = deaf })
	case 2:
		fl.set(func() {
			fl.fault("kill")
			for id := range fl.starts + 1 { // a map's order is no seed's
				if kill := fl.alive[id]; kill != nil && r.IntN(2) == 0 {
					kill()
				}
			}
		})
	case 3:
		w.images++
		fl.set(func() {
			fl.image = fmt.Sprintf("image-%d", w.images)
			fl.fault("image")
		})
	case 4:
		fl.set(func() { fl.facts.OwnUsers = !fl.facts.OwnUsers })
	case 5:
		removal := []time.Duration{10 * time.Millisecond, 60 * time.Millisecond, 3 * time.Second,
			20 * time.Second}[r.IntN(4)]
		fl.set(func() { fl.removal = removal })
	case 6:
		away := r.IntN(3) == 0
		fl.set(func() { fl.away = away })
	case 7:
		time.Sleep(time.Duration(r.IntN(600)) * time.Second)
	default:
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
	}
}

// close closes the sandbox in the middle of everything.
func (w *storm) close(runs *sync.WaitGroup) {
	w.mu.Lock()
	w.closed = time.Now()
	w.mu.Unlock()
	runs.Go(func() {
		if err := w.s.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// run has one more run take place, in the background, and judges what comes of it.
func (w *storm) run(runs *sync.WaitGroup, i int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	if w.r.IntN(5) == 0 {
		time.AfterFunc(time.Duration(w.r.IntN(300))*time.Millisecond, cancel)
	}
	code := fmt.Sprintf("%dms run-%d", w.r.IntN(500), i)
	found := w.found()
	begin := time.Now()
	runs.Go(func() {
		defer cancel()
		res, err := w.s.Run(ctx, sandbox.Request{Code: code, Timeout: time.Minute}, hostFunc(echo))
		if err == nil && res.Status == sandbox.StatusOK {
			w.succeeded(res, i, found)
		} else if !w.explained(res, err, begin, ctx.Err() != nil) {
			w.t.Errorf("run %d got %+v, %v, and nothing that went wrong explains it", i, res, err)
		}
	})
}

// succeeded wants a run's own output, from an image no older than what the engine was found to have
// when it began.
func (w *storm) succeeded(res sandbox.Result, i, found int) {
	var id, image, run int
	if n, err := fmt.Sscanf(res.Stdout(), "%d image-%d run-%d", &id, &image, &run); n != 3 || run != i ||
		image < found {
		w.t.Errorf("run %d got %+v, %v; want its own output, from image %d or a later one", i, res, err, found)
	}
}

// found is the number of the image that the engine last said it has.
func (w *storm) found() (image int) {
	w.fl.mu.Lock()
	defer w.fl.mu.Unlock()
	_, _ = fmt.Sscanf(w.fl.found, "image-%d", &image) // 0 before anybody has asked
	return image
}

// explained says whether a run that began then and has ended now may have failed like this.
func (w *storm) explained(res sandbox.Result, err error, begin time.Time, cancelled bool) bool {
	had := func(what string) bool { return w.fl.faulty(what, begin, time.Now()) }
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	switch {
	case errors.Is(err, sandbox.ErrClosed):
		return !closed.IsZero()
	case errors.Is(err, errOutOfOrder):
		return had("broken")
	case errors.As(err, new(*runtime.UnavailableError)):
		return had("away")
	case errors.As(err, new(*runtime.ImageError)):
		return had("image")
	case err != nil, res.Status == sandbox.StatusExit:
		return had("kill")
	}
	return res.Status == sandbox.StatusCancelled && cancelled
}

// settle is the time after the storm.
func (w *storm) settle() {
	w.fl.set(func() { w.failing, w.fl.deaf, w.fl.away, w.fl.removal = 0, false, false, 10*time.Millisecond })
	time.Sleep(30 * time.Second) // what was on its way to its end is gone
	if _, idle := w.fl.count(); idle > w.cfg.Standby {
		w.t.Errorf("%d guests wait, want %d at most", idle, w.cfg.Standby)
	}
	for i := range 3 {
		found := w.found()
		w.succeeded(call(w.t, w.s, fmt.Sprintf("1ms run-%d", i)), i, found)
		time.Sleep(time.Second)
	}
	time.Sleep(allIsQuiet)
	want := 0
	if w.cfg.Standby > 0 && w.cfg.StandbyIdle > allIsQuiet {
		want = w.cfg.Standby
	}
	if alive, idle := w.fl.count(); alive != want || idle != want {
		w.t.Errorf("%d are alive and %d wait, want %d: up to %d may, for %v", alive, idle, want, w.cfg.Standby,
			w.cfg.StandbyIdle)
	}
}
