package runtime

import (
	"os"
	goruntime "runtime"
	"slices"
	"strings"
)

// engineVariables are the variables that engines' programs and ssh read, and the beginnings of
// their names.
var (
	engineVariables = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE",
		"DISPLAY", "WAYLAND_DISPLAY", "GNUPGHOME", "LD_LIBRARY_PATH", "NO_PROXY", "no_proxy",
	}
	engineFamilies = []string{
		"XDG_", "DBUS_", "SSH_", "LC_", "SSL_CERT_", "KRB5", "NIX_", "HTTP_", "HTTPS_", "ALL_PROXY", "FTP_",
		"http_", "https_", "all_proxy", "ftp_",
		"CONTAINER", "_CONTAINERS_", "PODMAN", "DOCKER_", "BUILDAH_", "STORAGE_", "REGISTRY_", "NETAVARK_", "CRUN_",
	}
	// engineSecrets are the ends of names that hold secrets by habit. Podman reads none of them: a
	// registry's login comes from a file (REGISTRY_AUTH_FILE, DOCKER_CONFIG).
	engineSecrets = []string{"_AUTH_CONFIG", "_PASSWORD", "_TOKEN"}
)

// EngineEnviron returns what a program of an engine, or ssh, gets of this process's environment.
// The rest may hold the secrets of the host that started the bridge, and any process of the user
// can read another's environment.
func EngineEnviron() []string {
	if goruntime.GOOS == "windows" { // where that isn't so, and programs need variables that can't be listed
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		known := slices.Contains(engineVariables, name) ||
			slices.ContainsFunc(engineFamilies, func(family string) bool { return strings.HasPrefix(name, family) })
		return !known || slices.ContainsFunc(engineSecrets,
			func(end string) bool { return strings.HasSuffix(name, end) })
	})
}
