package docker

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/docker/docker/api/types/registry"
	"go.podman.io/image/v5/pkg/docker/config"
	"go.podman.io/image/v5/types"

	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

// loginPatience bounds a store of logins, which may ask the user something.
const loginPatience = 10 * time.Second

// login returns the user's login for a registry as the API wants it, from docker's config.json or
// the store that it names; empty for none.
func (s settings) login(ctx context.Context, domain string) (string, error) {
	if s.dir == "" {
		return "", nil
	}
	path := filepath.Join(s.dir, "config.json")
	if err := trust.System().File(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	type answer struct {
		login types.DockerAuthConfig
		err   error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the store's program
		file := &types.SystemContext{DockerCompatAuthFilePath: path}
		l, err := config.GetCredentials(file, domain)
		answers <- answer{l, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-time.After(loginPatience):
		return "", errors.New("its store does not answer")
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if a.err != nil || a.login == (types.DockerAuthConfig{}) {
		return "", a.err
	}
	server := domain
	if domain == "docker.io" {
		server = "https://index.docker.io/v1/"
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{
		Username: a.login.Username, Password: a.login.Password, IdentityToken: a.login.IdentityToken,
		ServerAddress: server,
	})
}
