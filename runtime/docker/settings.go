package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/runtime/engine"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// maxFile bounds what is read of docker's own files.
const maxFile = 1 << 20

// settings are docker's variables. See docker's documentation of its command line, "Environment
// variables".
type settings struct {
	host       string // DOCKER_HOST
	context    string // DOCKER_CONTEXT
	certPath   string // DOCKER_CERT_PATH
	verify     bool   // DOCKER_TLS_VERIFY
	apiVersion string // DOCKER_API_VERSION
	home       string // empty for none
	dir        string // DOCKER_CONFIG, or .docker in home; empty for none
}

func readSettings() settings {
	s := settings{
		host: os.Getenv("DOCKER_HOST"), context: os.Getenv("DOCKER_CONTEXT"), certPath: os.Getenv(
			"DOCKER_CERT_PATH"),
		verify: os.Getenv("DOCKER_TLS_VERIFY") != "", apiVersion: os.Getenv("DOCKER_API_VERSION"), dir: os.Getenv(
			"DOCKER_CONFIG"),
	}
	if home, err := os.UserHomeDir(); err == nil {
		s.home = home
	}
	if s.dir == "" && s.home != "" {
		s.dir = filepath.Join(s.home, ".docker")
	}
	return s
}

// certs returns the certificates that the variables name; ok says whether they ask for TLS. Unlike
// docker's own command line, the server's certificate is verified whether DOCKER_TLS_VERIFY is set
// or not.
func (s settings) certs() (c certs, ok bool) {
	switch {
	case s.certPath != "":
		return certs{dir: s.certPath}, true
	case s.verify:
		return certs{dir: s.dir}, true
	}
	return certs{}, false
}

// currentContext returns what docker's config.json says; empty where there isn't one.
func (s settings) currentContext() (string, error) {
	if s.dir == "" {
		return "", nil
	}
	var c struct {
		CurrentContext string `json:"currentContext"`
	}
	err := readJSON(filepath.Join(s.dir, "config.json"), &c)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return c.CurrentContext, err
}

// contextEndpoint returns where the context of a name points to.
func (s settings) contextEndpoint(name string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	var meta struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	if err := readJSON(filepath.Join(s.dir, "contexts", "meta", id, "meta.json"), &meta); err != nil {
		return endpoint{}, fmt.Errorf("docker's context %q can't be read: %w", name, err)
	}
	d, ok := meta.Endpoints["docker"]
	if !ok || d.Host == "" {
		return endpoint{}, fmt.Errorf("docker's context %q names no docker endpoint", name)
	}
	e := endpoint{Endpoint: engine.Endpoint{URL: d.Host}}
	dir := filepath.Join(s.dir, "contexts", "tls", id, "docker")
	if _, err := os.Stat(dir); err == nil || d.SkipTLSVerify {
		e.secure, e.certs = true, certs{dir: dir, insecure: d.SkipTLSVerify}
	}
	return e, nil
}

// readJSON reads one of docker's files, which say what engine is asked and what program has logins:
// only the user and root may have written it.
func readJSON(path string, v any) error {
	if err := trust.System().File(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
