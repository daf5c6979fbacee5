package runtime

import "syscall"

// bootID returns what is new with each boot.
func bootID() string {
	id, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// startMark returns nothing here, so that a reused process id is taken for the bridge.
func startMark(int) string { return "" }

// gone reports whether there certainly is no such process.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
