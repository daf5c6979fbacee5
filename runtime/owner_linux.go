package runtime

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// bootID is the kernel's, and the PID namespace's number: the same process id is another process in another namespace.
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

// startMark is field 22 of /proc/PID/stat, proc_pid_stat(5): clock ticks from boot to the start of the process. The second
// field may hold any character, so fields are counted from the last ')'.
func startMark(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return ""
	}
	return string(f[19])
}
