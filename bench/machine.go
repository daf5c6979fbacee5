package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is where the figures were taken, in words that name no host.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Podman string `json:"podman"`
	Bridge string `json:"bridge"`
	Load   string `json:"load"` // of the last minute, when the run began
}

func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s), %s, Linux %s, %s, %s, load average %s at the start", m.Cores, m.CPU, m.Memory, m.Kernel, m.Podman, m.Bridge, m.Load)
}

func machine(ctx context.Context, bridge string) Machine {
	m := Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), Memory: "unknown memory"}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name"); ok {
			name, _, _ := strings.Cut(rest, "\n")
			m.CPU = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	if kib, err := procField("/proc/meminfo", "MemTotal"); err == nil {
		m.Memory = fmt.Sprintf("%.0f GB of memory", float64(kib)/(1<<20))
	}
	m.Kernel = line(os.ReadFile("/proc/sys/kernel/osrelease"))
	m.Podman = line(exec.CommandContext(ctx, "podman", "--version").Output())
	m.Bridge = line(exec.CommandContext(ctx, bridge, "version").Output()) //nolint:gosec // the program to be measured
	m.Load, _, _ = strings.Cut(line(os.ReadFile("/proc/loadavg")), " ")
	return m
}

// line is the first line of what was read.
func line(text []byte, err error) string {
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}

// procField reads a number of KiB out of a file such as proc_pid_status(5) has.
func procField(path, field string) (int64, error) {
	text, err := os.ReadFile(path) //nolint:gosec // of /proc
	if err != nil {
		return 0, err
	}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), ":")
		if name == field {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, field)
}

// rss is the resident memory of a process in MB, and peak the most that it ever was.
func rss(pid int) (float64, error)  { return megabytes(pid, "VmRSS") }
func peak(pid int) (float64, error) { return megabytes(pid, "VmHWM") }

func megabytes(pid int, field string) (float64, error) {
	kib, err := procField(fmt.Sprintf("/proc/%d/status", pid), field)
	return float64(kib) / 1024, err
}

// alive counts the containers of a bridge that have a process, those that wait included.
func alive(owner int) (int, error) {
	all, err := monitors(owner)
	return len(all), err
}

// monitors are the conmons of a bridge's containers, by the container's name: podman has one beside each, from before it
// is started until it has been cleaned up, and its arguments have the container's name, which tells the owner's process. To look
// there asks nothing of podman, which has enough to do where this is wanted. Of a conmon that has just forked it may be either process.
func monitors(owner int) (map[string]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	pids := map[string]int{}
	for _, path := range all {
		text, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err != nil {
			continue // it has ended meanwhile
		}
		if name := monitored(text); strings.HasPrefix(name, fmt.Sprintf("mcp-bridge-%d-", owner)) {
			if pids[name], err = strconv.Atoi(filepath.Base(filepath.Dir(path))); err != nil {
				return nil, err
			}
		}
	}
	return pids, nil
}

// contained is the memory of a bridge's containers, each with its conmon, which is no child of the bridge's.
func contained(owner int) (float64, error) {
	all, err := monitors(owner)
	sum := 0.0
	for _, pid := range all {
		own, gone := rss(pid)
		if gone != nil {
			continue
		}
		inside, err := below(pid, rss)
		if err != nil {
			return 0, err
		}
		sum += own + inside
	}
	return sum, err
}

// monitored is the name of the container that a conmon with these arguments, each with a zero behind it, is there for; "" of any other
// program.
func monitored(cmdline []byte) string {
	args := strings.Split(string(cmdline), "\x00")
	i := slices.Index(args, "-n")
	if filepath.Base(args[0]) != "conmon" || i < 0 || i+1 >= len(args) {
		return ""
	}
	return args[i+1]
}

// called counts one for a process with a program of this name.
func called(name string) func(pid int) (float64, error) {
	return func(pid int) (float64, error) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || line(text, nil) != name {
			return 0, err
		}
		return 1, nil
	}
}

// ticks are the kernel's per second in proc_pid_stat(5): USER_HZ, which is 100 on every Linux that Go runs on.
const ticks = 100

// processor is the processor time that a process has used, in milliseconds.
func processor(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; utime and stime are the 12th and 13th fields behind it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has too few fields", pid)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	return (user + system) * 1000 / ticks, err
}

// work is what all processors of the machine have done since it was started, in milliseconds, whoever it was for.
type work struct{ busy, stolen, all float64 }

// since is what was done after an earlier look.
func (w work) since(earlier work) work {
	return work{w.busy - earlier.busy, w.stolen - earlier.stolen, w.all - earlier.all}
}

// share is a part of all in percent; not a number where the kernel has counted nothing.
func (w work) share(part float64) float64 {
	if w.all == 0 {
		return math.NaN()
	}
	return 100 * part / w.all
}

// processors reads the first line of proc_stat(5): user, nice, system, idle, iowait, irq, softirq, and steal, the time that the host of a
// virtual machine had a processor do something else. What guests of this machine have used is in user and nice already.
func processors() (w work, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return w, err
	}
	const fields, idle, iowait, steal = 8, 3, 4, 7
	words := strings.Fields(line(text, nil))
	if len(words) <= fields || words[0] != "cpu" {
		return w, fmt.Errorf("/proc/stat begins with %q", words)
	}
	for i, word := range words[1 : 1+fields] {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return w, fmt.Errorf("/proc/stat: %w", err)
		}
		n *= 1000 / ticks
		w.all += n
		switch i {
		case idle, iowait:
		case steal:
			w.stolen += n
		default:
			w.busy += n
		}
	}
	return w, nil
}

// busyNow is for how much of a moment the processors are busy while nothing is measured yet, in percent.
func busyNow(ctx context.Context, moment time.Duration) (float64, error) {
	before, err := processors()
	if err != nil {
		return 0, err
	}
	sleep(ctx, moment)
	after, err := processors()
	w := after.since(before)
	return w.share(w.busy), err
}

// below sums something of all processes below one. Those that end meanwhile are left out.
func below(pid int, of func(pid int) (float64, error)) (float64, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // a child is its thread's
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, list := range lists {
		text, err := os.ReadFile(list) //nolint:gosec // of /proc
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				return 0, err
			}
			own, err := of(child)
			if err != nil {
				continue
			}
			more, err := below(child, of)
			if err != nil {
				return 0, err
			}
			sum += own + more
		}
	}
	return sum, nil
}
