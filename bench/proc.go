package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// resident returns the resident memory of a process in MB, by proc_pid_status(5).
func resident(pid int) (float64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		if value, ok := strings.CutPrefix(in.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("%s has no line VmRSS", path)
}

// containers returns the first process of each container of a bridge that runs.
func containers(ctx context.Context, bridge int) (pids []int, err error) {
	out, err := exec.CommandContext(ctx, "podman", "ps", "--format", "{{.Pid}}", //nolint:gosec // a number
		"--filter", fmt.Sprintf("label=io.mcp-bridge.owner-pid=%d", bridge)).Output()
	for field := range strings.FieldsSeq(string(out)) {
		pid, failed := strconv.Atoi(field)
		pids, err = append(pids, pid), errors.Join(err, failed)
	}
	return pids, err
}

// shared returns the memory in MB of a container with this first process, and of its conmon. Of
// pages that several processes have each counts its share. They may be read only where podman is
// root.
func shared(ctx context.Context, first int) (float64, error) {
	parent, _, err := stat(first)
	argv := []string{"unshare", "cat", fmt.Sprintf("/proc/%d/smaps_rollup", parent)}
	for _, pid := range tree(first) {
		argv = append(argv, fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	}
	said := &tail{limit: 2 << 10}
	cmd := exec.CommandContext(ctx, "podman", argv...) //nolint:gosec // numbers
	cmd.Stderr = said
	out, failed := cmd.Output()
	if failed != nil {
		failed = fmt.Errorf("podman unshare: %w; %s", failed, said)
	}
	total := 0.0
	for line := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, wrong := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(value, "kB\n")), 64)
			total, failed = total+kib/1024, errors.Join(failed, wrong)
		}
	}
	return total, errors.Join(err, failed)
}

// used returns the ticks of processor time that a process and its descendants have used.
func used(first int) (ticks int, err error) {
	for _, pid := range tree(first) {
		_, n, failed := stat(pid)
		ticks, err = ticks+n, errors.Join(err, failed)
	}
	return ticks, err
}

// tree returns a process and its descendants that have not ended.
func tree(first int) []int {
	all := []int{first}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for i := 0; i < len(all); i++ {
		for _, path := range processes {
			pid, _ := strconv.Atoi(filepath.Base(path))
			if parent, _, err := stat(pid); err == nil && parent == all[i] {
				all = append(all, pid)
			}
		}
	}
	return all
}

// stat returns the parent of a process, and the ticks that it has used, by proc_pid_stat(5). One
// that has ended, and is to be collected still, has no parent.
func stat(pid int) (parent, ticks int, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("%s has %d fields behind the name", path, len(fields))
	}
	for i, to := range map[int]*int{1: &parent, 11: &ticks} {
		if *to, err = strconv.Atoi(fields[i]); err != nil {
			return 0, 0, err
		}
	}
	if fields[0] == "Z" {
		parent = 0
	}
	system, err := strconv.Atoi(fields[12])
	return parent, ticks + system, err
}
