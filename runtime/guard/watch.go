package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
)

const (
	maxEntries = 1 << 16 // registrations held; more are refused
	minMark    = 16      // characters of a mark; shorter ones could be another program's
	termGrace  = 2 * time.Second
	killWait   = 5 * time.Second // for a killed group to be gone
	firstPoll  = time.Millisecond
	lastPoll   = 50 * time.Millisecond
)

// entry is what the bridge tells the watchdog, as a line of JSON: a process group, a path or a mark
// to register under an id, an id to forget, or that it ends in good order.
type entry struct {
	ID     int
	Forget bool `json:",omitempty"`
	End    bool `json:",omitempty"`

	PGID    int    `json:",omitempty"`
	Start   uint64 `json:",omitempty"` // of the leader, in the kernel's own unit; 0 for unknown
	Session int    `json:",omitempty"` // 0 for unknown

	Mark string `json:",omitempty"`

	Path []byte `json:",omitempty"` // to remove, or to keep
	Keep bool   `json:",omitempty"` // Text is to be written there
	Text []byte `json:",omitempty"`
}

// usable reports whether e may be registered.
func (e entry) usable() bool {
	return e.PGID > 1 || len(e.Mark) >= minMark || len(e.Path) > 0 && removable(string(e.Path))
}

// Watch is the watchdog's body. It reads entries from r until r ends, then ends every group that is
// still registered and every process that carries a registered mark (SIGTERM, after two seconds
// SIGKILL), writes every kept text, removes every registered file, and returns with killed set: the
// bridge is gone and has cleaned up nothing. It logs each process that it ends; a nil log means
// silence. When it is told that the bridge ended in good order it returns at once. It makes the
// process ignore SIGTERM, SIGINT and SIGHUP until it returns, which after the end of r takes at
// most seven seconds. An entry that is cut off by the end of r is ignored.
func Watch(r io.Reader, log *slog.Logger) (killed bool, err error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	entries := map[int]entry{}
	for told := json.NewDecoder(r); ; {
		var e entry
		switch err := told.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true, finish(entries, log)
		case err != nil:
			return true, errors.Join(fmt.Errorf("the watchdog's pipe: %w", err), finish(entries, log))
		case e.End:
			return false, nil
		case e.Forget:
			delete(entries, e.ID)
		case e.usable() && len(entries) < maxEntries:
			entries[e.ID] = e
		}
	}
}

// finish ends the groups, all at the same time, and then removes the files.
func finish(entries map[int]entry, log *slog.Logger) error {
	_ = writeKept(entries) // at once, since a bridge may start meanwhile
	var groups []entry
	s := &sweep{log: log}
	for _, e := range entries {
		if e.Mark != "" {
			s.marks = append(s.marks, e.Mark)
		}
		if e.PGID > 1 && present(e) {
			groups = append(groups, e)
		}
	}
	groups = append(groups, marked(s.marks)...)
	deadline := time.Now().Add(termGrace)
	for _, e := range groups {
		s.nameGroup(e)
		_ = terminate(e.PGID)
	}
	s.signal(ask)
	groups = remaining(groups, termGrace)
	s.within(look, time.Until(deadline))
	// A marked child may have come to exec meanwhile.
	groups = append(groups, marked(s.marks)...)
	deadline = time.Now().Add(killWait)
	for _, e := range groups {
		_ = kill(e.PGID)
	}
	var errs []error
	if !s.within(force, killWait) {
		errs = append(errs, fmt.Errorf("%d marked processes are still there %v after SIGKILL", s.signal(look),
			killWait))
	}
	groups = remaining(groups, time.Until(deadline))
	for _, e := range groups {
		errs = append(errs, fmt.Errorf("process group %d is still there %v after SIGKILL", e.PGID, killWait))
	}
	if err := writeKept(entries); err != nil { // again: servers may have written to the files until now
		return errors.Join(append(errs, err)...) // what is left tells others that the files are old
	}
	for _, e := range entries {
		if len(e.Path) > 0 && !e.Keep {
			errs = append(errs, os.RemoveAll(string(e.Path)))
		}
	}
	return errors.Join(errs...)
}

// What sweep.signal does with the processes that it finds.
const (
	look = iota
	ask
	force
)

// sweep finds and ends the processes that carry one of its marks in their environment.
type sweep struct {
	marks []string
	log   *slog.Logger // one line for each process, when it is first signalled; nil means silence
	named map[[2]uint64]bool
}

// within signals the marked processes until it has found none twice in a row, or the time is over.
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

// writeKept writes the texts of files. Of two for one file, the later one stays.
func writeKept(entries map[int]entry) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if e := entries[id]; e.Keep {
			path := string(e.Path)
			errs = append(errs, filelock.Replace(path, filepath.Base(path)+".*", e.Text))
		}
	}
	return errors.Join(errs...)
}

// remaining waits until every group is gone or the time is over, and returns those that are not
// gone. A group is gone when it was seen empty twice: a process that forks and ends while the table
// of processes is read can hide its child once.
func remaining(groups []entry, within time.Duration) []entry {
	deadline := time.Now().Add(within)
	unseen := map[int]int{}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		var left []entry
		for _, e := range groups {
			if present(e) {
				unseen[e.PGID] = 0
			} else {
				unseen[e.PGID]++
			}
			if unseen[e.PGID] < 2 {
				left = append(left, e)
			}
		}
		if len(left) == 0 || !time.Now().Before(deadline) {
			return left
		}
		groups = left
		time.Sleep(pause)
	}
}

// removable reports whether a path may be registered: absolute, and not a root.
func removable(path string) bool {
	clean := filepath.Clean(path)
	return filepath.IsAbs(path) && filepath.Dir(clean) != clean
}
