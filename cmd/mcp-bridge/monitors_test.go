package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// monitorsOf are the conmon processes of containers of these bridges, by the names that podman has
// given them, and the processes of those containers. Podman itself may know nothing of them any
// more.
func monitorsOf(pids []int) (found []string) {
	for _, conmon := range processes("/conmon\x00") {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", conmon))
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		i := slices.Index(args, "-n")
		if i < 0 || i+1 == len(args) {
			continue
		}
		owner, ok := runtime.OwnerNamed(args[i+1], runtime.Self())
		if !ok || !slices.Contains(pids, owner.PID) {
			continue
		}
		found = append(found, fmt.Sprintf("conmon %d of %s", conmon, args[i+1]))
		for _, child := range childrenOf(conmon) {
			found = append(found, fmt.Sprintf("its process %d", child))
		}
	}
	return found
}

// childrenOf are the living children of a process.
func childrenOf(parent int) (found []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // state, parent
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

// watchdogOf is the watchdog that a bridge has started.
func watchdogOf(t *testing.T, bridge int) int {
	t.Helper()
	for _, child := range childrenOf(bridge) {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); err == nil &&
			bytes.HasSuffix(line, []byte("\x00"+watchdogName+"\x00")) {
			return child
		}
	}
	t.Fatal("it has no watchdog")
	return 0
}
