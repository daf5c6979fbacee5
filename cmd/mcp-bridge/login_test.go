package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauth"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestLoginByPage: a login in the course of a call is kept as that of the command is, and ends
// where the user doesn't agree.
func TestLoginByPage(t *testing.T) {
	for name, value := range map[string]string{"XDG_STATE_HOME": t.TempDir(), "DBUS_SESSION_BUS_ADDRESS": "",
		"DISPLAY": "", "WAYLAND_DISPLAY": ""} {
		t.Setenv(name, value)
	}
	as := oauthtest.New(t, http.NotFoundHandler())
	srv := discovery.Server{Name: "fake", Transport: discovery.HTTP, URL: as.URL + oauthtest.Path}
	declined := errors.New("declined")
	if err := loginByPage(t.Context(), srv, "", func(context.Context, string,
		string) error {
		return declined
	}); !errors.Is(err, declined) {
		t.Errorf("got %v", err)
	}
	err := loginByPage(t.Context(), srv, "admin", func(_ context.Context, page, about string) error {
		if !strings.Contains(page, "scope=tools+admin") || !strings.HasPrefix(about, "You log in at "+as.URL) {
			t.Errorf("shown %s, %s", page, about)
		}
		resp, err := http.Get(page) // the user agrees to everything
		if err != nil {
			return err
		}
		http.DefaultClient.CloseIdleConnections()
		return resp.Body.Close()
	})
	must(t, err)
	source := logins()
	defer source.Close()
	if token, err := source.Token(t.Context(), srv, ""); err != nil || token == "" {
		t.Errorf("got %q, %v", token, err)
	}
}

// TestConfirmParties: the parties are named, only a yes is one, and a login without an answer
// fails.
func TestConfirmParties(t *testing.T) {
	p := oauth.Parties{Page: "https://honest.example", Others: []string{"https://evil.example"},
		Issuer: "https://issuer.example"}
	for typed, want := range map[string]struct {
		yes bool
		err error
	}{"y\n": {true, nil}, "n\n": {false, nil}, "": {false, errUnanswered}} {
		said := &bytes.Buffer{}
		c := loginCommands{io: &terminal.Streams{In: strings.NewReader(typed), Err: terminal.New(said)}}
		yes, err := c.confirm(t.Context(), p)
		if yes != want.yes || !errors.Is(err, want.err) {
			t.Errorf("%q: got %v, %v", typed, yes, err)
		}
		holds(t, said.String(), p.Page, p.Others[0], p.Issuer)
	}
	silent, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("too late")
	cancel(late)
	c := loginCommands{io: &terminal.Streams{In: silent, Err: terminal.New(io.Discard)}}
	if yes, err := c.confirm(ctx, p); yes ||
		!errors.Is(err, late) {
		t.Errorf("got %v, %v", yes, err)
	}
}
