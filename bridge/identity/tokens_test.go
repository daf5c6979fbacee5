package identity

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func openTokens(t *testing.T) *Tokens {
	t.Helper()
	return OpenTokens(filepath.Join(t.TempDir(), "state", "tokens"), nil, "local")
}

func add(t *testing.T, tokens *Tokens, name string) string {
	t.Helper()
	token, err := tokens.Add(name)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokens(t *testing.T) {
	tokens := openTokens(t)
	if all, err := tokens.List(); err != nil || len(all) != 0 || tokens.Exists() {
		t.Fatalf("before the first one: %v, %v", all, err)
	}
	alice, bob := add(t, tokens, "alice"), add(t, tokens, "bob")
	if len(alice) != len(tokenPrefix)+43 || alice == bob {
		t.Errorf("tokens are %q and %q", alice, bob)
	}
	other := OpenTokens(tokens.Path(), nil) // as another process has them
	for token, want := range map[string]string{alice: "alice", bob: "bob"} {
		if name, err := other.Find(token); err != nil || name != want {
			t.Errorf("%s's token is %q's, %v", want, name, err)
		}
	}
	for _, wrong := range []string{"", alice[:len(alice)-1], alice + "A", strings.ToUpper(alice), "alice"} {
		if name, err := other.Find(wrong); !errors.Is(err, ErrNoToken) || name != "" {
			t.Errorf("%q is %q's, %v", wrong, name, err)
		}
	}
	if _, err := tokens.Add("alice"); !errors.Is(err, ErrExists) {
		t.Errorf("a second one of a name: %v", err)
	}
	if err := tokens.Revoke("carol"); !errors.Is(err, ErrNoToken) {
		t.Errorf("revoking one that isn't there: %v", err)
	}
	for _, name := range []string{"alice", "bob"} {
		if err := tokens.Revoke(name); err != nil {
			t.Error(err)
		}
	}
	for _, token := range []string{alice, bob} {
		if name, err := other.Find(token); !errors.Is(err, ErrNoToken) {
			t.Errorf("a revoked token is %q's, %v", name, err)
		}
	}
	if !tokens.Exists() {
		t.Error("the file went with the last token")
	}
	text, err := os.ReadFile(tokens.Path())
	if err != nil || bytes.Contains(text, []byte(alice)) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if info, err := os.Stat(tokens.Path()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func TestTokenNames(t *testing.T) {
	tokens := openTokens(t)
	for _, name := range []string{"", "local", "jwt:alice", "a b", "-a", "a/b", "a\n", "ä", strings.Repeat("a", 65), "*"} {
		if token, err := tokens.Add(name); err == nil {
			t.Errorf("a token %q was made: %s", name, token)
		}
	}
	for _, name := range []string{"a", "team-1.ci_x", "alice@example.org", strings.Repeat("a", 64)} {
		add(t, tokens, name)
	}
}

// TestTokensAtOnce has several commands change the file at once.
func TestTokensAtOnce(t *testing.T) {
	path := openTokens(t).Path()
	var wg sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		wg.Go(func() {
			if _, err := OpenTokens(path, nil).Add(name); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := OpenTokens(path, nil).List(); err != nil || len(all) != 8 {
		t.Errorf("there are %v, %v", all, err)
	}
}

func TestExposedTokens(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permission bits say little there")
	}
	tokens := openTokens(t)
	token := add(t, tokens, "alice")
	var log bytes.Buffer
	tokens = OpenTokens(tokens.Path(), slog.New(slog.NewTextHandler(&log, nil)))
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o666} {
		if err := os.Chmod(tokens.Path(), mode); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			name, err := tokens.Find(token)
			var bad *FileError
			if !errors.As(err, &bad) || name != "" || !strings.Contains(bad.Hint(), "chmod") {
				t.Errorf("with mode %#o the token is %q's, %v", mode, name, err)
			}
		}
	}
	if n := strings.Count(log.String(), "can't be used"); n != 10 { // twice in a line
		t.Errorf("the log says it %d times:\n%s", n, &log)
	}
	if err := os.Chmod(tokens.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := tokens.Find(token); err != nil || name != "alice" {
		t.Errorf("afterwards the token is %q's, %v", name, err)
	}
}

func TestBrokenTokens(t *testing.T) {
	tokens := openTokens(t)
	add(t, tokens, "alice")
	sum := strings.Repeat("0a", 32)
	for _, text := range []string{
		"alice", "alice " + sum, "alice sha256:" + sum + "0", "alice md5:" + sum, "local sha256:" + sum,
		"a:b sha256:" + sum, "alice sha256:" + sum + "\nalice sha256:" + sum, "alice sha256:" + sum + " 2026-11-23 x",
		strings.Repeat("#\n", maxTokenFile),
	} {
		if err := os.WriteFile(tokens.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var bad *FileError
		if all, err := tokens.List(); !errors.As(err, &bad) {
			t.Errorf("%.60q has tokens %v, %v", text, all, err)
		}
		if _, err := tokens.Add("bob"); !errors.As(err, &bad) {
			t.Errorf("%.60q was replaced: %v", text, err)
		}
	}
	text := "# made elsewhere\n\n  alice\tsha256:" + sum + "\r\n"
	if err := os.WriteFile(tokens.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := tokens.List(); err != nil || len(all) != 1 || all[0].Name != "alice" || all[0].Since != "" {
		t.Errorf("got %v, %v", all, err)
	}
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp?access_token=x", nil)
	for _, h := range headers {
		r.Header.Add("Authorization", h)
	}
	return r
}

func TestAuthenticate(t *testing.T) {
	tokens := openTokens(t)
	token := add(t, tokens, "alice")
	a := &Authenticator{Tokens: tokens}
	for _, h := range []string{"Bearer " + token, "bearer  " + token, "BEARER " + token + " "} {
		if who, err := a.Authenticate(request(h)); err != nil || who != "alice" {
			t.Errorf("%q is %q, %v", h, who, err)
		}
	}
	const realm = `Bearer realm="mcp-bridge"`
	for _, c := range []struct {
		headers   []string
		challenge string
	}{
		{nil, realm},
		{[]string{"Basic YTpi"}, realm},
		{[]string{token}, realm},
		{[]string{""}, realm},
		{[]string{"Bearer"}, realm + `, error="invalid_request"`},
		{[]string{"Bearer " + token + " x"}, realm + `, error="invalid_request"`},
		{[]string{"Bearer " + token + "\x00"}, realm + `, error="invalid_request"`},
		{[]string{"Bearer " + strings.Repeat("a", maxBearer+1)}, realm + `, error="invalid_request"`},
		{[]string{"Bearer " + token, "Bearer " + token}, realm + `, error="invalid_request"`},
		{[]string{"Bearer " + tokenPrefix + "x"}, realm + `, error="invalid_token"`},
		{[]string{"Bearer eyJhbGciOiJub25lIn0.e30."}, realm + `, error="invalid_token"`},
	} {
		who, err := a.Authenticate(request(c.headers...))
		var refused *Refusal
		if !errors.As(err, &refused) || who != "" || refused.Status != http.StatusUnauthorized ||
			refused.Challenge != c.challenge {
			t.Errorf("%.80q is %q, %#v", c.headers, who, err)
		}
	}
	if err := os.WriteFile(tokens.Path(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	if _, err := a.Authenticate(request("Bearer " + token)); !errors.As(err, &refused) ||
		refused.Status != http.StatusServiceUnavailable || strings.Contains(refused.Message, tokens.Path()) {
		t.Errorf("with a broken file: %#v", err)
	}
	if a.WellKnown() != nil {
		t.Error("there is metadata without an issuer")
	}
}
