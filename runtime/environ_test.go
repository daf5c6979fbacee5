//go:build unix

package runtime

import (
	"slices"
	"testing"
)

func TestEngineEnviron(t *testing.T) {
	for name, want := range map[string]bool{
		"PATH": true, "XDG_RUNTIME_DIR": true, "CONTAINERS_CONF": true, "CONTAINER_HOST": true,
		"SSH_AUTH_SOCK": true, "HTTPS_PROXY": true,
		"https_proxy": true, "DBUS_SESSION_BUS_ADDRESS": true, "DOCKER_CONFIG": true, "REGISTRY_AUTH_FILE": true,
		"ANTHROPIC_API_KEY": false, "GITHUB_TOKEN": false, "MCP_BRIDGE_CONFIG": false,
		"DOCKER_AUTH_CONFIG": false, "REGISTRY_PASSWORD": false,
		"OTEL_EXPORTER_OTLP_HEADERS": false, "PATHS": false,
	} {
		t.Setenv(name, "given")
		if got := slices.Contains(EngineEnviron(), name+"=given"); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
