package docker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/docker/docker/api/types/registry"
)

// loginEntry is a login as `docker login` writes it where no store keeps it.
type loginEntry struct {
	Auth          string `json:"auth"` // base64 of name:password
	IdentityToken string `json:"identitytoken"`
}

// loginPatience bounds a store of logins, which may ask somebody something.
const loginPatience = 10 * time.Second

// login returns the user's login for a registry as the API wants it; empty for none.
func (s settings) login(ctx context.Context, domain string) (string, error) {
	server := domain
	if domain == "docker.io" {
		server = "https://index.docker.io/v1/"
	}
	c, err := s.config()
	if err != nil {
		return "", err
	}
	store, ok := c.CredHelpers[server]
	if !ok {
		store = c.CredsStore
	}
	var a registry.AuthConfig
	if store != "" {
		a, err = askStore(ctx, store, server)
	} else {
		a, err = c.Auths[server].read()
	}
	if err != nil || a == (registry.AuthConfig{}) {
		return "", err
	}
	a.ServerAddress = server
	return registry.EncodeAuthConfig(a)
}

func (l loginEntry) read() (registry.AuthConfig, error) {
	a := registry.AuthConfig{IdentityToken: l.IdentityToken}
	if l.Auth == "" {
		return a, nil
	}
	b, err := base64.StdEncoding.DecodeString(l.Auth)
	if err != nil {
		return a, errors.New("the login in docker's config.json is no base64") // not err, which shows some of it
	}
	name, password, ok := strings.Cut(strings.TrimRight(string(b), "\x00"), ":")
	if !ok {
		return a, errors.New("the login in docker's config.json is not of the form name:password")
	}
	a.Username, a.Password = name, password
	return a, nil
}

// askStore asks a credential helper, a program named docker-credential-STORE: it reads the server's
// name and prints the login.
func askStore(ctx context.Context, store, server string) (registry.AuthConfig, error) {
	var a registry.AuthConfig
	if strings.ContainsAny(store, `/\`) {
		return a, fmt.Errorf("docker's config.json names %q as a store of logins", store)
	}
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker-credential-"+store, "get")
	cmd.Stdin = strings.NewReader(server)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if bytes.Contains(out, []byte("credentials not found")) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("docker-credential-%s: %w", store, err)
	}
	var said struct{ Username, Secret string }
	if err := json.Unmarshal(out, &said); err != nil {
		return a, fmt.Errorf("docker-credential-%s: its answer is no JSON", store)
	}
	if said.Username == "<token>" {
		a.IdentityToken = said.Secret
		return a, nil
	}
	a.Username, a.Password = said.Username, said.Secret
	return a, nil
}
