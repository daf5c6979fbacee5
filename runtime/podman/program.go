package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// program is podman's own program, and the directory for what it makes for us.
type program struct {
	binary  string
	dir     string // XDG_RUNTIME_DIR; empty for none
	ignored error  // why dir is empty though XDG_RUNTIME_DIR is set; nil where it isn't
	guard   Guard  // may be nil
	log     *slog.Logger
	asking  time.Duration // that it has to say something
}

// newProgram does without XDG_RUNTIME_DIR where others can write to it or it isn't ours: a
// directory that we made there could be theirs by the time it is used.
func newProgram(cfg Config, log *slog.Logger) *program {
	p := &program{binary: cfg.Binary, dir: cfg.RuntimeDir, guard: cfg.Guard, log: log, asking: 2 * time.Second}
	if p.dir == "" {
		return p
	}
	if err := trust.System().OwnDirectory(p.dir); err != nil {
		p.ignored = fmt.Errorf("XDG_RUNTIME_DIR is ignored: %w", err)
		log.Warn("XDG_RUNTIME_DIR is ignored", "path", p.dir, "err", err)
		p.dir = ""
	}
	return p
}

// environ returns the program's environment. Where XDG_RUNTIME_DIR is ignored here, podman must not
// use it either.
func (p *program) environ() []string {
	return slices.DeleteFunc(runtime.EngineEnviron(), func(kv string) bool {
		return p.ignored != nil && strings.HasPrefix(kv, "XDG_RUNTIME_DIR=")
	})
}

// ask has the program say something in JSON.
func (p *program) ask(ctx context.Context, answer any, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, p.asking)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Env = p.environ()
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, answer)
}

// run runs the program and hands on what it says. What it leaves running, such as a machine, isn't
// ours to end.
func (p *program) run(ctx context.Context, to runtime.Progress, args ...string) error {
	said := &runtime.Tail{Limit: 2 << 10}
	lines := &runtime.Lines{To: func(line string) {
		_, _ = said.Write([]byte(line + "\n"))
		if to != nil {
			to(line)
		}
	}}
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Env = p.environ()
	cmd.Stdout, cmd.Stderr = lines, lines
	cmd.WaitDelay = time.Second // the machine's processes hold on to these
	ownGroup(cmd)
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%w; it said: %s", err, runtime.OneLine(said.String()))
}

// privateDir makes a directory that only this user can look into, and that the guard removes when
// we can't.
func (p *program) privateDir() (dir string, forget func(), err error) {
	parent := p.dir
	if parent == "" {
		parent = os.TempDir()
		if err := trustedTemp(parent); err != nil {
			return "", nil, unavailable(err, tempHint(err))
		}
	}
	// which tells whose it is, if it is left behind
	dir = filepath.Join(parent, runtime.Self().NewName())
	forget = func() {}
	if p.guard != nil { // before it is there, so that a kill at any moment leaves nothing
		forget = p.guard.File(dir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		forget()
		return "", nil, fmt.Errorf("making a private directory: %w", err)
	}
	return dir, forget, nil
}

// unwritable returns why podman can't use a directory for temporary files, TMPDIR or
// XDG_RUNTIME_DIR; nil where it can. Podman 4.3 starts all the same, and then answers with a nil
// pointer, or that a container can't be attached to.
func (p *program) unwritable() error {
	if dir := os.Getenv("TMPDIR"); dir != "" {
		if err := trustedTemp(dir); err != nil {
			return unavailable(err, tempHint(err))
		}
	}
	for _, place := range []struct{ name, dir string }{
		{"TMPDIR", os.Getenv("TMPDIR")}, {"XDG_RUNTIME_DIR", p.dir},
	} {
		if place.dir == "" {
			continue // podman then has one of its own
		}
		f, err := os.CreateTemp(place.dir, "mcp-bridge-*")
		if err == nil {
			_, err = f.Write(make([]byte, 4096)) // a full one can have room for names
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		if err != nil {
			// Not %w: what isn't there is the directory, and not podman.
			why := fmt.Errorf("%s, which podman needs, can't be used: %s", place.name, err.Error())
			next := "make room in %s, set %s to a directory that you can write to and that has room, or unset it"
			return unavailable(why, fmt.Sprintf(next, place.dir, place.name))
		}
	}
	return nil
}

func unavailable(err error, next string) *runtime.UnavailableError {
	return &runtime.UnavailableError{Engine: "podman", Err: err, Next: next}
}

// trustedTemp returns why dir is no place for temporary files: others could put a directory of
// theirs in the place of one of ours, and with it an engine or a filter of system calls. One that
// isn't there is told by the first use of it.
func trustedTemp(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := trust.System().Path(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory for temporary files, TMPDIR, is not used: %w", err)
	}
	return nil
}

func tempHint(err error) string {
	const set = "set TMPDIR to a directory that you can write to and that has room, or unset it"
	if bad, ok := errors.AsType[*trust.Error](err); ok {
		return bad.Hint() + "; or " + set
	}
	return set
}
