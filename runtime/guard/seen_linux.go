package guard

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Processes yields the living processes that can be seen in /proc, this one too. Elsewhere than on
// Linux there are none.
func Processes(yield func(Seen) bool) {
	for st := range processes {
		if !st.ended && !yield(Seen{PID: st.pid, Parent: st.parent, start: st.start}) {
			return
		}
	}
}

// maxArgs is how much of a process's arguments is read, in bytes.
const maxArgs = 64 << 10

// Args are its arguments now, which any process may give itself: see Ours. It has none once it has
// ended.
func (o Seen) Args() []string {
	f, err := os.Open(o.proc("cmdline"))
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxArgs))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// Program is the last part of the path of the file that it executes; empty where that can't be
// read.
func (o Seen) Program() string {
	path, err := os.Readlink(o.proc("exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(path), " (deleted)")
}

// Ours says whether it certainly is a process of this user, in this PID namespace: nothing that
// runs in a container, unless that has been given the namespace.
func (o Seen) Ours() bool {
	uids := o.status("Uid:") // real, effective, saved, of files
	me := strconv.Itoa(os.Geteuid())
	if len(uids) != 4 || uids[0] != me || uids[1] != me || uids[2] != me {
		return false
	}
	here, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return false
	}
	there, err := os.Readlink(o.proc("ns/pid"))
	return err == nil && here == there
}

// Alive says whether it is there and has not ended.
func (o Seen) Alive() bool {
	st, ok := readStat(strconv.Itoa(o.PID))
	return ok && !st.ended && st.start == o.start
}

// Signal signals it, and no later process of its number. It needs Linux 5.3.
func (o Seen) Signal(s syscall.Signal) error {
	fd, err := unix.PidfdOpen(o.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return errNotThere
	} else if err != nil {
		return fmt.Errorf("process %d: %w", o.PID, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	if !o.Alive() {      // what fd stands for
		return errNotThere
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); errors.Is(err, unix.ESRCH) {
		return errNotThere
	} else if err != nil {
		return fmt.Errorf("process %d: %w", o.PID, err)
	}
	return nil
}

func (o Seen) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(o.PID), name)
}

// status is a line of /proc/PID/status as fields, without the first, which is key.
func (o Seen) status(key string) []string {
	b, err := os.ReadFile(o.proc("status"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			return strings.Fields(rest)
		}
	}
	return nil
}
