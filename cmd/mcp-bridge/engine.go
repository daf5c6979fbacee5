package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/guard"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

// engines makes the drivers of the engines that the environment leaves to choose from.
type engines struct {
	cfg       config
	hardening runtime.Hardening
	guard     *guard.Guard // may be nil
	log       *slog.Logger // may be nil
}

// newDriver chooses among the engines that the environment names: one, the one that answers at a
// URL, or any.
func newDriver(cfg config, g *guard.Guard, log *slog.Logger) (*detect.Driver, error) {
	profile, err := seccomp.Load(cfg.Seccomp)
	if err != nil {
		return nil, usageError{err}
	}
	e := engines{cfg: cfg, hardening: runtime.Hardening{Seccomp: profile, OCIRuntime: cfg.OCIRuntime}, guard: g,
		log: log}
	return detect.New(detect.Config{Candidates: e.candidates(), Log: log}), nil
}

// candidates returns them in order of preference.
func (e engines) candidates() []detect.Candidate {
	switch endpoint := e.cfg.Runtime; {
	case endpoint == "podman":
		return []detect.Candidate{e.podman(os.Getenv("CONTAINER_HOST"))}
	case endpoint == "docker":
		return []detect.Candidate{e.docker("")}
	case strings.HasPrefix(endpoint, "npipe:"): // which podman's bindings don't speak
		return []detect.Candidate{e.docker(endpoint)}
	case endpoint != "":
		return []detect.Candidate{e.podman(endpoint), e.docker(endpoint)}
	}
	return []detect.Candidate{e.podman(os.Getenv("CONTAINER_HOST")), e.docker("")}
}

func (e engines) podman(endpoint string) detect.Candidate {
	cfg := podman.Config{
		Endpoint:     endpoint,
		Setting:      e.setting(),
		SSHKey:       os.Getenv("CONTAINER_SSHKEY"),
		AllowRootful: e.cfg.AllowRootful,
		Hardening:    e.hardening,
		IdleTimeout:  time.Duration(e.cfg.RuntimeIdleTimeout),
		RuntimeDir:   os.Getenv("XDG_RUNTIME_DIR"),
		Log:          e.log,
	}
	// podman has no such variable of its own
	if certs := os.Getenv("DOCKER_CERT_PATH"); certs != "" && strings.HasPrefix(endpoint, "tcp:") {
		cfg.TLS = podman.TLS{CA: filepath.Join(certs, "ca.pem"), Cert: filepath.Join(certs, "cert.pem"),
			Key: filepath.Join(certs, "key.pem")}
	}
	if e.guard != nil {
		cfg.Guard = e.guard
	}
	return detect.Candidate{Name: "podman", Endpoint: runtime.Redacted(endpoint),
		Open: func() runtime.Driver { return podman.New(cfg) }}
}

func (e engines) docker(endpoint string) detect.Candidate {
	cfg := docker.Config{
		Endpoint:     endpoint,
		Setting:      e.setting(),
		AllowRootful: e.cfg.AllowRootful,
		RuntimeDir:   os.Getenv("XDG_RUNTIME_DIR"),
		Hardening:    e.hardening,
		Log:          e.log,
	}
	if e.guard != nil {
		cfg.Guard = e.guard
	}
	return detect.Candidate{Name: "docker", Endpoint: runtime.Redacted(endpoint),
		Open: func() runtime.Driver { return docker.New(cfg) }}
}

// setting returns the variable that names an endpoint; empty for the engines' own.
func (e engines) setting() string {
	if isURL(e.cfg.Runtime) {
		return prefix + "_RUNTIME"
	}
	return ""
}

// urlSchemes are those of the engines' APIs.
var urlSchemes = []string{"unix", "tcp", "http", "https", "ssh", "npipe"}

func isURL(s string) bool { return strings.Contains(s, "://") }
