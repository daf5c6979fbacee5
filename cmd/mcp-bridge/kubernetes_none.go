//go:build !kubernetes

package main

import "github.com/mcp-bridge/mcp-bridge/runtime/detect"

// newCluster is nil: this program has no client for Kubernetes, nor what that brings along.
var (
	newCluster           func(engines) detect.Candidate
	thirdPartyKubernetes string
)
