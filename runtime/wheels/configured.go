package wheels

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// IndexFrom returns the index that uv or else pip is configured to use, or "": by an environment
// variable, or in a file, the user's before the machine's. ofUV reports whether uv finds it by
// itself. getenv and read are os.Getenv and os.ReadFile.
func IndexFrom(getenv func(string) string, read func(file string) ([]byte, error)) (index string, ofUV bool) {
	named := getenv("UV_DEFAULT_INDEX") // which can have a name: company=https://…
	if name, address, found := strings.Cut(named, "="); found && !strings.Contains(name, "/") {
		named = address
	}
	if index := cmp.Or(named, getenv("UV_INDEX_URL")); index != "" {
		return index, true
	}
	_, config := configDirs(getenv)
	for _, file := range []string{getenv("UV_CONFIG_FILE"), filepath.Join(config, "uv", "uv.toml"),
		"/etc/uv/uv.toml"} {
		if text, err := read(file); file != "" && err == nil && uvIndex(string(text)) != "" {
			return uvIndex(string(text)), true
		}
	}
	return cmp.Or(getenv("PIP_INDEX_URL"), pipOption("index-url", getenv, read)), false
}

// ProxyFrom returns the URL of the proxy that pip is configured to use, by an environment variable
// or in a file, or "". getenv and read are as of IndexFrom.
func ProxyFrom(getenv func(string) string, read func(file string) ([]byte, error)) string {
	proxy := cmp.Or(getenv("PIP_PROXY"), pipOption("proxy", getenv, read))
	if proxy == "" || strings.Contains(proxy, "://") {
		return proxy
	}
	return "http://" + proxy // as pip takes a host and a port
}

// configDirs returns the user's home directory and the one of configuration.
func configDirs(getenv func(string) string) (home, config string) {
	home = cmp.Or(getenv("HOME"), getenv("USERPROFILE"))
	return home, cmp.Or(getenv("XDG_CONFIG_HOME"), getenv("APPDATA"), filepath.Join(home, ".config"))
}

// uvIndex returns the index in a uv.toml.
func uvIndex(text string) string {
	var f struct {
		IndexURL string `toml:"index-url"`
		Pip      struct {
			IndexURL string `toml:"index-url"`
		} `toml:"pip"`
		Index []struct {
			URL     string `toml:"url"`
			Default bool   `toml:"default"`
		} `toml:"index"`
	}
	if toml.Unmarshal([]byte(text), &f) != nil {
		return ""
	}
	for _, i := range f.Index {
		if i.Default {
			return i.URL
		}
	}
	return cmp.Or(f.IndexURL, f.Pip.IndexURL)
}

// pipOption returns a global option of the first of pip's files that has it.
func pipOption(name string, getenv func(string) string, read func(file string) ([]byte, error)) string {
	home, config := configDirs(getenv)
	for _, file := range []string{getenv("PIP_CONFIG_FILE"), filepath.Join(config, "pip", "pip.conf"),
		filepath.Join(config, "pip", "pip.ini"), filepath.Join(home, ".pip", "pip.conf"), "/etc/pip.conf"} {
		text, err := read(file)
		if file == "" || err != nil {
			continue
		}
		section := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			key, value, _ := strings.Cut(line, "=")
			switch {
			case strings.HasPrefix(line, "["):
				section = strings.Trim(line, "[]")
			case section == "global" && strings.ReplaceAll(strings.TrimSpace(key), "_", "-") == name:
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}
