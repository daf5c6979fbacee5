package guard

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// An Other is a process that this one knows only by having seen it: another's child, or one that a
// dead bridge has left. It is told from every later process of its number, and signalled through a
// descriptor that stands for it and no other.
type Other struct {
	PID    int
	Parent int    // its parent's PID when it was seen
	start  uint64 // clock ticks since boot
}

var errNotThere = errors.New("there is no such process any more")

// End asks the process to end, and kills it after the grace. An error says that it can't be
// signalled, or is still there five seconds after that.
func (o Other) End(grace time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		within time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, killWait}} {
		if err := o.Signal(step.signal); errors.Is(err, errNotThere) {
			return nil
		} else if err != nil {
			return err
		}
		deadline := time.Now().Add(step.within)
		for pause := firstPoll; time.Now().Before(deadline); pause = min(2*pause, lastPoll) {
			if !o.Alive() {
				return nil
			}
			time.Sleep(pause)
		}
	}
	return os.ErrDeadlineExceeded
}
