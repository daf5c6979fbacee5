package discovery

import (
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// Root is the file system of this machine as Scan takes it. It is read only, and safe for
// concurrent use.
func Root() fs.FS {
	if goruntime.GOOS == "windows" {
		return volumes{}
	}
	return os.DirFS("/")
}

// volumes is the Root of Windows, where names begin with a volume.
type volumes struct{}

func (volumes) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.Open(filepath.FromSlash(name))
}

// Current is the Env of this process. ConfigPaths are those that MCP_BRIDGE_CONFIG lists, as
// filepath.SplitList gives them. What can't be found out stays empty, and Scan says so where it
// matters.
func Current(configPaths []string) Env {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	exe, _ := os.Executable()
	for _, p := range []*string{&dir, &exe} { // hosts know a project by its physical path
		if physical, err := filepath.EvalSymlinks(*p); err == nil && *p != "" {
			*p = physical
		}
	}
	return Env{
		Home: home, Dir: dir, GOOS: goruntime.GOOS, ConfigHome: os.Getenv("XDG_CONFIG_HOME"),
		AppData: os.Getenv("APPDATA"), LocalAppData: os.Getenv("LOCALAPPDATA"), Getenv: os.Getenv,
		Owners: trust.System(), Executable: exe, Resolve: resolve, ConfigPaths: configPaths,
	}
}

// resolve is Env.Resolve for this machine. It only looks at files.
func resolve(command, path string) string {
	file := command
	if !strings.ContainsAny(command, "/"+string(filepath.Separator)) {
		file = onPath(command, path)
	}
	file, err := filepath.EvalSymlinks(file)
	if err != nil || file == "" {
		return ""
	}
	file, _ = filepath.Abs(file)
	return file
}

// onPath returns the first executable file of that name in a list of directories; empty for none.
func onPath(command, path string) string {
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
			runs := err == nil && info.Mode().IsRegular()
			if runs && (goruntime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return file
			}
		}
	}
	return ""
}
