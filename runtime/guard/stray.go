package guard

import (
	"fmt"
	"time"
)

// What signalMarked does with the processes that it finds.
const (
	look = iota
	ask
	force
)

// strayGrace is the longest that a process which left its group has between SIGTERM and SIGKILL.
const strayGrace = time.Second

// endMarked ends every process that carries the mark: it asks them, and after the grace kills them.
func endMarked(mark string, grace time.Duration) error {
	marks := []string{mark}
	if signalMarked(marks, ask) == 0 && unmarkedWithin(marks, look, lastPoll) { // the second: see remaining
		return nil
	}
	if unmarkedWithin(marks, look, grace) || unmarkedWithin(marks, force, killWait) {
		return nil
	}
	return fmt.Errorf("%d processes that left their group are still there %v after SIGKILL", signalMarked(marks, look), killWait)
}

// unmarkedWithin does what it is told with the marked processes, again and again, until none was seen twice or the time is over.
func unmarkedWithin(marks []string, what int, d time.Duration) bool {
	if len(marks) == 0 {
		return true
	}
	deadline, unseen := time.Now().Add(d), 0
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if signalMarked(marks, what) > 0 {
			unseen = 0
		} else if unseen++; unseen == 2 {
			return true
		}
		if !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}
