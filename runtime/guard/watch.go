package guard

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxLine    = 32 << 10 // bytes of one line; longer ones are skipped
	maxEntries = 1 << 16  // registrations held; more are refused
	maxText    = 16 << 20 // bytes of a file's text
	minMark    = 16       // characters of a mark; shorter ones could be another program's
	termGrace  = 2 * time.Second
	killWait   = 5 * time.Second // for a killed group to be gone
	firstPoll  = time.Millisecond
	lastPoll   = 50 * time.Millisecond
)

// entry is what one line registers: a group, a path, or a mark; or what several lines do: the text
// of a file.
type entry struct {
	path    string // to remove, unless there is a text
	text    []byte // to write there; nil for none
	whole   bool   // all of the text has come
	mark    string
	pgid    int
	start   uint64 // of the leader, in the kernel's own unit; 0 for unknown
	session int    // 0 for unknown
}

// Watch is the watchdog's body. It reads registrations from r until r ends, then ends every group
// that is still registered and every process that carries a registered mark (SIGTERM, after two
// seconds SIGKILL), writes every kept text, removes every registered file, and returns with killed
// set: the bridge is gone and has cleaned up nothing. It logs each process that it ends; a nil log
// means silence. When it is told that the bridge ended in good order it returns at once. It makes
// the process ignore SIGTERM, SIGINT and SIGHUP until it returns, which after the end of r takes at
// most seven seconds.
//
// The lines are "ID group PGID START SESSION", "ID file QUOTED-PATH", "ID mark MARK", "ID forget"
// and "end"; and of a file's text "ID keep QUOTED-PATH", "ID text BASE64" any number of times, and
// "ID whole". A line that can't be understood is skipped; so is a last one without its newline.
func Watch(r io.Reader, log *slog.Logger) (killed bool, err error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	entries := map[int]entry{}
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = br.ReadSlice('\n')
			}
			line = nil
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return true, errors.Join(fmt.Errorf("the watchdog's pipe: %w", err), finish(entries, log))
			}
			return true, finish(entries, log)
		}
		if string(line) == "end\n" {
			return false, nil
		}
		obey(entries, string(bytes.TrimSuffix(line, []byte("\n"))))
	}
}

// obey carries one line over into the entries.
func obey(entries map[int]entry, line string) {
	number, rest, _ := strings.Cut(line, " ")
	id, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	verb, rest, _ := strings.Cut(rest, " ")
	if verb == "forget" {
		delete(entries, id)
		return
	}
	if len(entries) >= maxEntries {
		return
	}
	switch verb {
	case "group":
		var e entry
		if n, err := fmt.Sscanf(rest, "%d %d %d", &e.pgid, &e.start, &e.session); err == nil && n == 3 &&
			e.pgid > 1 {
			entries[id] = e
		}
	case "mark":
		if len(rest) >= minMark {
			entries[id] = entry{mark: rest}
		}
	case "file":
		if path, err := strconv.Unquote(rest); err == nil && removable(path) {
			entries[id] = entry{path: path}
		}
	case "keep":
		if path, err := strconv.Unquote(rest); err == nil && removable(path) {
			entries[id] = entry{path: path, text: []byte{}}
		}
	case "text", "whole":
		e := entries[id]
		if part, err := base64.StdEncoding.DecodeString(rest); err == nil && e.text != nil && !e.whole &&
			len(e.text) <= maxText {
			e.text, e.whole = append(e.text, part...), verb == "whole"
			entries[id] = e
		}
	}
}

// replace writes a file that is there whole or not at all.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// finish ends the groups, all at the same time, and then removes the files.
func finish(entries map[int]entry, log *slog.Logger) error {
	_ = writeKept(entries) // at once, since a bridge may start meanwhile
	var groups []entry
	s := &sweep{log: log}
	for _, e := range entries {
		if e.mark != "" {
			s.marks = append(s.marks, e.mark)
		}
		if e.pgid > 1 && present(e) {
			groups = append(groups, e)
		}
	}
	groups = append(groups, marked(s.marks)...)
	deadline := time.Now().Add(termGrace)
	for _, e := range groups {
		s.nameGroup(e)
		_ = terminate(e.pgid)
	}
	s.signal(ask)
	groups = remaining(groups, termGrace)
	s.within(look, time.Until(deadline))
	// A marked child may have come to exec meanwhile.
	groups = append(groups, marked(s.marks)...)
	deadline = time.Now().Add(killWait)
	for _, e := range groups {
		_ = kill(e.pgid)
	}
	var errs []error
	if !s.within(force, killWait) {
		errs = append(errs, fmt.Errorf("%d marked processes are still there %v after SIGKILL", s.signal(look),
			killWait))
	}
	groups = remaining(groups, time.Until(deadline))
	for _, e := range groups {
		errs = append(errs, fmt.Errorf("process group %d is still there %v after SIGKILL", e.pgid, killWait))
	}
	if err := writeKept(entries); err != nil { // again: servers may have written to the files until now
		return errors.Join(append(errs, err)...) // what is left tells others that the files are old
	}
	for _, e := range entries {
		if e.path != "" && e.text == nil {
			errs = append(errs, os.RemoveAll(e.path))
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
		if e := entries[id]; e.whole {
			errs = append(errs, replace(e.path, e.text))
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
				unseen[e.pgid] = 0
			} else {
				unseen[e.pgid]++
			}
			if unseen[e.pgid] < 2 {
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

// removable says whether a path may be registered: absolute, and not a root.
func removable(path string) bool {
	clean := filepath.Clean(path)
	return filepath.IsAbs(path) && filepath.Dir(clean) != clean
}
