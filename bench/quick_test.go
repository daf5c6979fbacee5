package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
)

// TestMain lets the test binary be what the benchmarks start themselves as.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == toolServer {
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// needsPodman skips a test where no engine is promised.
func needsPodman(t *testing.T) {
	t.Helper()
	if os.Getenv("MCP_BRIDGE_TEST_RUNTIME") != "podman" {
		t.Skip("MCP_BRIDGE_TEST_RUNTIME is not podman: no engine to measure")
	}
}

// TestBaselinesGuest: the guest of the bare exchange is sent what the bridge sends its own, takes it and runs code.
func TestBaselinesGuest(t *testing.T) {
	needsPodman(t)
	bridge, err := filepath.Abs("../bin/mcp-bridge")
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{bridge: bridge, dir: t.TempDir(), report: &Report{}}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := s.readyEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	code := func(source []byte) int64 {
		n, err := transcript.SkipSource(bufio.NewReader(bytes.NewReader(source)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := code(entrypoint.Source()); n != 0 {
		t.Fatalf("the plain source has %d bytes of code already", n)
	}
	if code(s.source) == 0 {
		t.Error("the baseline's guest gets no code")
	}
	g, err := s.engine.launch(t.Context(), s.container, s.source)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := g.execute(s.options, "print(1)"); err != nil || m.output <= 0 || m.done < m.output {
		t.Errorf("%+v, %v", m, err)
	}
	if err := g.end(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestQuick runs every benchmark over the real program and real containers, a few rounds each. It looks at what was measured and
// never at how long it took.
func TestQuick(t *testing.T) {
	needsPodman(t)
	report := filepath.Join(t.TempDir(), "report.json")
	var out, errs bytes.Buffer
	code := run([]string{"-quick", "-bridge", "../bin/mcp-bridge", "-json", report}, strings.NewReader(""), &out, &errs)
	if code != exitOK {
		t.Fatalf("code %d: %s%s", code, errs.String(), out.String())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Parts, partNames()) {
		t.Errorf("the parts %q were run, of %q", r.Parts, partNames())
	}
	for _, part := range partNames() {
		if part == "docker" {
			continue // which needn't be there
		}
		if !slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Part == part && !f.Baseline }) {
			t.Errorf("part %s has no figure", part)
		}
	}
	for _, f := range r.Figures {
		if f.N == 0 || f.Failed > 0 {
			t.Errorf("(%s) %s: %d succeeded, %d failed", f.Part, f.Name, f.N, f.Failed)
		}
	}
	for _, want := range []string{"on two quiet cores this takes about", "(a) from the start of the process to the answer to initialize: about", "to go"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("who waits isn't told %q: %s", want, errs.String())
		}
	}
	t.Log(errs.String(), out.String())
}
