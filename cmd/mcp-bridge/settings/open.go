package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/identity"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// ReadPolicy reads the file that the user names. Without one, everything is allowed.
func (s Settings) ReadPolicy() (*policy.Policy, error) {
	if s.Policy == "" {
		return new(policy.Policy), nil
	}
	return policy.Read(filepath.Clean(s.Policy))
}

// OpenAudit opens the file that the user names; nil for none. If it can't be written now, a bridge
// that serves does so all the same, logs why, and refuses each run with the reason until it can.
func (s Settings) OpenAudit(serves bool, log *slog.Logger) (*audit.Log, error) {
	if s.Audit == "" {
		return nil, nil
	}
	l, err := audit.Open(audit.Config{Path: filepath.Clean(s.Audit), Arguments: s.AuditArguments})
	if errors.As(err, new(*audit.Error)) {
		if serves {
			log.Error("no code will be run", text.Next(err)...)
		}
		err = nil
	}
	return l, err
}

// OpenArtifacts returns where the files of runs are written to; nil for nowhere. A user without a
// home has no such place unless the setting names one.
func (s Settings) OpenArtifacts(log *slog.Logger) (*files.Store, error) {
	dir := s.Artifacts
	switch dir {
	case "none":
		return nil, nil
	case "":
		data := userDir("XDG_DATA_HOME", os.UserConfigDir, ".local", "share")
		if data == "" {
			return nil, nil
		}
		dir = filepath.Join(data, "artifacts")
	}
	if about, err := os.Stat(dir); err == nil && !about.IsDir() {
		return nil, exit.Usage(errors.New("MCP_BRIDGE_ARTIFACTS=" + dir + " is no directory; name one, or none"))
	}
	store, err := files.Open(dir, log)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_ARTIFACTS: %w", err))
	}
	return store, nil
}

// OpenInputs returns the directories whose files calls may name; nil for none.
func (s Settings) OpenInputs() (*files.Inputs, error) {
	if len(s.Inputs) == 0 {
		return nil, nil
	}
	in, err := files.NewInputs(s.Inputs)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_INPUTS: %w", err))
	}
	return in, nil
}

// CheckFiles calls say for each directory of ARTIFACTS and INPUTS, with what is wrong with it, if
// anything. It returns an error with which serve ends.
func (s Settings) CheckFiles(say func(setting, dir string, err error)) error {
	kept, err := s.OpenArtifacts(nil)
	if err != nil {
		return err
	}
	if kept != nil {
		say("ARTIFACTS", kept.Dir(), kept.Check())
	}
	if s.Hibernate != "" {
		err := trust.System().OwnDirectory(filepath.Clean(s.Hibernate))
		if errors.Is(err, fs.ErrNotExist) { // it will be made
			err = nil
		}
		say("HIBERNATE", s.Hibernate, err)
	}
	in, err := s.OpenInputs()
	if err != nil || in == nil {
		return err
	}
	problems := in.Check()
	if len(problems) == 0 {
		problems = []error{nil}
	}
	for _, problem := range problems {
		say("INPUTS", in.Dirs(), problem)
	}
	return nil
}

// FilesMean says what follows if a directory can't be used.
var FilesMean = map[string]string{
	"ARTIFACTS": "files of runs can't be written to their directory",
	"INPUTS":    "calls can't be given files of a directory",
	"HIBERNATE": "serve doesn't start: others could read or replace what sandboxes leave",
}

// Filter returns the filter of system calls that the engine is to set.
func (s Settings) Filter() (*runtime.SeccompProfile, error) {
	if s.nodesFilter() {
		return &runtime.SeccompProfile{Name: s.Seccomp}, nil
	}
	return seccomp.Load(s.Seccomp)
}

// nodesFilter reports whether the filter is a file that a cluster's nodes have: localhost/NAME, in
// the cluster's own words.
func (s Settings) nodesFilter() bool {
	return IsCluster(s.Runtime) && strings.HasPrefix(s.Seccomp, "localhost/")
}

// Tokens returns the tokens of clients over HTTP; nil if there is no place for them.
func (s Settings) Tokens(log *slog.Logger) *identity.Tokens {
	path := s.HTTPTokens
	if path == "" {
		dir := StateDir()
		if dir == "" {
			return nil
		}
		path = filepath.Join(dir, "http-tokens")
	}
	return identity.OpenTokens(filepath.Clean(path), log, bridge.Local)
}

// NamesClients reports whether there are principals beside who uses this machine.
func (s Settings) NamesClients() bool {
	if s.HTTPIssuer != "" {
		return true
	}
	tokens := s.Tokens(nil)
	return tokens != nil && tokens.Begun()
}

// Issuer returns the authorization server whose JWTs are taken; nil for none.
func (s Settings) Issuer(log *slog.Logger) (*identity.Issuer, error) {
	switch {
	case s.HTTPIssuer == "" && s.HTTPAudience == "":
		return nil, nil
	case s.HTTPIssuer == "" || s.HTTPAudience == "":
		return nil, errors.New("MCP_BRIDGE_HTTP_ISSUER and MCP_BRIDGE_HTTP_AUDIENCE are set together, or not " +
			"at all: who makes tokens, and the URL of this bridge that they are made for")
	}
	i, err := identity.NewIssuer(identity.IssuerConfig{URL: s.HTTPIssuer, Audience: s.HTTPAudience, Log: log})
	if err != nil {
		return nil, fmt.Errorf("MCP_BRIDGE_HTTP_ISSUER or MCP_BRIDGE_HTTP_AUDIENCE: %w", err)
	}
	return i, nil
}
