package discovery

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Root is the file system of this machine as Scan takes it. It is read only, and safe for
// concurrent use.
func Root() fs.FS { return root{} }

type root struct{}

func (root) native(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if goruntime.GOOS == "windows" {
		return filepath.FromSlash(name), nil
	}
	if name == "." {
		return "/", nil
	}
	return "/" + name, nil
}

func (r root) Open(name string) (fs.File, error) {
	p, err := r.native("open", name)
	if err != nil {
		return nil, err
	}
	return os.Open(p)
}

// Stat lets Scan look before it opens.
func (r root) Stat(name string) (fs.FileInfo, error) {
	p, err := r.native("stat", name)
	if err != nil {
		return nil, err
	}
	return os.Stat(p)
}

// Current is the Env of this process. ConfigPaths are those that MCP_BRIDGE_CONFIG lists, as
// filepath.SplitList gives them. What can't be found out stays empty, and Scan says so where it
// matters.
func Current(configPaths []string) Env {
	home, _ := os.UserHomeDir()
	dir, err := os.Getwd()
	if err == nil {
		// Hosts know a project by its physical path.
		if physical, err := filepath.EvalSymlinks(dir); err == nil {
			dir = physical
		}
	}
	exe, err := os.Executable()
	if err == nil {
		if physical, err := filepath.EvalSymlinks(exe); err == nil {
			exe = physical
		}
	}
	return Env{
		Home: home, Dir: dir, GOOS: goruntime.GOOS, ConfigHome: os.Getenv("XDG_CONFIG_HOME"),
		AppData: os.Getenv("APPDATA"), LocalAppData: os.Getenv("LOCALAPPDATA"), Getenv: os.Getenv,
		Owners: trust.System(), Self: Self{Executable: exe}, Resolve: resolve, ConfigPaths: configPaths,
	}
}

// resolve is Env.Resolve for this machine. It only looks at files.
func resolve(command, path string) string {
	file := command
	if !strings.ContainsAny(command, "/"+string(filepath.Separator)) {
		var err error
		if file, err = onPath(command, path); err != nil {
			return ""
		}
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return ""
	}
	if file, err = filepath.Abs(file); err != nil {
		return ""
	}
	return file
}

// onPath is the first executable file of that name in a list of directories.
func onPath(command, path string) (string, error) {
	if path == "" {
		path = os.Getenv("PATH")
	}
	endings := []string{""}
	if goruntime.GOOS == "windows" {
		endings = append(endings, strings.Split(strings.ToLower(os.Getenv("PATHEXT")), ";")...)
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			continue
		}
		for _, end := range endings {
			file := filepath.Join(dir, command+end)
			info, err := os.Stat(file)
			if err == nil && info.Mode().IsRegular() && (goruntime.GOOS == "windows" ||
				info.Mode()&0o111 != 0) {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not on the path", command)
}
