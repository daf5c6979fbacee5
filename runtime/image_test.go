package runtime

import (
	"errors"
	"strings"
	"testing"
)

// TestPullError has what engines really say.
func TestPullError(t *testing.T) {
	for _, tt := range []struct{ says, want, next string }{
		{`initializing source docker://python:3.12-slim: pinging container registry registry-1.docker.io: Get ` +
			`"https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host`, "can't be " +
			"reached", "used where neither MCP_BRIDGE_IMAGE nor MCP_BRIDGE_PULL=always is set: " +
			"mcp-bridge image build"},
		{"Error response from daemon: Get \"https://registry-1.docker.io/v2/\": net/http: TLS handshake timeout",
			"can't be reached", "network"},
		{"writing blob: storing blob to file \"/var/tmp/storage1\": write /var/tmp/storage1: no space left on" +
			" device", "no space left", "prune"},
		{"no matching manifest for linux/arm64/v8 in the manifest list entries", "architecture",
			"MCP_BRIDGE_IMAGE"},
		{"choosing an image from manifest list docker://x: no image found in image index for architecture arm64",
			"architecture", "MCP_BRIDGE_IMAGE"},
		{"reading manifest 9.99 in docker.io/library/python: manifest unknown", "no such image", "check the name"},
		{"pull access denied for nobody/nothing, repository does not exist or may require 'docker login': denied:" +
			" requested access to the resource is denied", "login", "log in"},
		{"something new\n  and odd", "something new and odd", "used where neither MCP_BRIDGE_IMAGE nor"},
	} {
		err := PullError("python:x", errors.New(tt.says))
		if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Hint(), tt.next) {
			t.Errorf("%s:\ngot %v; %s\nwant %q; %q", tt.says, err, err.Hint(), tt.want, tt.next)
		}
		if err.Unreached != strings.Contains(err.Hint(), "mcp-bridge image build") {
			t.Errorf("%s: Unreached is %v, and the hint %s", tt.says, err.Unreached, err.Hint())
		}
	}
}

func TestDigestOf(t *testing.T) {
	names := []string{"localhost/made@sha256:0", "docker.io/library/python@sha256:a",
		"docker.io/library/python@sha256:b", "odd"}
	for _, tt := range []struct{ ref, want string }{
		{"python:3.12", "sha256:a"},
		{"python@sha256:b", "sha256:b"},
		{"python@sha256:c", "sha256:a"},
		{"localhost/made@sha256:0", "sha256:0"},
	} {
		if got := DigestOf(tt.ref, names); got != tt.want {
			t.Errorf("DigestOf(%s) = %s, want %s", tt.ref, got, tt.want)
		}
	}
	if got := DigestOf("made", names[:1]); got != "" {
		t.Errorf("an image that was made here has the digest %s", got)
	}
}
