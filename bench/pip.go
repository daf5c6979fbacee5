package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pipLock is the lock of an environment that has nothing but pip, which small images lack.
const pipLock = `lock-version = "1.0"
[[packages]]
name = "pip"
version = "25.3"
[[packages.wheels]]
url = "https://files.pythonhosted.org/packages/44/3c/d717024885424591d5376220b5e836c2d5293ce2011523c9de23ff7bf068/pip-25.3-py3-none-any.whl"
hashes = { sha256 = "9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd" }
`

// pip makes the image in which pip installs packages, measures, and removes it again.
func (s *suite) pip(ctx context.Context) (all series, err error) {
	dir := filepath.Join(s.dir, "pip")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return all, err
	}
	for file, text := range map[string]string{"bench-pip.toml": "", "pylock.bench-pip.toml": pipLock} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return all, err
		}
	}
	vars := []string{"MCP_BRIDGE_ENVS=" + dir}
	if _, err := s.env(ctx, vars, "build", "bench-pip"); err != nil {
		return all, err
	}
	for range s.rounds(5) {
		all.took(s.pipInstall(ctx))
	}
	_, err = s.env(ctx, vars, "remove", "bench-pip")
	return all, err
}

// pipInstall runs the imports as users of sandboxes without environments do: a container for the
// call, which has the network, installs the packages first.
func (l *lab) pipInstall(ctx context.Context) (time.Duration, error) {
	const certificates = "/etc/ssl/certs/ca-certificates.crt" // an authority of this machine is in it
	argv := []string{"run", "--rm", "--pull=never", "--network=host", "--env=PYTHONPATH=/opt/env:/tmp/packages"}
	if _, err := os.Stat(certificates); err == nil {
		argv = append(argv, "--volume="+certificates+":"+certificates+":ro", "--env=PIP_CERT="+certificates)
	}
	for _, name := range []string{"PIP_INDEX_URL", "UV_DEFAULT_INDEX"} {
		if value := os.Getenv(name); value != "" {
			argv = append(argv, "--env=PIP_INDEX_URL="+value)
			break
		}
	}
	argv = append(argv, "localhost/mcp-bridge/env-bench-pip:latest", "sh", "-c",
		"python3 -m pip install --quiet --no-cache-dir --only-binary :all: --target /tmp/packages "+
			`numpy pandas matplotlib && exec python3 -c "$0"`, imports)
	said := &tail{limit: 2 << 10}
	cmd := exec.CommandContext(ctx, "podman", argv...) //nolint:gosec // a baseline
	cmd.Stderr, cmd.Dir = said, l.dir
	begin := time.Now()
	out, err := cmd.Output()
	took := time.Since(begin)
	if _, err = told(string(out), err); err != nil {
		return 0, fmt.Errorf("podman run: %w; %s", err, said)
	}
	return took, nil
}
