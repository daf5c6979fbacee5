//go:build unix

package upstream

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
