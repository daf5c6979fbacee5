package settings

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
)

// ErrNoPlace is for what would be kept in a directory that there isn't.
var ErrNoPlace = errors.New("there is no place to keep it; set HOME")

// CacheDir returns where answers that take long to find are kept; empty if the system has no such
// place.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mcp-bridge")
}

// StateDir returns where programs keep what lasts and isn't configuration.
func StateDir() string {
	local := func() (string, error) { return os.Getenv("LOCALAPPDATA"), nil }
	if goruntime.GOOS != "windows" {
		local = nil
	}
	return userDir("XDG_STATE_HOME", local, ".local", "state")
}

// EnvironmentsDir returns the directory of the user's environments, or "" without a home.
func (s Settings) EnvironmentsDir() string {
	if s.Envs != "" {
		return s.Envs
	}
	if dir := userDir("XDG_CONFIG_HOME", os.UserConfigDir, ".config"); dir != "" {
		return filepath.Join(dir, "environments")
	}
	return ""
}

// FirstPolicy returns the file that install writes the first policy to; empty without a home.
func FirstPolicy() string {
	if dir := userDir("XDG_CONFIG_HOME", nil, ".config"); dir != "" {
		return filepath.Join(dir, "policy.toml")
	}
	return ""
}

// userDir returns our directory of a kind: where the variable of the XDG Base Directory
// Specification says, else the system's own, else below the home directory. It is empty if there is
// no such place.
func userDir(variable string, system func() (string, error), below ...string) string {
	const own = "mcp-bridge"
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, own)
	}
	if system != nil && (goruntime.GOOS == "darwin" || goruntime.GOOS == "windows") {
		if dir, err := system(); err == nil && dir != "" {
			return filepath.Join(dir, own)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(append(append([]string{home}, below...), own)...)
}
