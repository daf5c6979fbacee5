package sandboxtools

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Codes of errors, for the record.
const (
	codeInvalid     = "invalid"
	codeNotFound    = "not_found"
	codeConflict    = "conflict"
	codeBusy        = "busy"
	codeQuota       = "quota"
	codeCancelled   = "cancelled"
	codeStopped     = "stopped"
	codeUnavailable = "unavailable"
)

// told returns what the caller of a tool reads of an error, with one next step, and its code.
func (c *call) told(name string, err error) (said, code string) {
	var gone *sandboxes.GoneError
	var file *sandbox.FileError
	switch {
	case errors.As(err, new(args.Error)):
		return "Invalid request: " + err.Error(), codeInvalid
	case errors.As(err, &gone):
		return fmt.Sprintf("Not found: %v. Use sandbox_list to see ids or sandbox_create for a new one; %s", gone,
			gone.Others()), codeNotFound
	case errors.As(err, &file):
		return c.fileTold(name, file)
	case errors.Is(err, sandbox.ErrNoUndo):
		return text.Safe(err.Error()) + ": there was none since, or no way back was kept. Set the variables by " +
			"run_python", codeConflict
	case errors.As(err, new(*sandboxes.InUseError)):
		return err.Error() + ". Re-check with sandbox_info", codeConflict
	case errors.As(err, new(*sandboxes.AsleepError)):
		return err.Error() + ". sandbox_resume wakes it", codeConflict
	case errors.As(err, new(*hibernation.Error)):
		return err.Error() + ". Remove it by sandbox_kill, and create another one", codeUnavailable
	case errors.As(err, new(*sandboxes.BusyError)), errors.As(err, new(*sandbox.QueueError)):
		return err.Error() + ". Retry after a short backoff", codeBusy
	case errors.As(err, new(*sandboxes.FullError)):
		return "Sandbox quota reached: " + err.Error() + ". Kill one by sandbox_kill, or retry later", codeQuota
	case c.ctx.Err() != nil:
		return "the call was cancelled", codeCancelled
	}
	return text.Hinted(err), codeUnavailable
}

// fileTold does that for an operation on a file.
func (c *call) fileTold(tool string, e *sandbox.FileError) (said, code string) {
	next := map[string]string{
		"not_found":       "Use sandbox_files_list to see what is there",
		"not_a_file":      "Use sandbox_files_list for a directory",
		"not_a_directory": "Use sandbox_files_read for a file",
		"too_large": "Use sandbox_exec with head -c or sed for a part of it, or sandbox_files_download_dir for " +
			"its directory",
		"denied": "Use a path below /workspace or /tmp",
		"failed": "It may be safe to retry",
	}[e.Code]
	switch {
	case c.caller.User && (e.Code == "not_found" || e.Code == "not_a_file"):
		next = "mcp-bridge sandbox shell " + c.report.Sandbox + " shows with ls what is there"
	case c.caller.User && e.Code == "too_large":
		next = "Take a part of it, by split in mcp-bridge sandbox shell " + c.report.Sandbox
	case tool == "sandbox_files_download_dir" && e.Code == "too_large":
		next = "Use it for a directory below, or sandbox_files_read for single files"
	}
	return strings.TrimSuffix(text.Safe(e.Error()), ".") + ". " + next, e.Code
}
