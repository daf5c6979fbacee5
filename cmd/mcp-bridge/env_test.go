package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// builtData is the environment data as an engine lists it.
func builtData(base string, built time.Time) runtime.ListedImage {
	const label = "io.mcp-bridge.environment"
	return runtime.ListedImage{ID: "sha256:77", Names: []string{"localhost/mcp-bridge/env-data:latest"},
		Labels: map[string]string{label: "data", label + ".base": base, label + ".lock": "sha256:old",
			label + ".layer":    "sha256:0123456789abcdef",
			label + ".python":   `{"Version":"3.13.1","Machine":"x86_64","Glibc":"2.36"}`,
			label + ".packages": `[{"Name":"numpy","Version":"2.5.5"},{"Name":"pandas","Version":"3.1.1"}]`,
			label + ".bytecode": `{"Sources":4000,"Without":3}`,
			label + ".size":     "275409920", label + ".built": built.Format(time.RFC3339)}}
}

// dataLock returns the digest of the lock for that interpreter.
func dataLock(t *testing.T) string {
	t.Helper()
	l, err := wheels.DataLock(wheels.Interpreter{Version: "3.13.1", Machine: "x86_64", Glibc: "2.36"})
	must(t, err)
	return l.Digest
}

func TestEnvList(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MCP_BRIDGE_ENVS", dir)
	must(t, os.WriteFile(filepath.Join(dir, "bad.toml"), []byte("memory = 1\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "polars.toml"), nil, 0o600))
	e := healthy()
	p := assembled(t, e)
	e.listed = []runtime.ListedImage{builtData(e.image.ID, time.Now().Add(-72*time.Hour))}
	var b bytes.Buffer
	a := envCommands{p, &terminal.Streams{Out: terminal.New(&b), Err: terminal.New(&b)}}
	must(t, a.list(t.Context(), false))
	for _, want := range []string{"data", "outdated", "275.4MB", "3 days old", "0123456789ab", "polars",
		"not built",
		"data: its lock has changed; next: mcp-bridge env build data",
		"data: 3 of 4000 sources without bytecode", "bad.toml: there is no setting memory"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the list lacks %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	must(t, a.list(t.Context(), true))
	var rows []environmentJSON
	must(t, json.Unmarshal(b.Bytes(), &rows))
	if len(rows) != 3 || rows[0].State != "broken" || rows[1].Packages["numpy"] != "2.5.5" ||
		rows[2].State != "not built" {
		t.Errorf("got %s", b.String())
	}
	b.Reset()
	must(t, showImages(t.Context(), a.io, p))
	if !strings.Contains(b.String(), "localhost/mcp-bridge/env-data:latest, 275.4MB, 2 packages, 3 days old") ||
		!strings.Contains(b.String(), "3 of 4000 sources without bytecode") {
		t.Errorf("image shows %s", b.String())
	}
}

// TestEnvRemoveAndExport: both say what they have done, and no file is replaced.
func TestEnvRemoveAndExport(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MCP_BRIDGE_ENVS", dir)
	e := healthy()
	p := assembled(t, e)
	e.listed = []runtime.ListedImage{builtData(e.image.ID, time.Now())}
	var b bytes.Buffer
	a := envCommands{p, &terminal.Streams{Out: terminal.New(&b), Err: terminal.New(&b)}}
	var err error
	p.guard, err = newGuard(p.log)
	must(t, err)
	file := filepath.Join(dir, "data.tar")
	must(t, a.export(t.Context(), "data", file))
	saved, err := os.ReadFile(file)
	must(t, err)
	var usage exit.UsageError
	if err := a.export(t.Context(), "data", file); !errors.As(err, &usage) {
		t.Errorf("a second export to the same file: %v", err)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, saved) {
		t.Errorf("the file was replaced: %v", err)
	}
	must(t, a.remove(t.Context(), "data", true))
	labels := filepath.Join(dir, "labels.data.json")
	want := "wrote " + file + "\nwrote " + labels +
		", which a cluster needs beside data.toml: docs/kubernetes.md\n" +
		"removed the image of data\n" +
		"data has no settings, list of packages or lock any more\n"
	if b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
	if _, err := os.Stat(labels); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its labels are left: %v", err)
	}
}

func TestIsLayout(t *testing.T) {
	for name, want := range map[string]bool{"oci-layout": true, "./oci-layout": true, "manifest.json": false} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		must(t, w.WriteHeader(&tar.Header{Name: "blobs/", Typeflag: tar.TypeDir}))
		must(t, w.WriteHeader(&tar.Header{Name: name}))
		must(t, w.Close())
		if got, err := isLayout(&b); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
