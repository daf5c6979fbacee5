package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Python is what an image has of it.
type Python struct {
	Version string `json:"version"` // such as "3.12.4"
	Ctypes  bool   `json:"ctypes"`  // without it the guest can't install its own filter of system calls
}

// The oldest Python that runs the guest.
const minMajor, minMinor = 3, 10

// probeProgram tells the version, and whether there is ctypes. It runs on any Python 3.
const probeProgram = `import sys
try:
    import ctypes
    found = 1
except Exception:
    found = 0
sys.stdout.write("%d.%d.%d %d\n" % (sys.version_info[:3] + (found,)))
`

var probeAnswer = regexp.MustCompile(`^(\d{1,3})\.(\d{1,3})\.\d{1,3} ([01])$`)

// probes remember what images have been found to be, by engine and image id. An id names what is in
// an image, so an answer holds for as long as the id does.
type probes struct {
	mu   sync.Mutex
	good map[string]Python
	bad  map[string]error // what can't change while the id doesn't
	read bool             // the cache directory has been read
}

// probe says which Python an image has, by running it once in a container like any other.
func (s *Sandbox) probe(ctx context.Context, f runtime.Facts, i runtime.Image) (Python, error) {
	key := f.Engine + " " + i.ID
	p, known, err := s.remembered(key)
	if !known && err == nil {
		if p, err = s.tryPython(ctx, i); err == nil {
			err = oldEnough(i, p)
		}
		s.remember(key, p, err)
	}
	if err == nil && !p.Ctypes && !strongProfile(f) {
		err = &UnfitError{
			Image: i,
			Err: errors.New("its Python has no ctypes, so that the guest can't filter system calls, and here the " +
				"engine's own filter is its default or none"),
			Next: "use an image whose Python has ctypes, such as python:3.12-slim: MCP_BRIDGE_IMAGE",
		}
	}
	return p, err
}

// strongProfile says whether the engine itself denies what the guest's own filter would.
func strongProfile(f runtime.Facts) bool { return f.Seccomp != "" && f.Seccomp != "engine" }

// tryPython runs the probe.
func (s *Sandbox) tryPython(ctx context.Context, i runtime.Image) (Python, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, errStartTimeout)
	defer cancel()
	spec := s.spec(i.ID)
	spec.Command = []string{"python3", "-I", "-B", "-c", probeProgram}
	spec.MaxAge = s.cfg.StartTimeout + ageSlack
	stdout, stderr := &runtime.Tail{Limit: stderrTail}, &runtime.Tail{Limit: stderrTail}
	exit, err := s.driver.Run(ctx, spec, runtime.Stdio{Stdin: strings.NewReader(""), Stdout: stdout,
		Stderr: stderr})
	if cause := context.Cause(ctx); err == nil && errors.Is(cause, errStartTimeout) {
		return Python{}, &StartError{Image: i.Ref, Exit: exit, Stderr: stderr.String(),
			Err: fmt.Errorf("%w: it had %v", cause, s.cfg.StartTimeout)}
	} else if cause != nil {
		return Python{}, cause
	}
	if errors.As(err, new(*runtime.UnavailableError)) {
		return Python{}, err // whatever words it uses
	}
	if why := unfit(exit, err, stderr.String()); why != nil {
		return Python{}, &UnfitError{Image: i, Err: why, Next: "use an image with Python 3.10 or newer, such as " +
			"python:3.12-slim: MCP_BRIDGE_IMAGE"}
	}
	if err != nil {
		return Python{}, err
	}
	found := probeAnswer.FindStringSubmatch(stdout.String())
	if exit.Code != 0 || found == nil {
		return Python{}, &StartError{Image: i.Ref, Exit: exit, Stderr: stderr.String()}
	}
	version, _, _ := strings.Cut(found[0], " ")
	return Python{Version: version, Ctypes: found[3] == "1"}, nil
}

// unfit is what the end of the probe says against the image, in the words of the engines and their
// runtimes.
func unfit(exit runtime.Exit, err error, stderr string) error {
	text := stderr
	if err != nil {
		text += " " + err.Error()
	}
	text = strings.ToLower(text)
	missing := strings.Contains(text, "not found") || strings.Contains(text, "no such file")
	switch {
	case strings.Contains(text, "exec format error"):
		return errors.New("its programs are made for another architecture than this machine's")
	case err != nil && strings.Contains(text, "python3") && missing, err == nil && exit.Code == 127:
		return errors.New("there is no python3 on its PATH")
	}
	return nil
}

func oldEnough(i runtime.Image, p Python) error {
	found := probeAnswer.FindStringSubmatch(p.Version + " 0")
	if found == nil {
		return fmt.Errorf("python version %q", p.Version)
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major > minMajor || major == minMajor && minor >= minMinor {
		return nil
	}
	return &UnfitError{
		Image: i,
		Err:   fmt.Errorf("its Python is %s, and the guest needs %d.%d or newer", p.Version, minMajor, minMinor),
		Next:  "use an image with a newer Python, such as python:3.12-slim: MCP_BRIDGE_IMAGE",
	}
}
