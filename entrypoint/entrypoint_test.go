package entrypoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSource(t *testing.T) {
	head, rest, _ := bytes.Cut(Source(), []byte("\n"))
	var boot, all int
	if _, err := fmt.Sscanf(string(head), "%d %d", &boot, &all); err != nil || boot+all != len(rest) {
		t.Fatalf("first line %q, and %d bytes behind it: %v", head, len(rest), err)
	}
	var modules map[string]string
	if err := json.Unmarshal(rest[boot:], &modules); err != nil {
		t.Fatal(err)
	}
	if first := string(rest[:boot]); first != modules["boot"] || first == "" {
		t.Errorf("the first module is %.20q…", first)
	}
	want := []string{
		"__init__", "arguments", "artifacts", "attribute_hints", "awaitable", "boot", "calls", "checks",
		"child", "confine", "container_hints", "content", "display", "displayhook", "errors", "execute",
		"expressions", "fastexit", "files", "helpers", "hints", "host", "light_typing", "limits", "link",
		"lookup_hints", "loop", "mcp_runtime", "mime", "mounts", "name_hints", "names", "not_python",
		"outcome", "output", "progress", "pyplot_backend", "rendering", "requests", "resources", "results",
		"run", "schemas", "servers", "signatures", "streams", "stubs", "supervisor", "tools", "tracebacks",
		"values", "watch", "wire",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(modules))); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if first, second := Source(), Source(); &first[0] != &second[0] {
		t.Error("Source is computed for each run")
	}
}
