package entrypoint

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSource(t *testing.T) {
	head, payload, _ := bytes.Cut(Source(), []byte("\n"))
	if got, err := strconv.Atoi(string(head)); err != nil || got != len(payload) {
		t.Errorf("length line %q, payload of %d bytes", head, len(payload))
	}
	var modules map[string]string
	if err := json.Unmarshal(payload, &modules); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"__init__", "artifacts", "boot", "calls", "checks", "child", "confine", "display", "ending", "errors",
		"execute", "exhausted", "figures", "handover", "heir", "helpers", "hints", "host", "leftover", "limits", "link", "loop",
		"mcp_runtime", "mime", "names", "output", "progress", "pytypes", "ready", "requests", "resources", "results", "run", "schemas", "servers", "shapes",
		"signatures", "streams", "stubs", "supervisor", "surroundings", "tools", "tracebacks", "values", "watch", "wire",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(modules))); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if first, second := Source(), Source(); &first[0] != &second[0] {
		t.Error("Source is computed anew for each run")
	}
}

// TestSourceWith: the code stands beside the modules; what can't be code is refused.
func TestSourceWith(t *testing.T) {
	with, err := SourceWith([]byte("AAAA\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, payload, _ := bytes.Cut(with, []byte("\n"))
	var modules map[string]string
	if err := json.Unmarshal(payload, &modules); err != nil || modules[""] != "AAAA" || modules["boot"] == "" {
		t.Errorf("got %q, %v and %d modules", modules[""], err, len(modules))
	}
	for _, line := range []string{"", "\n", "no base64!", "AAAA\nAAAA x"} {
		if _, err := SourceWith([]byte(line)); err == nil {
			t.Errorf("%q passed", line)
		}
	}
}
