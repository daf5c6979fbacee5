package wheels

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
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
	for _, file := range uvFiles(getenv) {
		if text, err := read(file); err == nil && uvIndex(string(text)) != "" {
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

// uvFiles returns uv's settings files, the one that counts more first.
func uvFiles(getenv func(string) string) []string {
	if file := getenv("UV_CONFIG_FILE"); file != "" {
		return []string{file}
	}
	_, config := configDirs(getenv)
	return []string{filepath.Join(config, "uv", "uv.toml"), "/etc/uv/uv.toml"}
}

// uvIndexes are the settings of uv that say where packages come from, and uvReach those that say
// how that is reached.
var (
	uvIndexes = []string{"index", "index-url", "extra-index-url", "index-strategy", "no-index", "find-links"}
	uvReach   = []string{"keyring-provider", "native-tls", "system-certs", "allow-insecure-host", "http-proxy",
		"https-proxy", "no-proxy"}
)

// UVSettings returns a uv.toml that has what uv's own files say of indexes, if those count, and of
// proxies, and nothing else: other settings, such as no-binary, have uv build packages. getenv and
// read are as of IndexFrom.
func UVSettings(getenv func(string) string, read func(file string) ([]byte, error),
	indexes bool) ([]byte, error) {
	keys := uvReach
	if indexes {
		keys = slices.Concat(uvIndexes, uvReach)
	}
	kept := map[string]any{}
	for _, file := range uvFiles(getenv) {
		text, err := read(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		all := map[string]any{}
		if err == nil {
			err = toml.Unmarshal(text, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("uv's settings %s can't be read: %w", file, err)
		}
		pip, _ := all["pip"].(map[string]any) // nil if there are none
		for _, settings := range []map[string]any{pip, all} {
			for _, key := range keys {
				if value, has := settings[key]; has && kept[key] == nil {
					kept[key] = value
				}
			}
		}
	}
	return toml.Marshal(kept)
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
