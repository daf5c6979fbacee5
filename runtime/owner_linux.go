package runtime

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// bootID returns the kernel's, and the PID namespace's number: the same process id is another
// process in another namespace.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	ns, err := os.Readlink("/proc/self/ns/pid") // "pid:[4026531836]"
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b)) + "-" + strings.Trim(ns, "pid:[]")
}

// startMark returns field 22 of /proc/PID/stat, proc_pid_stat(5): clock ticks from boot to the
// start of the process.
func startMark(pid int) string {
	f := stat(pid)
	if len(f) < 20 {
		return ""
	}
	return string(f[19])
}

// gone reports whether there certainly is no such process, or that it has ended and its parent
// hasn't asked how yet, which may never be.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	f := stat(pid)
	return len(f) > 0 && (f[0][0] == 'Z' || f[0][0] == 'X')
}

// stat returns /proc/PID/stat from its third field on; nil where it can't be read. The second may
// hold any character, so fields are counted from the last ')'.
func stat(pid int) [][]byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}
