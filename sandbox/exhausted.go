package sandbox

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// How Python tells of limits of the kernel's.
const (
	noSpace = "[Errno 28]" // ENOSPC
	noFiles = "[Errno 24]" // EMFILE
	noRoom  = "[Errno 12]" // ENOMEM: of mmap, say; elsewhere Python raises MemoryError
	noFork  = "[Errno 11]" // EAGAIN: of fork, and of everything else that doesn't block
	noClone = "can't start new thread"
)

var isFork = regexp.MustCompile(`fork|Popen|subprocess`)

// exhausted returns which limit of the run an exception came from, as a sentence; empty when from
// none. The code can make it say so: it is a hint for who reads, and decides nothing.
func (n *session) exhausted(e *Failure) string {
	l := n.limits()
	switch {
	case strings.Contains(e.Message, noSpace):
		return fmt.Sprintf("The only places to write to are %s, in memory: write less, or remove what isn't "+
			"needed.", places(l))
	case strings.Contains(e.Message, noFiles):
		return fmt.Sprintf("A process may have %d files, pipes and sockets open at a time: close those that "+
			"aren't needed.", l.NoFile)
	case e.Type == "OSError" && strings.Contains(e.Message, noRoom):
		return fmt.Sprintf("A run may use %s of memory (%s).", mib(l.Memory), n.setting("MEMORY"))
	case e.Type == "RuntimeError" && strings.Contains(e.Message, noClone),
		e.Type == "BlockingIOError" && strings.Contains(e.Message, noFork) && isFork.MatchString(e.Traceback):
		return fmt.Sprintf("A run may have %d processes and threads at a time (%s): start fewer, "+
			"or wait for some of them to end.", l.PIDs, n.setting("PIDS"))
	}
	return ""
}

// tooMany is how the guest tells that no copy of a process can be made since there are too many.
const tooMany = "as many as there may be"

// crowded adds the limit to the guest's word that there are too many processes.
func (n *session) crowded(said string) string {
	return strings.Replace(said, tooMany, fmt.Sprintf("%s, %d (%s)", tooMany, n.limits().PIDs, n.setting("PIDS")), 1)
}

// places lists the writable directories with their sizes.
func places(l runtime.Limits) string {
	var told []string
	for _, t := range append(writable(), runtime.Tmpfs{Path: "/dev/shm", Size: l.Shm}) {
		told = append(told, fmt.Sprintf("%s (%s)", t.Path, mib(t.Size)))
	}
	return strings.Join(told[:len(told)-1], ", ") + " and " + told[len(told)-1]
}
