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
	"github.com/mcp-bridge/mcp-bridge/discovery"
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

// misleading is a server that authorizes for itself, whose page leads on to another place, and what
// its token endpoint was sent.
func misleading(t *testing.T) (origin string, codes chan string) {
	mux := http.NewServeMux()
	evil := httptest.NewServer(mux)
	t.Cleanup(evil.Close)
	codes = make(chan string, 10)
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "EVIL", evil.URL))
		}
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp",
		says(`{"resource":"EVIL/mcp","authorization_servers":["EVIL"]}`))
	mux.HandleFunc("/.well-known/oauth-authorization-server",
		says(`{"issuer":"EVIL","authorization_endpoint":"EVIL/a","token_endpoint":"EVIL/t",
			"code_challenge_methods_supported":["S256"]}`))
	mux.HandleFunc("/a", func(w http.ResponseWriter, r *http.Request) {
		// The other place knows the client and its user, and its answer has no iss.
		q := r.URL.Query()
		back := url.Values{"code": {"of the honest one"}, "state": {q.Get("state")}}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/t", func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		codes <- r.FormValue("code") + ", " + password
		says(`{"access_token":"x","token_type":"Bearer"}`)(w, r)
	})
	return evil.URL, codes
}

// TestMixUp: a server that names an issuer of its own, whose page leads on to another, gets no code
// for the entry's client, and not its secret, unless the user has agreed to that issuer or the
// entry names its metadata.
func TestMixUp(t *testing.T) {
	evil, codes := misleading(t)
	srv := discovery.Server{Name: "far", Transport: discovery.HTTP, URL: evil + "/mcp",
		OAuth: discovery.OAuth{ClientID: "mine", ClientSecret: "client-s3cret"}}
	pinned := srv
	pinned.OAuth.MetadataURL = evil + "/.well-known/oauth-authorization-server"
	for _, tt := range []struct {
		name   string
		srv    discovery.Server
		before Grant
		asked  bool
	}{
		{"first login", srv, Grant{}, true},
		{"to another issuer", srv, Grant{Issuer: "https://honest.example", ClientID: "mine"}, true},
		{"with another client", srv, Grant{Issuer: evil, ClientID: "older"}, true},
		{"again", srv, Grant{Issuer: evil, ClientID: "mine"}, false},
		{"metadata of the entry", pinned, Grant{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &Store{Dir: t.TempDir()}
			s := NewSource(store)
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			tt.before.URL = srv.URL
			if _, err := store.Put(srv, tt.before); err != nil {
				t.Fatal(err)
			}
			if tt.asked {
				err := s.LoginByPage(ctx, tt.srv, "", func(context.Context, string, string) error {
					return errors.New("the page was shown")
				})
				if err == nil || !strings.Contains(err.Error(), "authServerMetadataUrl") {
					t.Errorf("in a call: %v", err)
				}
			}
			for _, yes := range []bool{false, true} {
				question := ""
				_, err := s.Login(ctx, Login{Server: tt.srv, Open: browse(t), Show: func(string, Parties) {},
					Confirm: func(_ context.Context, p Parties) (bool, error) {
						question = p.Question()
						return yes, nil
					}})
				if (question != "") != tt.asked || tt.asked && (!strings.Contains(question, "may lead on") ||
					!strings.Contains(question, evil) || strings.Contains(question, "s3cret")) {
					t.Errorf("asked %q", question)
				}
				if yes || !tt.asked {
					if got := <-codes; err != nil || got != "of the honest one, client-s3cret" {
						t.Errorf("got %v and %s", err, got)
					}
				}
				if len(codes) > 0 || err == nil != (yes || !tt.asked) {
					t.Errorf("yes %v: got %v and %d codes more", yes, err, len(codes))
				}
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
