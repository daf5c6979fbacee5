package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcp-bridge/mcp-bridge/"

// mayImport is who may import whom within the module: ARCHITECTURE.md draws it. Tests may import more.
var mayImport = map[string][]string{
	"cmd/mcp-bridge": {"bridge", "bridge/approvals", "bridge/audit", "bridge/files", "bridge/fixture", "bridge/policy", "bridge/schemas", "bridge/telemetry", "bridge/text", "bridge/upstream", "bridge/upstream/oauth", "discovery", "discovery/watch", "entrypoint", "entrypoint/stubs", "runtime", "runtime/detect", "runtime/docker",
		"runtime/guard", "runtime/image", "runtime/podman", "runtime/seccomp", "sandbox", "trust"},
	"bench":                 {"entrypoint"},
	"bridge":                {"bridge/audit", "bridge/files", "bridge/index", "bridge/policy", "bridge/schemas", "bridge/shapes", "bridge/text", "bridge/upstream", "discovery", "entrypoint", "entrypoint/stubs", "runtime", "sandbox"},
	"bridge/approvals":      {"discovery", "runtime", "trust"},
	"bridge/audit":          {"bridge/filelock", "bridge/text"},
	"bridge/filelock":       {},
	"bridge/cost":           {},
	"bridge/files":          {"bridge/filelock", "sandbox"},
	"bridge/fixture":        {},
	"bridge/index":          {"bridge/text"},
	"bridge/schemas":        {"bridge/shapes", "bridge/upstream", "discovery"},
	"bridge/shapes":         {},
	"bridge/policy":         {"bridge/filelock", "bridge/text", "trust"},
	"bridge/telemetry":      {},
	"bridge/text":           {},
	"bridge/upstream":       {"bridge/text", "discovery", "runtime/guard"},
	"sandbox":               {"entrypoint", "runtime"},
	"entrypoint":            {},
	"entrypoint/stubs":      {"bridge/text", "entrypoint"},
	"entrypoint/transcript": {},
	"discovery":             {"trust"},
	"discovery/watch":       {"discovery"},
	"runtime":               {},
	"runtime/detect":        {"runtime"},
	"runtime/docker":        {"runtime", "runtime/guard", "trust"},
	"runtime/guard":         {},
	"runtime/image":         {},
	"runtime/podman":        {"runtime", "runtime/guard", "trust"},
	"runtime/runtimetest":   {"runtime"},
	"runtime/seccomp":       {"runtime"},
	"sandbox/sandboxtest":   {"runtime", "sandbox"},
	"trust":                 {},

	"bridge/upstream/oauth":     {"bridge/filelock", "bridge/text", "discovery"},
	"bridge/upstream/oauthtest": {},
}

// onlyImporters are the packages that may import something heavy, directly.
var onlyImporters = map[string][]string{
	"github.com/spf13/cobra":                               {"cmd/mcp-bridge"},
	"github.com/kelseyhightower/envconfig":                 {"cmd/mcp-bridge"},
	"github.com/mark3labs/mcp-go/server":                   {"bridge", "bridge/fixture"},
	"github.com/mark3labs/mcp-go/client":                   {"bridge/upstream"},
	"github.com/containers/podman/v5/pkg/":                 {"runtime/podman"},
	"github.com/containers/podman/v5/libpod/":              {"runtime/podman"},
	"github.com/docker/docker/":                            {"runtime/docker"},
	"github.com/pkoukk/tiktoken-go":                        {},
	"github.com/pkoukk/tiktoken-go-loader":                 {},
	"github.com/tailscale/hujson":                          {"discovery"},
	"github.com/pelletier/go-toml/v2":                      {"bridge/policy", "discovery"},
	"go.yaml.in/yaml/v3":                                   {"discovery"},
	"go.opentelemetry.io/otel/sdk":                         {"bridge/telemetry"},
	"go.opentelemetry.io/otel/exporters":                   {"bridge/telemetry"},
	"github.com/distribution/reference":                    {"runtime/docker", "runtime/podman"},
	"github.com/rogpeppe/go-internal/testscript":           {},
	"github.com/mcp-bridge/mcp-bridge/archive":             {},
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest": {},
	"github.com/mcp-bridge/mcp-bridge/sandbox/sandboxtest": {},

	"github.com/zalando/go-keyring":                              {"bridge/upstream/oauth"},
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest": {},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func goList(t *testing.T) []goPackage {
	t.Helper()
	tags, err := os.ReadFile("../../scripts/build-tags")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "-tags", strings.TrimSpace(string(tags)), module+"...")
	out, err := cmd.Output()
	if err != nil && os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "" {
		t.Skipf("the user that runs containers has no modules; make unit has run this: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestImports holds the drawing of ARCHITECTURE.md.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range goList(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, ok := mayImport[name]
		if !ok {
			t.Errorf("package %s is not in the table", name)
		}
		seen[name] = true
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s", name, ours)
			}
			for heavy, by := range onlyImporters {
				if (i == heavy || strings.HasPrefix(i, strings.TrimSuffix(heavy, "/")+"/")) && !slices.Contains(by, name) {
					t.Errorf("%s imports %s, which only %v may", name, i, by)
				}
			}
		}
	}
	for name := range mayImport {
		if !seen[name] {
			t.Errorf("the table has %s, which is not there", name)
		}
	}
}
