package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// ending is how a container ended. It is empty where the guest has told all there is to know, and
// the container may still be on its way to its end.
type ending struct {
	cause error // why it was killed, if it was
	exit  runtime.Exit
	err   error // the driver's
}

// conclude decides, once and from the host's own record, how a run ended: our clocks first, then
// the engine, then what waitpid told the guest's supervisor. An exception is the code's own word:
// it decides between ways of failing, and makes a failure of an exit with 0, which an exit handler
// can bring about; it never makes a success.
func (n *session) conclude(e ending, stderr string) (Result, error) {
	r := Result{
		ID:        n.req.ID,
		Output:    n.captured.chunks(),
		Truncated: n.captured.dropped,

		Unfiltered: n.unfiltered, Note: n.note,
	}
	r.Artifacts, r.Lost = n.files.result()
	if !n.executed.IsZero() {
		r.Took = Took{Start: n.executed.Sub(n.begin), Run: n.ended.Sub(n.executed)}
	}
	n.mu.Lock()
	stopped, waited := n.stopped, n.waited
	n.mu.Unlock()
	if n.badFrames > 0 {
		n.sandbox.log.Warn("frames not understood", "run", n.req.ID, "count", n.badFrames)
	}

	if e.err != nil && !n.executed.IsZero() {
		n.sandbox.log.Warn("the engine failed in a run", "run", n.req.ID, "err", e.err)
	}
	// Done may have come just before we stopped the code, or as the answer to that: only the second
	// has been killed.
	finished := n.done != nil && wait(n.done).Killed != "cancel"
	switch {
	case !finished && stopped == byCaller:
		r.Status, r.ExitCode = StatusCancelled, -1
		r.Message = "The run was cancelled."
	case !finished && stopped == byDeadline:
		r.Status, r.ExitCode = StatusTimeout, -1
		r.Message = fmt.Sprintf("The code was stopped after %v, its time limit%s.", n.req.Timeout, waited)
	case n.done != nil:
		n.byWait(&r, e.exit)
	case n.executed.IsZero():
		return Result{}, n.notStarted(e, stderr)
	case e.err != nil:
		r.Status, r.ExitCode = StatusEngine, -1
		r.Message = "The container engine failed while the code ran: " + e.err.Error() + "."
		if next := text.Hint(e.err); next != "" {
			r.Message += " Next: " + next + "."
		}
	case e.exit.OOMKilled:
		r.Status, r.ExitCode, r.Signal = StatusMemoryLimit, e.exit.Code, int(syscall.SIGKILL)
		r.Message = n.memoryMessage()
	default:
		n.withoutDone(&r, e.exit.Code, stderr)
	}
	return r, nil
}

// withoutDone concludes for a container that ended while its code ran, and of whose end no frame of
// the guest's tells.
func (n *session) withoutDone(r *Result, code int, stderr string) {
	r.Status, r.ExitCode = StatusExit, code
	if code > 128 && code < 128+65 {
		r.Signal = code - 128
	}
	switch code {
	case entrypoint.ExitProtocol, entrypoint.ExitHostGone, entrypoint.ExitSilent, entrypoint.ExitInternal:
		r.Message = fmt.Sprintf("The guest ended itself, with code %d, before the code had finished", code)
		if stderr != "" {
			r.Message += ": " + stderr
		}
		r.Message += "."
	case -1:
		r.Message = "The container was gone before the code had finished, and the engine does not know how it " +
			"ended."
	case entrypoint.ExitDone: // done was lost, or can't be read, or a program in the guest's place ended
		r.Status, r.ExitCode = StatusEngine, -1
		r.Message = "The container ended with code 0, and how the code ended was not heard: it may have " +
			"finished, and its result is not known."
	default:
		r.Message = fmt.Sprintf("The container was ended from outside, with code %d, before the code had finished.",
			code)
	}
}

// notStarted returns why the guest never came to run the code.
func (n *session) notStarted(e ending, stderr string) error {
	if errors.As(e.cause, new(*extraError)) || errors.As(e.cause, new(*UnfitError)) {
		return e.cause
	}
	late := errors.Is(e.cause, errStartTimeout)
	if errors.As(e.err, new(*runtime.UnavailableError)) && !late {
		return e.err // whatever words it uses
	}
	if why := unfit(e.exit, e.err, stderr); why != nil && !late {
		return &UnfitError{Image: n.machine.image(), Err: why, Next: "use an image with Python 3.10 or newer, " +
			"such as python:3.12-slim: MCP_BRIDGE_IMAGE"}
	}
	if e.err != nil && !late {
		return e.err
	}
	start := &StartError{Image: n.machine.image().Ref, Exit: e.exit, Stderr: stderr}
	if late {
		start.Err = fmt.Errorf("it was not ready after %v", n.sandbox.cfg.StartTimeout)
	}
	return start
}

