package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// audited is a bridge that records in a file.
func audited(t testing.TB, change func(*Config)) (*Bridge, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log", "audit.jsonl")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(audit.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return build(t, func(c *Config) {
		c.Audit = l
		if change != nil {
			change(c)
		}
	}), path
}

func readRecords(t testing.TB, path string) (all []audit.Record) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, r)
	}
	return all
}

// TestRecords: each call has a line, whatever becomes of it and by which way it is made, and so has
// the run.
func TestRecords(t *testing.T) {
	b, path := audited(t, func(c *Config) {
		c.Policy = policyOf(t, "[[rule]]\ntools = [\"github.list-issues\"]\nverdict = \"deny\"\n[[rule]]\ntools "+
			"= [\"github.list_issues\"]\nverdict = \"ask\"")
		inner := c.Upstreams.(fakeUpstreams)
		c.Upstreams = fakeUpstreams{tools: inner.tools, call: func(ctx context.Context, server, tool string,
			args json.RawMessage) (json.RawMessage, error) {
			if string(args) == `{"panic":1}` {
				panic("boom")
			}
			return json.RawMessage(`{}`), nil
		}}
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			for _, call := range []sandbox.Call{
				{Provider: "github", Tool: "me", Input: json.RawMessage(`{"secret":"hunter2"}`)},
				{Provider: "github", Tool: "list_issues__2"}, // the alias of list-issues
				{Provider: "github", Tool: "list_issues"},
				{Provider: "github", Tool: "me", Input: json.RawMessage(`{"panic":1}`)},
				{Provider: "My Files!", Tool: "read"},
				{Provider: "github", Tool: "me", Input: json.RawMessage(`{}`)},
				{Provider: "runtime", Tool: "list_prompts", Input: json.RawMessage(`{"server":"nothing"}`)},
				{Provider: "runtime", Tool: "load_server", Input: json.RawMessage(`{"server":"github"}`)},
			} {
				_, _ = h.Call(ctx, call)
			}
			return printed("four"), nil
		}}
	})
	connect(t, b).call(`{"code":"x","servers":["github"]}`)
	var got []string
	records := readRecords(t, path)
	for _, r := range records {
		if r.Run != records[0].Run || len(r.Run) != 12 || len(r.ArgumentSHA256) != 64 || r.TookMs < 0 {
			t.Errorf("odd: %+v", r)
		}
		got = append(got, fmt.Sprintf("%s %s.%s %s %s %d %d %d", r.Kind, r.Server, r.Tool, r.Verdict, r.Outcome,
			r.ArgumentBytes, r.ResultBytes, r.Calls))
	}
	want := []string{
		"call github.me allow ok 20 2 0",
		"call github.list-issues deny denied 0 0 0",
		"call github.list_issues ask denied 0 0 0",
		"call github.me allow internal_error 11 0 0",
		"call My Files!.read  denied 0 0 0",
		"call github.me allow ok 2 2 0",
		"call nothing.prompts/list  validation_error 4 0 0",
		"run .  ok 33 4 7",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "hunter2") {
		t.Errorf("arguments are in %s", text)
	}
}

// TestNothingUnrecorded: while the log can't be written no call is made and no code is run;
// afterwards nothing of what was done before
// is missing.
func TestNothingUnrecorded(t *testing.T) {
	var calls []string
	var path, away string
	b, name := audited(t, func(c *Config) {
		inner := c.Upstreams.(fakeUpstreams)
		c.Upstreams = fakeUpstreams{tools: inner.tools, call: func(_ context.Context, _, tool string,
			_ json.RawMessage) (json.RawMessage, error) {
			calls = append(calls, tool)
			if len(calls) == 1 {
				if err := os.Rename(filepath.Dir(path), away); err != nil {
					t.Error(err)
				}
			}
			return json.RawMessage(`{}`), nil
		}}
		c.Runner = fakeRunner{run: func(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result,
			error) {
			var said strings.Builder
			for range 2 {
				res, err := h.Call(ctx, sandbox.Call{Provider: "github", Tool: "me"})
				fmt.Fprintf(&said, "%s %v\n", res, err)
			}
			return printed(said.String()), nil
		}}
	})
	path, away = name, filepath.Dir(name)+".away"
	p := connect(t, b)
	first := p.call(`{"code":"x"}`).Content[0].Text
	if !strings.Contains(first, "{} <nil>") || !strings.Contains(first,
		"the call was not made: the audit log "+path+" can't be written") || len(calls) != 1 {
		t.Errorf("calls %v: %s", calls, first)
	}
	if got := p.call(`{"code":"y"}`); !got.IsError || !strings.Contains(got.Content[0].Text,
		"can't be written") || len(calls) != 1 {
		t.Errorf("calls %v: %+v", calls, got)
	}
	if _, err := b.RunDirect(t.Context(), Direct{Code: "z"}); err == nil || len(calls) != 1 {
		t.Errorf("calls %v: %v", calls, err)
	}
	if err := os.Rename(away, filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.RunDirect(t.Context(), Direct{Code: "z"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range readRecords(t, path) {
		got = append(got, r.Kind+" "+r.Outcome)
	}
	// The first run with its call, the second that was refused, and the one of RunDirect.
	if g := strings.Join(got, ", "); !strings.HasPrefix(g, "call ok, run ok, run unavailable, ") ||
		!strings.HasSuffix(g, "run ok") {
		t.Errorf("got %s", g)
	}
}

// TestLongNamesInRecords: code can't have older records rotated away by calling what has a long
// name.
func TestLongNamesInRecords(t *testing.T) {
	b, path := audited(t, nil)
	h := hostFor(t, b, `["github"]`)
	for _, helper := range []string{"query_tool_docs", "list_resources"} {
		for _, field := range []string{"server", "tool"} {
			input := fmt.Sprintf(`{%q:%q}`, field, strings.Repeat("<", 1<<20))
			if got := called(t, h, "runtime", helper, input); !strings.Contains(got, "a name of 1048576 bytes") ||
				len(got) > 200 {
				t.Errorf("%s: %.200s", helper, got)
			}
		}
	}
	_ = called(t, h, strings.Repeat("<", maxName), strings.Repeat("é", maxName/2), `{}`)
	records := readRecords(t, path)
	if text, err := os.ReadFile(path); err != nil || len(text) > 2000 || len(records) != 1 {
		t.Fatalf("%d records in %d bytes, %v", len(records), len(text), err)
	}
	if want := strings.Repeat("é", maxRecordedName/2) + "… (4096 bytes)"; records[0].Tool != want ||
		!strings.HasSuffix(records[0].Server, "<… (4096 bytes)") {
		t.Errorf("recorded are %q and %q", records[0].Server, records[0].Tool)
	}
}
