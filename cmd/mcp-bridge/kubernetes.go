//go:build kubernetes

package main

import (
	_ "embed"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/kubernetes"
)

func init() {
	newCluster, thirdPartyKubernetes, settings.Kubernetes = clusterOf, noticesOfKubernetes, true
}

// clusterOf returns the cluster that MCP_BRIDGE_RUNTIME names.
func clusterOf(e engines) detect.Candidate {
	where, namespace := cluster(e.cfg.Runtime)
	cfg := kubernetes.Config{Context: where, Namespace: namespace, Hardening: e.hardening, Log: e.log}
	return detect.Candidate{Name: "kubernetes", Endpoint: strings.Trim(where+"/"+namespace, "/"),
		Open: func() runtime.Driver { return kubernetes.New(cfg) }}
}

// cluster returns the context and the namespace of such a setting, empty where it names none. What
// follows the last slash is the namespace: behind a context whose name has a slash there is another
// one.
func cluster(s string) (where, namespace string) {
	where = strings.TrimPrefix(strings.TrimPrefix(s, "kubernetes"), ":")
	if i := strings.LastIndex(where, "/"); i >= 0 {
		return where[:i], where[i+1:]
	}
	return where, ""
}

//go:embed THIRD_PARTY_KUBERNETES
var noticesOfKubernetes string
