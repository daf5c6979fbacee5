package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/trust"
)

// leftDir is a directory of a dead bridge.
type leftDir struct {
	Path     string `json:"path"`
	OwnerPID int    `json:"ownerPid"`
}

// runtimeParents returns the directories in which bridges make theirs. Those that don't depend on the
// environment are first, since hosts give their bridges different ones.
func runtimeParents() (parents []string) {
	add := func(dir string) {
		if dir != "" && !slices.Contains(parents, dir) {
			parents = append(parents, dir)
		}
	}
	if dir := fmt.Sprintf("/run/user/%d", os.Geteuid()); goruntime.GOOS == "linux" && trust.System().OwnDirectory(dir) == nil {
		add(dir)
	}
	if goruntime.GOOS != "windows" {
		add("/tmp")
	}
	add(os.Getenv("XDG_RUNTIME_DIR"))
	add(os.TempDir())
	return parents
}

// reapDirs removes the directories of dead bridges of this user. What listened there was sent SIGTERM by the
// kernel when its bridge died.
func reapDirs(parents []string, by runtime.Owner) ([]leftDir, error) {
	found := []leftDir{}
	var errs []error
	for _, parent := range parents {
		for _, dir := range deadDirs(parent, by) {
			if err := os.RemoveAll(dir.Path); err != nil {
				errs = append(errs, fmt.Errorf("directory %s of a dead bridge: %w", dir.Path, err))
				continue
			}
			found = append(found, dir)
		}
	}
	return found, errors.Join(errs...)
}

// deadDirs returns those in parent, without one that another user could have written to.
func deadDirs(parent string, by runtime.Owner) (found []leftDir) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		o, ok := runtime.OwnerNamed(e.Name(), by)
		if ok && e.IsDir() && o.Orphaned(by) && trust.System().OwnDirectory(path) == nil {
			found = append(found, leftDir{path, o.PID})
		}
	}
	return found
}
