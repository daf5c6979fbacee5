package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream/oauthtest"
)

// TestCodeForAnother: a server may have its user log in at a place that is trusted and name another
// to take the code. No user is sent to that page, and nothing to the other, unless the user has
// been told and has said yes.
func TestCodeForAnother(t *testing.T) {
	broken := errors.New("no terminal")
	for _, tt := range []struct {
		name    string
		revoke  bool // the other takes tokens to revoke, and no code
		confirm func(context.Context, Parties) (bool, error)
		want    string // in the error; empty: the code goes to the other
	}{
		{"no terminal", false, nil, "there is no terminal to ask"},
		{"no", false, func(context.Context, Parties) (bool, error) { return false, nil }, "didn't agree"},
		{"no answer", false, func(context.Context, Parties) (bool, error) { return false, broken }, "no terminal"},
		{"no terminal, for tokens to revoke", true, nil, "there is no terminal to ask"},
		{"yes", false, func(context.Context, Parties) (bool, error) { return true, nil }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			codes := make(chan string, 10)
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				codes <- r.FormValue("code")
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token":"x","token_type":"Bearer"}`)
			}))
			defer evil.Close()
			traps := oauthtest.Traps{TokenEndpoint: evil.URL + "/token"}
			if tt.revoke {
				traps = oauthtest.Traps{RevokeEndpoint: evil.URL + "/revoke"}
			}
			s, srv := protected(t, traps)
			want := Parties{Page: s.URL, Others: []string{evil.URL}, Issuer: s.URL}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l := Login{Server: srv, Show: func(_ string, p Parties) {
				if diff := cmp.Diff(want, p); diff != "" {
					t.Errorf("the user is told of others: %s", diff)
				}
			}, Open: browse(t)}
			if tt.confirm != nil {
				l.Confirm = func(ctx context.Context, p Parties) (bool, error) {
					if diff := cmp.Diff(want, p); diff != "" {
						t.Errorf("the user is asked of others: %s", diff)
					}
					if s.Requests("register")+s.Requests("authorize") > 0 {
						t.Error("the login has begun before the question")
					}
					return tt.confirm(ctx, p)
				}
			}
			_, err := NewClient().Login(ctx, l)
			if tt.want == "" {
				if err != nil || len(codes) != 1 || <-codes == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), evil.URL) ||
				!strings.Contains(err.Error(), s.URL) {
				t.Errorf("got %v, want %q and both places", err, tt.want)
			}
			if n := s.Requests("register") + s.Requests("authorize") + len(codes); n > 0 {
				t.Errorf("%d requests were made all the same", n)
			}
		})
	}
}

// TestPartiesAreLegible: what a server has in its names can't pass for others, and all of a name
// that can be reached is shown.
func TestPartiesAreLegible(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 62)+".", 3) + strings.Repeat("b", 54) + ".example"
	a := &authority{serverMetadata: serverMetadata{Issuer: "https://\u202eelpmaxe\n[y]",
		Authorize: "https://g\u043e\u043egle.example/a", Token: "https://" + long +
			":65535/t", Revoke: "https://G\u043e\u043egle.EXAMPLE:443/r"}}
	got := a.parties()
	want := Parties{Page: `https://g\u043e\u043egle.example`, Others: []string{"https://" + long + ":65535"},
		Issuer: `https://\u202eelpmaxe [y]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if u, err := url.Parse("https://" + long); err != nil || len(u.Hostname()) < 250 {
		t.Errorf("the name is of %d bytes only", len(long))
	}
	one := &authority{serverMetadata: serverMetadata{Issuer: "https://a.example",
		Authorize: "https://a.example/a", Token: "https://A.example:443/t"}}
	if got := one.parties(); got.Receivers() != "https://a.example" || len(got.Others) > 0 {
		t.Errorf("got %+v", got)
	}
}
