//go:build unix

package upstream

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestListsAreTold: each list of a server's, with what it calls itself.
func TestListsAreTold(t *testing.T) {
	var told []string
	p := open(t, func(c *Config) {
		c.Listed = func(server discovery.Server, version, purpose string, tools []Tool) {
			told = append(told, strings.Join([]string{server.Name, version, purpose, tools[0].Name}, ", "))
			tools[0].Name = "mine"
		}
	}, fake("normal"))
	if p.Running(t.Context(), "fake") || p.Running(t.Context(), "other") {
		t.Error("a server runs that was not started")
	}
	for range 3 {
		if got := names(t, p); got != "list1" {
			t.Fatalf("got %s", got)
		}
	}
	if !p.Running(t.Context(), "fake") {
		t.Error("the server doesn't run")
	}
	call(t, p, "change", "")
	if got := names(t, p); got != "list2" {
		t.Errorf("after a change: got %s", got)
	}
	if want := []string{"fake, fake 1, fake, list1", "fake, fake 1, fake, list2"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if p.Running(t.Context(), "fake") {
		t.Error("a server runs after Close")
	}
}

// TestPurpose: the first of what a server says of itself is kept, cut, and without secrets.
func TestPurpose(t *testing.T) {
	m := newMask([]string{"s3cr3t-value"})
	about := mcp.Implementation{Name: "gh", Title: "GitHub", Description: "Issues and pulls"}
	for _, tc := range []struct {
		name string
		r    mcp.InitializeResult
		want string
	}{
		{"instructions", mcp.InitializeResult{Instructions: " Use it.\nMore. ", ServerInfo: about},
			"Use it.\nMore."},
		{"description", mcp.InitializeResult{ServerInfo: about}, "Issues and pulls"},
		{"title", mcp.InitializeResult{ServerInfo: mcp.Implementation{Name: "gh", Title: "GitHub"}}, "GitHub"},
		{"name", mcp.InitializeResult{ServerInfo: mcp.Implementation{Name: "gh"}}, "gh"},
		{"nothing", mcp.InitializeResult{}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := purpose(tc.r.ServerInfo, tc.r.Instructions, m); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	long := purpose(mcp.Implementation{}, strings.Repeat("ä", maxTold/2-3)+"s3cr3t-value", m)
	if len(long) > maxTold || strings.Contains(long, "s3") || strings.Contains(long, "\ufffd") {
		t.Errorf("got %q", long)
	}
}

func TestOffers(t *testing.T) {
	p := open(t, nil, fake("normal"))
	got, err := p.List(t.Context(), "fake", Resources)
	if err != nil {
		t.Fatal(err)
	}
	want := []json.RawMessage{json.RawMessage(`{"uri":"a:1"}`),
		json.RawMessage(`{"uri":"a:2","size":9007199254740993}`), json.RawMessage(`{"uri":"a:3"}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources of two pages (-want +got):\n%s", diff)
	}
	if got, err := p.List(t.Context(), "fake", Prompts); err != nil || got != nil {
		t.Errorf("a method that the server doesn't know: got %s, %v, want nothing", got, err)
	}
	for _, tt := range []struct {
		name string
		ask  func() (json.RawMessage, error)
		want string
	}{
		{"resource", func() (json.RawMessage, error) { return p.ReadResource(t.Context(), "fake", "a:1") },
			`{"contents":[{"uri":"a:1","n":9007199254740993}]}`},
		{"prompt", func() (json.RawMessage, error) {
			return p.GetPrompt(t.Context(), "fake", "greet", json.RawMessage(`{"who":"Ada"}`))
		}, `{"name":"greet","arguments":{"who":"Ada"}}`},
		{"prompt without arguments", func() (json.RawMessage, error) {
			return p.GetPrompt(t.Context(), "fake", "greet", nil)
		}, `{"name":"greet","arguments":null}`},
	} {
		if got, err := tt.ask(); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := p.List(t.Context(), "unknown", Resources); !errors.Is(err, ErrUnknownServer) {
		t.Errorf("got %v", err)
	}
	if _, err := p.ReadResource(t.Context(), "unknown", "a:1"); !errors.Is(err, ErrUnknownServer) {
		t.Errorf("got %v", err)
	}
}

func TestOffersThatFail(t *testing.T) {
	for mode, want := range map[string]string{"bad list": "can't be read",
		"silent list": "it did not list its resources within 300ms"} {
		p := open(t, func(c *Config) { c.ListTimeout = 300 * time.Millisecond }, fake(mode))
		_, err := p.List(t.Context(), "fake", Resources)
		serverError(t, err, "listing its resources", want)
	}
}

func TestComplete(t *testing.T) {
	p := open(t, nil, fake("normal"))
	got, err := p.Complete(t.Context(), "fake", map[string]any{"ref": map[string]string{"type": "ref/prompt",
		"name": "p"}})
	if want := `{"completion":{"values":["p"],"total":9007199254740993}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
