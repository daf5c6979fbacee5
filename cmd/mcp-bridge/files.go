package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"

	"github.com/mcp-bridge/mcp-bridge/bridge/files"
)

// artifacts is where the files of runs are written to; nil for nowhere. A user without a home has
// no such place unless the setting names one.
func (c config) artifacts() (*files.Store, error) {
	dir := c.Artifacts
	switch dir {
	case "none":
		return nil, nil
	case "":
		data := dataDir()
		if data == "" {
			return nil, nil
		}
		dir = filepath.Join(data, "mcp-bridge", "artifacts")
	}
	if about, err := os.Stat(dir); err == nil && !about.IsDir() {
		return nil, usageError{errors.New("MCP_BRIDGE_ARTIFACTS=" + dir + " is no directory; name one, or none")}
	}
	s, err := files.Open(dir)
	if err != nil {
		return nil, usageError{fmt.Errorf("MCP_BRIDGE_ARTIFACTS: %w", err)}
	}
	return s, nil
}

// inputs are the directories whose files calls may name; nil for none.
func (c config) inputs() (*files.Inputs, error) {
	if len(c.Inputs) == 0 {
		return nil, nil
	}
	in, err := files.NewInputs(c.Inputs)
	if err != nil {
		return nil, usageError{fmt.Errorf("MCP_BRIDGE_INPUTS: %w", err)}
	}
	return in, nil
}

// checkFiles calls say for each directory of ARTIFACTS and INPUTS, with what is wrong with it.
// A directory that is fine is reported with no error. It returns an error with which serve ends.
func (c config) checkFiles(say func(setting, dir string, err error)) error {
	kept, err := c.artifacts()
	if err != nil {
		return err
	}
	if kept != nil {
		say("ARTIFACTS", kept.Dir(), kept.Check())
	}
	in, err := c.inputs()
	if err != nil || in == nil {
		return err
	}
	problems := in.Check()
	for _, problem := range problems {
		say("INPUTS", in.Dirs(), problem)
	}
	if len(problems) == 0 {
		say("INPUTS", in.Dirs(), nil)
	}
	return nil
}

// warnOfFiles says which directories of the user's files can't be used as they are.
func (p *parts) warnOfFiles() {
	_ = p.cfg.checkFiles(func(setting, _ string, err error) { // an error would have kept the parts from being made
		if err != nil {
			p.log.Warn(filesMean[setting], "setting", "MCP_BRIDGE_"+setting, "err", err)
		}
	})
}

// filesMean says what follows where a directory can't be used.
var filesMean = map[string]string{
	"ARTIFACTS": "files of runs can't be written to their directory",
	"INPUTS":    "calls can't be given files of a directory",
}

// dataDir is where a user's data is kept; empty where the system has no such place.
func dataDir() string {
	if goruntime.GOOS == "darwin" || goruntime.GOOS == "windows" { // one place there for settings and data
		dir, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		return dir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "share")
}

// pathList is paths with the system's separator between them.
type pathList []string

// Decode implements envconfig.Decoder.
func (p *pathList) Decode(v string) error {
	for _, s := range filepath.SplitList(v) {
		if s != "" {
			*p = append(*p, s)
		}
	}
	return nil
}
