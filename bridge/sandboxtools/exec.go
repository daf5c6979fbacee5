package sandboxtools

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds of a command.
const (
	usualCommand = time.Minute
	mostCommand  = 10 * time.Minute // a longer time becomes this one, or Config.MostCommand
	mostShown    = 32 << 10         // bytes of each stream in a result
)

func execTools() []tool {
	return []tool{{"sandbox_exec", "Run a command",
		"Run a shell command in a sandbox, in /workspace.",
		[]field{{"sandbox_id", "string", "", true}, {"command", "string", "", true}, {"cwd", "string", "", false},
			{"env", "map", "", false}, {"timeout_ms", "integer", "default 60000; more than is allowed becomes that",
				false}},
		[]field{{"stdout", "string", "", true}, {"stderr", "string", "", true}, {"exit_code", "integer", "", true},
			{"truncated", "boolean", "", true}, {"run", "string", "for read_output, if truncated", false},
			{"message", "string", "what stopped it, or happened to the variables", false}},
		hints(false, false, false), (*call).exec}}
}

// executed is the result of sandbox_exec.
type executed struct {
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	ExitCode  int    `json:"exit_code"`
	Truncated bool   `json:"truncated"`
	Run       string `json:"run,omitempty"` // that reads the rest
	Message   string `json:"message,omitempty"`
}

func (c *call) exec() (any, error) {
	command := sandbox.Command{
		Line: c.text("command"), Dir: c.text("cwd"), Variables: c.variables("env"), Output: c.caller.Printed,
		Timeout: c.clamped(c.number("timeout_ms", usualCommand.Milliseconds(), 1, 1<<53)),
	}
	if strings.TrimSpace(command.Line) == "" {
		c.fail(`argument "command" is empty`)
	}
	var out sandbox.Output
	err := c.within(func(g sandboxes.Guest) (err error) {
		out, err = g.Exec(c.ctx, command)
		return err
	})
	if err != nil {
		return nil, err
	}
	stdout, stderr := streams(out)
	res := executed{ExitCode: out.ExitCode}
	ended := out.Status == sandbox.StatusOK || out.Status == sandbox.StatusExit
	if !ended || out.Signal != 0 {
		res.Message = out.Message
	}
	if out.Kept.Note != "" {
		res.Message = strings.TrimSpace(res.Message + " " + "The sandbox: " + text.Safe(out.Kept.Note) + ".")
	}
	if out.Kept.State == sandbox.StateLost {
		ended = false
		res.Message = strings.TrimSpace(res.Message + " The sandbox has ended with it.")
	}
	var cutOut, cutErr bool
	res.Stdout, cutOut = shorten(stdout, out.Truncated.Stdout)
	res.Stderr, cutErr = shorten(stderr, out.Truncated.Stderr)
	res.Truncated = cutOut || cutErr
	if res.Truncated && c.cfg.Reads && c.caller.Output.KeepText(c.caller.ID, stdout, stderr) {
		res.Run = c.caller.ID
	}
	if !ended {
		return nil, &partial{res}
	}
	return res, nil
}

// clamped returns a time that a command may have.
func (c *call) clamped(ms int64) time.Duration {
	most := min(mostCommand, c.cfg.MostCommand)
	return min(time.Duration(min(ms, most.Milliseconds()))*time.Millisecond, most)
}

// streams returns what a command printed.
func streams(o sandbox.Output) (stdout, stderr string) {
	var out, err strings.Builder
	for _, c := range o.Output {
		b := &out
		if c.Stream == "stderr" {
			b = &err
		}
		if c.Lost > 0 {
			fmt.Fprintf(b, "\n... [%d bytes were not kept] ...\n", c.Lost)
		}
		b.WriteString(c.Text)
	}
	return out.String(), err.String()
}

// shorten returns the first 60 % and the last 35 % of what a result may show of a longer stream, of
// which lost bytes are missing already.
func shorten(s string, lost int64) (short string, cut bool) {
	if len(s) <= mostShown {
		return s, lost > 0
	}
	head, tail := text.First(s, mostShown*60/100), text.Last(s, mostShown*35/100)
	return fmt.Sprintf("%s\n... [%d bytes truncated] ...\n%s", head, len(s)-len(head)-len(tail), tail), true
}
