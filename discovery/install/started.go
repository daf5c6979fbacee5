package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery/config"
)

const program = config.Own // our name on PATH too, and with npm

// StartedWith returns how a host starts this program, which is exe, and with which variables: by
// the name on PATH that leads to it, since its file may be another one after an upgrade. A
// project's file has the bare name.
func StartedWith(exe, version string, project bool) (command, vars []string, err error) {
	const npxCache = "_npx"
	if slices.Contains(strings.Split(filepath.ToSlash(exe), "/"), npxCache) { // which npm clears
		command, vars = withNpx(version, project)
		return command, vars, nil
	}
	named, err := exec.LookPath(program)
	if err == nil && sameFile(named, exe) {
		if project {
			return []string{program}, nil, nil
		}
		if named, err = filepath.Abs(named); err == nil {
			return []string{named}, nil, nil
		}
	}
	if project {
		return nil, nil, errors.New("a project's file needs a command that works for all who have the " +
			"project, and " + program + " on PATH isn't this program; put it into a directory of PATH")
	}
	return []string{exe}, nil, nil
}

// withNpx returns how npx starts this program. A host that was not started in a terminal knows few
// directories: the user's file gets the whole path of npx, and the terminal's PATH, on which npx
// looks for node, without what belongs to a project.
func withNpx(version string, project bool) (command, vars []string) {
	command = []string{"npx", "-y", program}
	if v, released := strings.CutPrefix(version, "v"); released {
		command[2] += "@" + v
	}
	npx, err := exec.LookPath(command[0])
	if err == nil {
		npx, err = filepath.Abs(npx)
	}
	if err != nil || project {
		return command, nil
	}
	command[0] = npx
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), ofProject)
	if runtime.GOOS != "windows" { // where the system's settings have it for all programs
		vars = []string{"PATH=" + strings.Join(dirs, string(filepath.ListSeparator))}
	}
	return command, vars
}

// ofProject reports whether a directory of PATH is there for the project that the terminal is in:
// npm and virtual environments add such, and who can write to the project can put programs there.
func ofProject(dir string) bool {
	within := func(of string) bool {
		rest, err := filepath.Rel(of, dir)
		return of != "" && err == nil && filepath.IsLocal(rest)
	}
	home, _ := os.UserHomeDir()
	cwd, err := os.Getwd()
	if above, rel := filepath.Rel(cwd, home); err != nil || rel != nil || filepath.IsLocal(above) {
		cwd = "" // all of the user's is below it
	}
	return !filepath.IsAbs(dir) || strings.Contains(dir, "node_modules") ||
		within(os.Getenv("VIRTUAL_ENV")) || within(cwd)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
