//go:build kubernetes

package main

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
)

// TestCluster: a setting is a context and a namespace, and a context's name may have a slash.
func TestCluster(t *testing.T) {
	for setting, want := range map[string][2]string{
		"kubernetes": {}, "kubernetes:": {}, "kubernetes:kind-kind": {"kind-kind"},
		"kubernetes:prod/code": {"prod", "code"}, "kubernetes:/code": {"", "code"},
		"kubernetes:arn:aws:eks:eu-1:1:cluster/a/code": {"arn:aws:eks:eu-1:1:cluster/a", "code"},
		"kubernetes:arn:aws:eks:eu-1:1:cluster/a/":     {"arn:aws:eks:eu-1:1:cluster/a", ""},
	} {
		if !settings.IsCluster(setting) {
			t.Errorf("%s is no cluster", setting)
		}
		if where, namespace := cluster(setting); where != want[0] || namespace != want[1] {
			t.Errorf("%s: got %q, %q; want %q", setting, where, namespace, want)
		}
	}
	for _, setting := range []string{"", "podman", "kubernetess", "tcp://kubernetes:1"} {
		if settings.IsCluster(setting) {
			t.Errorf("%q is a cluster", setting)
		}
	}
}
