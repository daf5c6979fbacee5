package identity

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
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
	if all, err := tokens.List(); err != nil || len(all) != 0 || tokens.Begun() {
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
	if !OpenTokens(tokens.Path(), nil).Begun() {
		t.Error("the file went with the last token")
	}
	text, err := os.ReadFile(tokens.Path())
	if err != nil || bytes.Contains(text, []byte(alice)) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if info, err := os.Stat(tokens.Path()); err != nil || runtime.GOOS != "windows" &&
		info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

// TestAsks: no token is asked for until there is a file of them, if that is so wanted; then one is,
// also when the file is gone.
func TestAsks(t *testing.T) {
	tokens := openTokens(t)
	a := &Authenticator{Tokens: tokens, Before: "local"}
	if who, err := a.Authenticate(request()); err != nil || who != "local" || a.Asks() {
		t.Errorf("before there is a file: %q, %v", who, err)
	}
	if (*Authenticator)(nil).Asks() || !(&Authenticator{Tokens: tokens}).Asks() {
		t.Error("Asks without Before, or without anything, is wrong")
	}
	alice := add(t, tokens, "alice")
	if who, err := a.Authenticate(request("Bearer " + alice)); err != nil || who != "alice" {
		t.Errorf("with a token: %q, %v", who, err)
	}
	if err := os.Remove(tokens.Path()); err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	if who, err := a.Authenticate(request()); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnauthorized {
		t.Errorf("once the file is gone: %q, %v", who, err)
	}
}

func TestTokenNames(t *testing.T) {
	tokens := openTokens(t)
	for _, name := range []string{"", "local", "jwt:alice", "a b", "-a", "a/b", "a\n", "ä",
		strings.Repeat("a", 65), "*"} {
		if token, err := tokens.Add(name); err == nil {
			t.Errorf("a token %q was made: %s", name, token)
		}
	}
	for _, name := range []string{"a", "team-1.ci_x", "alice@example.org", strings.Repeat("a", 64)} {
		add(t, tokens, name)
	}
}

// TestNames: which names have a token is known only where the file can be used.
func TestNames(t *testing.T) {
	tokens := openTokens(t)
	if names, ok := tokens.Names(); ok {
		t.Errorf("of no file: %q", names)
	}
	add(t, tokens, "bob")
	add(t, tokens, "alice")
	if names, ok := tokens.Names(); !ok || !slices.Equal(names, []string{"alice", "bob"}) {
		t.Errorf("got %q, %v", names, ok)
	}
	for _, name := range []string{"alice", "bob"} {
		if err := tokens.Revoke(name); err != nil {
			t.Fatal(err)
		}
	}
	if names, ok := tokens.Names(); !ok || len(names) != 0 {
		t.Errorf("when all are revoked: %q, %v", names, ok)
	}
	if err := os.WriteFile(tokens.Path(), []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, ok := tokens.Names(); ok {
		t.Errorf("of a broken file: %q", names)
	}
	for principal, want := range map[string]bool{"carol": true, "local": false, "jwt:carol": false,
		"http local": false} {
		if got := tokens.MayName(principal); got != want {
			t.Errorf("%s: %v", principal, got)
		}
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
	if n := strings.Count(log.String(), `next="chmod `); n != 5 {
		t.Errorf("the log names the next step %d times:\n%s", n, &log)
	}
	if err := os.Chmod(tokens.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := tokens.Find(token); err != nil || name != "alice" {
		t.Errorf("afterwards the token is %q's, %v", name, err)
	}
}

// TestTokensLookAgain: what has changed of a file is noticed though its size, mode and time of
// writing are as they were, and so is that its directory is open to others.
func TestTokensLookAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permission bits say little there")
	}
	tokens := openTokens(t)
	token := add(t, tokens, "alice")
	find := func() error {
		_, err := tokens.Find(token)
		return err
	}
	if err := find(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(tokens.Path())
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var bad *FileError
	if err := find(); !errors.As(err, &bad) || !strings.Contains(bad.Hint(), "chmod o-w "+dir) {
		t.Errorf("in a directory that everybody may write to: %v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := find(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(tokens.Path())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(tokens.Path())
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("alice"), []byte("carol"), 1)
	if err := os.WriteFile(tokens.Path(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(tokens.Path(), time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if name, err := tokens.Find(token); err != nil || name != "carol" {
		t.Errorf("after a write that keeps the time the token is %q's, %v", name, err)
	}
}

// TestTokensTold: the log says whose token was revoked or made while a bridge serves, and when.
func TestTokensTold(t *testing.T) {
	var log bytes.Buffer
	path := openTokens(t).Path()
	serving := OpenTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	command := OpenTokens(path, nil)
	add(t, command, "alice")
	look := func(want string, times int) {
		t.Helper()
		if _, err := serving.List(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), want); got != times {
			t.Errorf("%q is %d times in the log, want %d:\n%s", want, got, times, log.String())
		}
	}
	look("token", 0) // those that it begins with
	add(t, command, "bob")
	look(`msg="a token was made" principal=bob at=20`, 1)
	if err := command.Revoke("alice"); err != nil {
		t.Fatal(err)
	}
	look(`msg="a token was revoked" principal=alice at=20`, 1)
	look("principal=", 2)
	if err := command.Revoke("bob"); err != nil {
		t.Fatal(err)
	}
	add(t, command, "bob")
	look("principal=bob", 3)
}

// TestRevokeUnwritable: a token that can't be revoked is said to be good still.
func TestRevokeUnwritable(t *testing.T) {
	tokens := openTokens(t)
	token := add(t, tokens, "alice")
	if err := os.Remove(tokens.Path() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Mkdir(tokens.Path()+".lock", 0o700); err != nil { // so that no lock can be had
		t.Fatal(err)
	}
	var kept *text.HintError
	if err := tokens.Revoke("alice"); !errors.As(err, &kept) ||
		!strings.Contains(kept.Error(), "the token of alice isn't revoked and is still good: ") ||
		!strings.Contains(kept.Hint(), "leave to write to "+filepath.Dir(tokens.Path())) {
		t.Fatalf("got %v", err)
	}
	if name, err := tokens.Find(token); name != "alice" || err != nil {
		t.Errorf("the token is %q's, %v", name, err)
	}
}

// TestUnreadableTokens: the next step after an error fits it.
func TestUnreadableTokens(t *testing.T) {
	tokens := OpenTokens("/root/tokens", nil)
	if got := tokens.untrustedFix(&fs.PathError{Op: "lstat", Path: "/root/tokens",
		Err: fs.ErrPermission}); got !=
		"give the user that runs mcp-bridge leave to read /root/tokens and to enter its directories" {
		t.Error(got)
	}
	if got := tokens.untrustedFix(&trust.Error{Path: "/root", Why: "is open",
		Fix: "close it"}); got != "close it" {
		t.Error(got)
	}
}

func TestBrokenTokens(t *testing.T) {
	tokens := openTokens(t)
	add(t, tokens, "alice")
	sum := strings.Repeat("0a", 32)
	for _, text := range []string{
		"alice", "alice " + sum, "alice sha256:" + sum + "0", "alice md5:" + sum, "local sha256:" + sum,
		"a:b sha256:" + sum, "alice sha256:" + sum + "\nalice sha256:" + sum, "alice sha256:" + sum +
			" 2026-11-23 x",
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
