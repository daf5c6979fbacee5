package entrypoint

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parts are those of a source: the module that is run first, all modules, and code.
func parts(t *testing.T, source []byte) (boot, modules, code []byte) {
	t.Helper()
	head, rest, _ := bytes.Cut(source, []byte("\n"))
	var sizes [3]int
	if _, err := fmt.Sscanf(string(head), "%d %d %d", &sizes[0], &sizes[1], &sizes[2]); err != nil ||
		sizes[0]+sizes[1]+sizes[2] != len(rest) {
		t.Fatalf("first line %q, and %d bytes behind it: %v", head, len(rest), err)
	}
	r, err := zlib.NewReader(bytes.NewReader(rest[sizes[0] : sizes[0]+sizes[1]]))
	if err != nil {
		t.Fatal(err)
	}
	if modules, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return rest[:sizes[0]], modules, rest[sizes[0]+sizes[1]:]
}

func TestSource(t *testing.T) {
	boot, texts, code := parts(t, Source())
	var modules map[string]string
	if err := json.Unmarshal(texts, &modules); err != nil {
		t.Fatal(err)
	}
	if string(boot) != modules["boot"] || len(boot) == 0 || len(code) != 0 {
		t.Errorf("the first module is %.20q…, and there are %d bytes of code", boot, len(code))
	}
	files, err := os.ReadDir("guest")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".py"); ok {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(modules))); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if first, second := Source(), Source(); &first[0] != &second[0] {
		t.Error("Source is computed for each run")
	}
}

// TestSourceWith: the code stands beside the modules; what can't be code is refused.
func TestSourceWith(t *testing.T) {
	with, err := SourceWith([]byte("AQID\n"))
	if err != nil {
		t.Fatal(err)
	}
	boot, texts, code := parts(t, with)
	_, want, _ := parts(t, Source())
	if !bytes.Equal(texts, want) || len(boot) == 0 || string(code) != "\x01\x02\x03" {
		t.Errorf("got %d bytes of modules where the source has %d, the first of %d, code % x", len(texts),
			len(want), len(boot), code)
	}
	for _, line := range []string{"", "\n", "no base64!", "AAAA\nAAAA x"} {
		if _, err := SourceWith([]byte(line)); err == nil {
			t.Errorf("%q passed", line)
		}
	}
}
