package guard

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What sweep.signal does with the processes that it finds.
const (
	look = iota
	ask
	force
)

// strayGrace is the longest that EndLeft gives a process between SIGTERM and SIGKILL.
const strayGrace = time.Second

// markOf returns the value of MarkVar for a child: its mark and the session that it is started in, by which EndLeft tells
// what belongs to the child from what it started in a session of its own.
func markOf(name string) string {
	_, session := identity(os.Getpid())
	return name + "/" + strconv.Itoa(session)
}

// sessionOf undoes markOf.
func sessionOf(mark string) (name string, session int, ok bool) {
	name, number, _ := strings.Cut(mark, "/")
	session, err := strconv.Atoi(number)
	return name, session, err == nil
}

// sweep finds and ends the processes that carry one of its marks in their environment.
type sweep struct {
	marks  []string
	inside bool         // spares processes in another session than their mark names
	log    *slog.Logger // one line for each process, when it is first signalled; nil means silence
	named  map[[2]uint64]bool
}

// within does what it is told with the marked processes until it has found none twice in a row or the time is over.
func (s *sweep) within(what int, d time.Duration) bool {
	if len(s.marks) == 0 {
		return true
	}
	deadline, unseen := time.Now().Add(d), 0
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if s.signal(what) > 0 {
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
	PID     int
	Program string
	Mark    string // which Config.NewMark has made
}

// EndLeft ends what is left of children of LaunchTracked whose bridge and watchdog are dead: SIGTERM, after the grace, a
// second at most, SIGKILL. By the mark, dead says for certain whether the bridge is. Processes in a session of their own are
// left alone, since the bridge may have ended in good order and left them to the user. EndLeft considers processes of this
// user only, and never ends its caller. It takes at most six seconds; an error says how many are still there.
//
// The mark is in the environment, which a process can write over, but only its own.
func EndLeft(dead func(mark string) bool, grace time.Duration) ([]Left, error) {
	var left []Left
	s := sweep{inside: true}
	for o := range Others {
		mark := o.mark()
		name, session, ok := sessionOf(mark)
		if !ok || len(name) < minMark || o.PID == os.Getpid() || o.session != session || !o.Ours() || !dead(name) {
			continue
		}
		left = append(left, Left{o.PID, o.Program(), name})
		if !slices.Contains(s.marks, mark) {
			s.marks = append(s.marks, mark)
		}
	}
	s.signal(ask)
	if s.within(look, min(grace, strayGrace)) || s.within(force, killWait) {
		return left, nil
	}
	return left, errors.New(s.stillThere())
}

func (s *sweep) stillThere() string {
	return fmt.Sprintf("%d processes are still there %v after SIGKILL", s.signal(look), killWait)
}
