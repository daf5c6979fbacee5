package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
)

// TestConfirmParties: only a yes is one, who is meant is named, and what is typed beyond the answer is left for who reads next.
func TestConfirmParties(t *testing.T) {
	p := oauth.Parties{Page: "https://honest.example", Others: []string{"https://evil.example"}, Issuer: "https://issuer.example"}
	for _, tt := range []struct {
		typed, left string
		yes         bool
		err         error
	}{
		{"y\nhttp://127.0.0.1/callback", "http://127.0.0.1/callback", true, nil},
		{" YES \r\n", "", true, nil},
		{"yes", "", true, nil},
		{"\nyes\n", "yes\n", false, nil},
		{"n\n", "", false, nil},
		{"yes, sure\n", "", false, nil},
		{strings.Repeat(" ", 64) + "y\n", "y\n", false, nil},
		{"", "", false, errUnanswered},
	} {
		in, said := strings.NewReader(tt.typed), &bytes.Buffer{}
		yes, err := (&app{stdin: in, stderr: said}).confirmParties(t.Context(), p)
		if yes != tt.yes || !errors.Is(err, tt.err) {
			t.Errorf("%q: got %v, %v", tt.typed, yes, err)
		}
		if left, _ := io.ReadAll(in); string(left) != tt.left {
			t.Errorf("%q: left %q, want %q", tt.typed, left, tt.left)
		}
		for _, part := range []string{p.Page, p.Others[0], p.Issuer} {
			if !strings.Contains(said.String(), part) {
				t.Errorf("%q is not in %q", part, said)
			}
		}
	}
	silent, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("nobody agreed")
	cancel(late)
	if yes, err := (&app{stdin: silent, stderr: io.Discard}).confirmParties(ctx, p); yes || !errors.Is(err, late) {
		t.Errorf("got %v, %v", yes, err)
	}
}
