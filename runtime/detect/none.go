package detect

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// noneError lists why no candidate can be used, one line each.
type noneError struct{ verdicts []Verdict }

func (e *noneError) Error() string {
	var b strings.Builder
	for i, v := range e.verdicts {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(v.Name + ": " + Reason(v.Err))
	}
	return b.String()
}

func (e *noneError) Unwrap() []error {
	var errs []error
	for _, v := range e.verdicts {
		errs = append(errs, v.Err)
	}
	return errs
}

// Reason returns why an engine can't be used, in one line and without its name.
func Reason(err error) string {
	if u, ok := errors.AsType[*runtime.UnavailableError](err); ok {
		text := u.Err.Error()
		if u.Endpoint != "" && !strings.Contains(text, u.Endpoint) {
			text = "at " + u.Endpoint + ": " + text
		}
		return runtime.OneLine(text)
	}
	return runtime.OneLine(err.Error())
}

// none returns the error when no candidate can be used. It is called with mu held, after the
// verdicts are written.
func (d *Driver) none() error {
	if len(d.verdicts) == 1 {
		v := d.verdicts[0]
		if errors.As(v.Err, new(*runtime.UnavailableError)) {
			return v.Err
		}
		return &runtime.UnavailableError{Engine: v.Name, Endpoint: v.Endpoint, Err: v.Err,
			Next: "run: mcp-bridge doctor"}
	}
	return &runtime.UnavailableError{Err: &noneError{append([]Verdict(nil), d.verdicts...)}, Next: d.next()}
}

// next returns the best next step: of an engine that is installed before what to install, since
// less is missing there.
func (d *Driver) next() string {
	for _, v := range d.verdicts {
		var hinted interface{ Hint() string }
		if errors.As(v.Err, &hinted) && hinted.Hint() != "" && !absent(v) {
			return hinted.Hint()
		}
	}
	for _, v := range d.verdicts {
		if !absent(v) {
			return "run: mcp-bridge doctor"
		}
	}
	switch d.cfg.OS {
	case "darwin":
		return "install podman (brew install podman && podman machine init && podman machine start), then run:" +
			" mcp-bridge doctor"
	case "windows":
		return "install podman (winget install RedHat.Podman; podman machine init; podman machine start), then" +
			" run: mcp-bridge doctor"
	}
	return "install podman (Debian, Ubuntu: sudo apt install podman; Fedora: sudo dnf install podman; Arch:" +
		" sudo pacman -S podman), then run: mcp-bridge doctor"
}

// absent reports whether an engine isn't installed, or has no socket in any of the usual places.
func absent(v Verdict) bool {
	return v.Endpoint == "" && (errors.Is(v.Err, exec.ErrNotFound) || errors.Is(v.Err, fs.ErrNotExist))
}
