package guard

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// pinned: the leader is kept unreaped until its group has ended, and with it the group's number.
const pinned = true

// lead makes cmd the leader of a new group that is told when the bridge dies before it could
// register it.
func lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
}

// awaitExit waits for the child's end and leaves it unreaped, so that its number stays taken.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// stat is what /proc says of one process.
type stat struct {
	pid, pgid int
	parent    int
	session   int
	start     uint64 // clock ticks since boot
	ended     bool   // a zombie
}

// identity returns what tells a process from another one that gets its number later.
func identity(pid int) (start uint64, session int) {
	st, ok := readStat(strconv.Itoa(pid))
	if !ok {
		return 0, 0
	}
	return st.start, st.session
}

// present reports whether the group that was registered, and no later one of that number, has a
// living process.
func present(e entry) bool {
	if st, ok := readStat(strconv.Itoa(e.PGID)); ok && e.Start != 0 && st.start != e.Start {
		return false
	}
	for st := range processes {
		if st.pgid == e.PGID && !st.ended && (e.Session == 0 || st.session == e.Session) {
			return true
		}
	}
	return false
}

// populated reports whether a group has a living process.
func populated(pgid int) bool { return present(entry{PGID: pgid}) }

// marked finds the groups whose leader carries one of the marks in its environment.
func marked(marks []string) []entry {
	var found []entry
	for st := range carriers(marks) {
		if st.pid == st.pgid {
			found = append(found, entry{PGID: st.pgid, Start: st.start, Session: st.session})
		}
	}
	return found
}

// signal signals every living process that carries one of the marks, by itself and not as a group,
// which may have others in it, and returns how many there are.
func (s *sweep) signal(what int) (found int) {
	for st := range carriers(s.marks) {
		found++
		if what == look {
			continue
		}
		fd, err := unix.PidfdOpen(st.pid, 0)
		if err != nil { // it is gone, or the kernel is older than 5.3
			continue
		}
		if carries(st.pid, s.marks) { // what fd stands for, and no later process of that number
			s.name(st)
			if what == force {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			} else {
				_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
				_ = unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
			}
		}
		_ = unix.Close(fd)
	}
	return found
}

// name logs a process that is about to be signalled, once.
func (s *sweep) name(st stat) {
	key := [2]uint64{uint64(st.pid), st.start}
	if s.log == nil || s.named[key] {
		return
	}
	if s.named == nil {
		s.named = map[[2]uint64]bool{}
	}
	s.named[key] = true
	s.log.Info("ending a process that a killed bridge's server has left",
		"pid", st.pid, "program", Seen{PID: st.pid}.Program(), "group", st.pgid, "session", st.session)
}

// nameGroup does so for the processes of a group.
func (s *sweep) nameGroup(e entry) {
	for st := range processes {
		if st.pgid == e.PGID && !st.ended {
			s.name(st)
		}
	}
}

// carriers yields the living processes that carry one of the marks, without this one.
func carriers(marks []string) func(yield func(stat) bool) {
	return func(yield func(stat) bool) {
		if len(marks) == 0 {
			return
		}
		for st := range processes {
			if !st.ended && st.pid > 1 && st.pid != os.Getpid() && carries(st.pid, marks) && !yield(st) {
				return
			}
		}
	}
}

func carries(pid int, marks []string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && slices.ContainsFunc(marks, func(m string) bool {
		return bytes.Contains(environ, []byte(MarkVar+"="+m+"\x00"))
	})
}

// processes yields every process that can be seen.
func processes(yield func(stat) bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if st, ok := readStat(name); ok && !yield(st) {
			return
		}
	}
}

func readStat(pid string) (stat, bool) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, false
	}
	// pid (comm) state ppid pgrp session …, where comm may hold spaces and parentheses.
	fields := strings.Fields(string(b[bytes.LastIndex(b, []byte(")"))+1:]))
	if len(fields) < 20 {
		return stat{}, false
	}
	st := stat{ended: fields[0] == "Z" || fields[0] == "X"}
	var errs [5]error
	st.pid, errs[0] = strconv.Atoi(pid)
	st.parent, errs[1] = strconv.Atoi(fields[1])
	st.pgid, errs[2] = strconv.Atoi(fields[2])
	st.session, errs[3] = strconv.Atoi(fields[3])
	st.start, errs[4] = strconv.ParseUint(fields[19], 10, 64)
	return st, errors.Join(errs[:]...) == nil
}