// byWait reads the supervisor's account of the process that ran the code.
func (n *session) byWait(r *Result, exit runtime.Exit) {
	w := wait(n.done)
	if e := n.done.Error; e != nil && e.Type != "" {
		r.Error = &Failure{Type: n.short(e.Type), Message: n.short(e.Message), Traceback: n.short(e.Traceback),
			Line: e.Line}
	}
	r.ExitCode = w.Status
	if w.Signal > 0 {
		r.Signal, r.ExitCode = w.Signal, 128+w.Signal
	}
	switch {
	case w.Killed == "memory", w.Signal == int(syscall.SIGKILL) && w.OOM > 0, unexplained(w) && exit.OOMKilled:
		r.Status, r.Message = StatusMemoryLimit, n.memoryMessage()
	case w.Killed == "processes":
		r.Status = StatusExit
		r.Message = fmt.Sprintf("The code was killed: it had more than %d processes and threads, which is the "+
			"limit (%s).", n.limits().PIDs, n.setting("PIDS"))
	case w.Killed == "deaf":
		r.Status, r.Message = StatusError,
			"The code was stopped: the process of the sandbox didn't say that it had begun it."
	case w.Signal > 0:
		r.Status = StatusExit
		r.Message = fmt.Sprintf("The code was ended by signal %d (%v).", w.Signal, syscall.Signal(w.Signal))
	case w.Exited && w.Status == 0 && r.Error == nil:
		r.Status = StatusOK
	case n.done.Error != nil && n.done.Error.Code == entrypoint.CodeInternal:
		r.Status, r.Message = StatusError, "The code did not run: "+n.done.Error.Message+"."
		if w.Exited && w.Status == entrypoint.ExitInternal && !n.done.OK {
			r.Message = "The run broke down: " + n.done.Error.Message + "."
		}
	case r.Error != nil && n.done.Error.Code == entrypoint.CodeMemoryLimit:
		r.Status, r.Message = StatusMemoryLimit, n.memoryMessage()
		if r.Error.Message != "" { // Python's own has no words; the code's, or a library's, may mean anything
			r.Message = fmt.Sprintf("The code raised a MemoryError that nothing caught. A run may use %s of "+
				"memory (%s).", mib(n.limits().Memory), n.setting("MEMORY"))
		}
	case r.Error != nil:
		r.Status, r.Message = StatusError, "The code raised an exception that nothing caught."
		if r.Limit = n.exhausted(r.Error); r.Limit != "" {
			r.Message += " " + r.Limit
		}
	case w.Exited:
		r.Status, r.Message = StatusExit, fmt.Sprintf("The code exited with code %d.", w.Status)
		if w.Status == entrypoint.ExitInternal {
			r.Message += " It may have closed the descriptors by which Python tells how the code ended."
		}
	default:
		r.Status, r.ExitCode, r.Message = StatusExit, -1, "The guest did not say how the code ended."
	}
}

// unexplained reports whether something killed the code, and that the guest can't say what: the
// engine may. The kernel's memory killer uses no other signal.
func unexplained(w entrypoint.Wait) bool {
	return w.Signal == int(syscall.SIGKILL) && w.OOM == 0 && w.Killed != "memory" && w.Killed != "processes" &&
		w.Killed != "deaf"
}

// maxWords is bytes kept of each thing that the guest says of an exception.
const maxWords = 64 << 10

// short cuts the guest's words to what is kept of them.
func (n *session) short(s string) string {
	if len(s) > maxWords {
		return strings.ToValidUTF8(s[:maxWords/2]+" [...] "+s[len(s)-maxWords/2:], "")
	}
	return s
}

func (n *session) memoryMessage() string {
	return fmt.Sprintf("The code ran out of memory: the limit is %d MiB (%s).", n.limits().Memory>>20,
		n.setting("MEMORY"))
}

func wait(done *entrypoint.FromGuest) entrypoint.Wait {
	if done.Wait == nil {
		return entrypoint.Wait{}
	}
	return *done.Wait
}

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
	return strings.Replace(said, tooMany, fmt.Sprintf("%s, %d (%s)", tooMany, n.limits().PIDs,
		n.setting("PIDS")), 1)
}

// places lists the writable directories with their sizes.
func places(l runtime.Limits) string {
	var told []string
	for _, t := range append(writable(), runtime.Tmpfs{Path: "/dev/shm", Size: l.Shm}) {
		told = append(told, fmt.Sprintf("%s (%s)", t.Path, mib(t.Size)))
	}
	return strings.Join(told[:len(told)-1], ", ") + " and " + told[len(told)-1]
}
