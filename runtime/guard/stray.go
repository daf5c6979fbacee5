package guard

import (
	"errors"
	"fmt"
	"os"
	"slices"
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

// Left is a process that was found to be left of a child of LaunchTracked.
type Left struct {
	PID  int
	Mark string // which Config.NewMark has made
}

// EndLeft ends what is left of children of LaunchTracked whose bridge is dead, and its watchdog too. By the mark, dead says for
// certain whether that is so. It takes the marks of processes of this user only, and ends no other than those with such a mark: SIGTERM,
// after the grace, a second at most, SIGKILL. It takes at most five seconds more for each mark; an error names what is still there.
//
// The mark is in the environment, which a process can write over, but only its own: whoever has one there that is not its own has
// itself ended. It never ends the process that calls it.
func EndLeft(dead func(mark string) bool, grace time.Duration) ([]Left, error) {
	var left []Left
	var marks []string
	for o := range Others {
		mark := o.mark()
		if len(mark) < minMark || o.PID == os.Getpid() || !o.Ours() || !dead(mark) {
			continue
		}
		left = append(left, Left{o.PID, mark})
		if !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	var errs []error
	for _, mark := range marks {
		errs = append(errs, endMarked(mark, min(grace, strayGrace)))
	}
	return left, errors.Join(errs...)
}
