//go:build kubernetes

package main

import (
	_ "embed"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
	"github.com/mcp-bridge/mcp-bridge/runtime/kubernetes"
)

// newCluster returns the cluster that MCP_BRIDGE_RUNTIME names.
var newCluster = func(e engines) detect.Candidate {
	where, namespace := cluster(e.cfg.Runtime)
	cfg := kubernetes.Config{Context: where, Namespace: namespace, Hardening: e.hardening, Log: e.log}
	return detect.Candidate{Name: "kubernetes", Endpoint: strings.Trim(where+"/"+namespace, "/"),
		Open: func() runtime.Driver { return kubernetes.New(cfg) }}
}

// thirdPartyKubernetes is the licences and notices of what the build tag adds to thirdParty.
//
//go:embed THIRD_PARTY_KUBERNETES
var thirdPartyKubernetes string
