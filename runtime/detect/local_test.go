package detect_test

import (
	"errors"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/detect"
)

// TestPullOfLocalImage: no engine is asked to pull an image of a local name.
func TestPullOfLocalImage(t *testing.T) {
	d := detect.New(detect.Config{Candidates: []detect.Candidate{{Name: "podman", Open: func() runtime.Driver {
		t.Error("an engine was opened")
		return nil
	}}}})
	_, err := d.PullImage(t.Context(), "localhost/mcp-bridge/python:latest", nil)
	var missing *runtime.ImageError
	if !errors.As(err, &missing) || missing.Hint() == "" {
		t.Errorf("got %v", err)
	}
	if runtime.IsLocal("localhost:5000/python") || runtime.IsLocal("docker.io/library/python") {
		t.Error("a registry is taken for this machine")
	}
}
