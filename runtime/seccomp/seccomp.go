// Package seccomp has the filter of system calls that containers get from their engine: strict,
// which is ours and allows what Python needs and nothing else; a file of the user's; or none, which
// leaves the engine's default. It is beside the deny filter that the guest installs by itself,
// which holds with any of them.
//
// The format is the JSON that Docker and podman share. README.md says why strict is as it is.
package seccomp

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// The choices that are no path.
const (
	Engine = "engine" // the engine's default
	Strict = "strict" // ours
)

// maxFile bounds a profile in bytes; the largest known is 20 KiB.
const maxFile = 1 << 20

//go:embed strict.json
var strict []byte

// Load returns the profile of a choice: Engine gives nil; Strict, or nothing, gives ours; anything
// else is the path of a file, which is read now and not again.
func Load(choice string) (*runtime.SeccompProfile, error) {
	switch choice {
	case Engine:
		return nil, nil
	case Strict, "":
		return &runtime.SeccompProfile{Name: Strict, JSON: slices.Clone(strict)}, nil
	}
	text, err := read(choice)
	if err == nil {
		err = check(text)
	}
	if err != nil {
		const what = "the seccomp profile %s can't be used: %w; MCP_BRIDGE_SECCOMP takes %q, %q, or the path" +
			" of a profile in Docker's JSON format"
		return nil, fmt.Errorf(what, choice, err, Strict, Engine)
	}
	name, err := filepath.Abs(choice)
	if err != nil {
		return nil, fmt.Errorf("the seccomp profile %s: %w", choice, err)
	}
	return &runtime.SeccompProfile{Name: name, JSON: text}, nil
}

// read takes ordinary files only: a pipe or a device would hold up the start.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no ordinary file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return text, err
}

// profile is what is looked at before an engine sees it. Engines know more fields; what they make
// of those is theirs.
type profile struct {
	DefaultAction string `json:"defaultAction"`
	Syscalls      []rule `json:"syscalls"`
}

type rule struct {
	Name   string   `json:"name"` // in the oldest form of the format
	Names  []string `json:"names"`
	Action string   `json:"action"`
}

// actions are libseccomp's. Those that stop a call are the ones that make a filter.
var (
	stopping = []string{
		"SCMP_ACT_ERRNO",
		"SCMP_ACT_KILL",
		"SCMP_ACT_KILL_THREAD",
		"SCMP_ACT_KILL_PROCESS",
		"SCMP_ACT_TRAP",
	}
	others = []string{"SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_TRACE", "SCMP_ACT_NOTIFY"}
)

// check finds what an engine would only complain of once a container is started, and a profile that
// filters nothing.
func check(text []byte) error {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("it holds no JSON object")
	}
	var p profile
	if err := json.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("it is no such JSON: %w", err)
	}
	if p.DefaultAction == "" {
		return errors.New(`it has no "defaultAction"`)
	}
	stops := slices.Contains(stopping, p.DefaultAction)
	if !stops && !slices.Contains(others, p.DefaultAction) {
		return fmt.Errorf("its defaultAction %q is unknown", p.DefaultAction)
	}
	for i, r := range p.Syscalls {
		known := slices.Contains(stopping, r.Action)
		switch {
		case r.Name == "" && len(r.Names) == 0,
			slices.ContainsFunc(r.Names, func(s string) bool { return strings.TrimSpace(s) == "" }):
			return fmt.Errorf("rule %d of its syscalls names no system call", i+1)
		case !known && !slices.Contains(others, r.Action):
			return fmt.Errorf("the action %q of rule %d of its syscalls is unknown", r.Action, i+1)
		}
		stops = stops || known
	}
	if !stops {
		return errors.New("it stops no system call")
	}
	return nil
}
