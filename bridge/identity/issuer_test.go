package identity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	issuerURL = "https://login.example/tenant"
	ownURL    = "https://bridge.example/mcp"
)

// fakeIssuer is an authorization server that is asked without a network.
type fakeIssuer struct {
	keys    []jose.JSONWebKey
	asked   atomic.Int64 // for its keys
	down    atomic.Bool
	stalled atomic.Bool       // it never answers
	answers map[string]string // by URL, in the place of its own
}

func (f *fakeIssuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.down.Load() {
		return nil, errors.New("no answer")
	}
	if f.stalled.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, status := "", http.StatusOK
	set := f.answers[r.URL.String()]
	switch {
	case set != "":
		body = set
	case r.URL.String() == "https://login.example/.well-known/oauth-authorization-server/tenant":
		body = fmt.Sprintf(`{"issuer":%q,"jwks_uri":"https://login.example/keys"}`, issuerURL)
	case r.URL.String() == "https://login.example/keys":
		f.asked.Add(1)
		var public []jose.JSONWebKey
		for _, k := range f.keys {
			public = append(public, k.Public())
		}
		raw, err := json.Marshal(map[string]any{"keys": public})
		if err != nil {
			return nil, err
		}
		body = string(raw)
	default:
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func newKey(t *testing.T, id string, algorithm jose.SignatureAlgorithm) jose.JSONWebKey {
	t.Helper()
	var key any
	var err error
	switch algorithm {
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.EdDSA:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(algorithm), Use: "sig"}
}

func newFake(t *testing.T, keys ...jose.JSONWebKey) (*Issuer, *fakeIssuer) {
	t.Helper()
	i, err := NewIssuer(IssuerConfig{URL: issuerURL, Audience: ownURL})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeIssuer{keys: keys}
	i.keys.client.Transport = f
	return i, f
}

// sign returns a token of claims. A nil claim is left out.
func sign(t *testing.T, key jose.JSONWebKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(key.Algorithm), Key: key},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"iss": issuerURL, "aud": ownURL, "sub": "alice",
		"exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range claims {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestVerify(t *testing.T) {
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.PS512, jose.ES256, jose.EdDSA} {
		key := newKey(t, "one", algorithm)
		i, _ := newFake(t, newKey(t, "other", jose.ES256), key)
		if who, err := i.Verify(t.Context(), sign(t, key, nil)); err != nil || who != "alice" {
			t.Errorf("%s: %q, %v", algorithm, who, err)
		}
	}
}

func TestClaims(t *testing.T) {
	key := newKey(t, "one", jose.ES256)
	i, _ := newFake(t, key)
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for _, c := range []struct {
		claims map[string]any
		why    string // in the error; empty: it is taken
	}{
		{map[string]any{"aud": []string{"https://elsewhere.example", ownURL}}, ""},
		{map[string]any{"exp": in(-leeway / 2)}, ""},
		{map[string]any{"nbf": in(leeway / 2)}, ""},
		{map[string]any{"sub": "auth0|Ärzte 1"}, ""},
		{map[string]any{"iss": nil}, "iss"},
		{map[string]any{"iss": issuerURL + "/"}, "iss"},
		{map[string]any{"aud": nil}, "aud"},
		{map[string]any{"aud": "https://bridge.example"}, "aud"},
		{map[string]any{"aud": ownURL + "/"}, "aud"},
		{map[string]any{"exp": nil}, "exp"},
		{map[string]any{"exp": in(-2 * leeway)}, "expired"},
		{map[string]any{"nbf": in(2 * leeway)}, "not valid yet"},
		{map[string]any{"iat": in(2 * leeway)}, "not valid yet"},
		{map[string]any{"sub": nil}, "sub"},
		{map[string]any{"sub": ""}, "sub"},
		{map[string]any{"sub": "a\nb"}, "sub"},
		{map[string]any{"sub": "a\u202eb"}, "sub"},
		{map[string]any{"sub": strings.Repeat("a", maxSubject+1)}, "sub"},
	} {
		who, err := i.Verify(t.Context(), sign(t, key, c.claims))
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%v: %q, %v", c.claims, who, err)
		}
	}
}

// TestForged sends tokens that others than the issuer could have made.
func TestForged(t *testing.T) {
	key := newKey(t, "one", jose.RS256)
	i, _ := newFake(t, key)
	good := sign(t, key, nil)
	if _, err := i.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	public, err := json.Marshal(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	hmac := sign(t, jose.JSONWebKey{Key: public, KeyID: "one", Algorithm: string(jose.HS256)}, nil)
	other := sign(t, newKey(t, "one", jose.RS256), nil)
	bobs := sign(t, key, map[string]any{"sub": "bob"})
	flipped := bytes.Clone([]byte(parts[2]))
	flipped[10] ^= 1
	for name, token := range map[string]string{
		"none":              "eyJhbGciOiJub25lIiwia2lkIjoib25lIn0." + parts[1] + ".",
		"none with another": "eyJhbGciOiJub25lIiwia2lkIjoib25lIn0." + parts[1] + "." + parts[2],
		"hmac":              hmac,
		"another's key":     other,
		"another algorithm": sign(t, jose.JSONWebKey{Key: key.Key, KeyID: "one", Algorithm: string(jose.PS256)},
			nil),
		"signature":    parts[0] + "." + parts[1] + "." + string(flipped),
		"payload":      parts[0] + "." + strings.Split(bobs, ".")[1] + "." + parts[2],
		"no signature": parts[0] + "." + parts[1] + ".",
		"two parts":    parts[0] + "." + parts[1],
		"nothing":      "..",
		"JSON": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` +
			parts[2] + `"}`,
	} {
		if who, err := i.Verify(t.Context(), token); err == nil {
			t.Errorf("%s: it is %q's", name, who)
		}
	}
}

// TestRotation has the issuer change its keys, and tokens name keys that there aren't.
func TestRotation(t *testing.T) {
	one, two := newKey(t, "one", jose.ES256), newKey(t, "two", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i, f := newFake(t, one)
		verify := func(key jose.JSONWebKey) error {
			_, err := i.Verify(t.Context(), sign(t, key, nil))
			return err
		}
		for range 3 {
			if err := verify(one); err != nil || f.asked.Load() != 1 {
				t.Fatalf("%v; asked %d times", err, f.asked.Load())
			}
		}
		f.keys = []jose.JSONWebKey{two}
		for range 100 { // a flood of tokens whose key isn't known
			if verify(two) == nil {
				t.Fatal("the keys were asked for again at once")
			}
		}
		if n := f.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(leastWait)
		if err := verify(two); err != nil || f.asked.Load() != 2 {
			t.Errorf("a new key: %v; asked %d times", err, f.asked.Load())
		}
		if verify(one) == nil {
			t.Error("a key counts that the issuer has no more")
		}
		time.Sleep(keysFor)
		for range 3 {
			if err := verify(two); err != nil {
				t.Errorf("an old key: %v", err)
			}
		}
		if synctest.Wait(); f.asked.Load() != 3 {
			t.Errorf("with an old key the issuer was asked %d times", f.asked.Load())
		}
		time.Sleep(keysFor)
		i.keys.turn <- struct{}{} // another request asks for new ones
		if err := verify(two); err != nil || f.asked.Load() != 3 {
			t.Errorf("meanwhile: %v; asked %d times", err, f.asked.Load())
		}
		<-i.keys.turn
		f.down.Store(true)
		time.Sleep(staleFor - keysFor - time.Minute)
		if err := verify(two); err != nil {
			t.Errorf("while the issuer is away: %v", err)
		}
		time.Sleep(2 * time.Minute)
		var unavailable *UnavailableError
		if err := verify(two); !errors.As(err, &unavailable) {
			t.Errorf("when it is away for long: %v", err)
		}
		a := &Authenticator{Issuer: i}
		var refused *Refusal
		if _, err := a.Authenticate(request("Bearer " + sign(t, two, nil))); !errors.As(err, &refused) ||
			refused.Status != http.StatusServiceUnavailable {
			t.Errorf("refused with %#v", err)
		}
	})
}

// TestStalledIssuer: while an issuer that takes requests doesn't answer them, a token whose key is
// known is checked with that, at once.
func TestStalledIssuer(t *testing.T) {
	key := newKey(t, "one", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i, f := newFake(t, key)
		verify := func() time.Duration {
			token, begin := sign(t, key, map[string]any{"exp": time.Now().Add(staleFor).Unix()}), time.Now()
			if _, err := i.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
			return time.Since(begin)
		}
		verify()
		f.stalled.Store(true)
		time.Sleep(keysFor)
		for range 10 {
			if took := verify(); took != 0 {
				t.Errorf("a token was held up for %v", took)
			}
			time.Sleep(leastWait / 4)
		}
	})
}

// TestMetadataInTurn: what one place says of an issuer isn't mixed with what the next says.
func TestMetadataInTurn(t *testing.T) {
	key := newKey(t, "one", jose.ES256)
	i, f := newFake(t, key)
	const below = "https://login.example/.well-known/"
	f.answers = map[string]string{
		below + "oauth-authorization-server/tenant": `{"issuer":"https://other.example",` +
			`"jwks_uri":"https://login.example/keys"}`,
		below + "openid-configuration/tenant": `{"issuer":"` + issuerURL + `"}`,
	}
	var unavailable *UnavailableError
	if who, err := i.Verify(t.Context(), sign(t, key, nil)); !errors.As(err, &unavailable) ||
		f.asked.Load() != 0 {
		t.Errorf("keys of another issuer's metadata are used: %q, %v", who, err)
	}
}

// TestSentToPlainHTTP: what an issuer in https says doesn't come over http, also from this machine.
func TestSentToPlainHTTP(t *testing.T) {
	for issuer, want := range map[string]bool{issuerURL: false, "http://127.0.0.1:9000": true} {
		i, err := NewIssuer(IssuerConfig{URL: issuer, Audience: ownURL})
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{"http://localhost:8000/keys", "http://127.0.0.1/keys"} {
			r := httptest.NewRequest(http.MethodGet, to, nil)
			if err := i.keys.client.CheckRedirect(r, nil); (err == nil) != want {
				t.Errorf("%s sends on to %s: %v", issuer, to, err)
			}
		}
	}
}

// TestIssuerSaysNonsense gives the bridge documents that it can't use.
func TestIssuerSaysNonsense(t *testing.T) {
	const meta = "https://login.example/.well-known/oauth-authorization-server/tenant"
	const keys = "https://login.example/keys"
	key := newKey(t, "one", jose.ES256)
	private, err := json.Marshal(map[string]any{"keys": []any{key}})
	if err != nil {
		t.Fatal(err)
	}
	for name, answers := range map[string]map[string]string{
		"another issuer": {meta: `{"issuer":"https://login.example","jwks_uri":"` + keys + `"}`},
		"local http":     {meta: `{"issuer":"` + issuerURL + `","jwks_uri":"http://localhost/keys"}`},
		"plain http":     {meta: `{"issuer":"` + issuerURL + `","jwks_uri":"http://login.example/keys"}`},
		"no keys":        {meta: `{"issuer":"` + issuerURL + `"}`},
		"no JSON":        {meta: "<html>"},
		"endless":        {keys: strings.Repeat(" ", maxDocument+1)},
		"private keys":   {keys: string(private)},
		"symmetric keys": {keys: `{"keys":[{"kty":"oct","kid":"one","k":"c2VjcmV0"}]}`},
		"odd keys": {keys: `{"keys":[1,{"kty":"?"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA",` +
			`"kid":"one"}]}`},
	} {
		i, f := newFake(t, key)
		f.answers = answers
		var unavailable *UnavailableError
		if who, err := i.Verify(t.Context(), sign(t, key, nil)); !errors.As(err, &unavailable) {
			t.Errorf("%s: %q, %v", name, who, err)
		}
	}
}

func TestFindEndsWithItsContext(t *testing.T) {
	key := newKey(t, "one", jose.ES256)
	i, _ := newFake(t, key)
	i.keys.turn <- struct{}{} // the issuer is being asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.Verify(ctx, sign(t, key, nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPrincipals(t *testing.T) {
	key := newKey(t, "one", jose.ES256)
	i, _ := newFake(t, key)
	tokens := openTokens(t)
	token := add(t, tokens, "alice")
	a := &Authenticator{Tokens: tokens, Issuer: i}
	for bearer, want := range map[string]string{token: "alice", sign(t, key, nil): "jwt:alice"} {
		if who, err := a.Authenticate(request("Bearer " + bearer)); err != nil || who != want {
			t.Errorf("got %q, %v, want %q", who, err, want)
		}
	}
	var refused *Refusal
	_, err := a.Authenticate(request())
	const want = `Bearer resource_metadata="https://bridge.example/.well-known/oauth-protected-resource/mcp"`
	if !errors.As(err, &refused) || refused.Challenge != want {
		t.Errorf("got %#v", err)
	}
}

func TestMetadata(t *testing.T) {
	i, _ := newFake(t)
	h := (&Authenticator{Issuer: i}).WellKnown()
	for _, path := range metadataPaths(ownURL) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var got struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Resource != ownURL ||
			len(got.Servers) != 1 || got.Servers[0] != issuerURL {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/x",
		nil)); w.Code != http.StatusNotFound {
		t.Errorf("another path: %d", w.Code)
	}
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, wellKnown,
		nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodOptions, wellKnown, nil))
	if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != "*" ||
		w.Header().Get("Access-Control-Allow-Headers") == "" {
		t.Errorf("what a browser asks first: %d, %v", w.Code, w.Header())
	}
	if got := strings.Join(metadataPaths("https://bridge.example/"), " "); got != wellKnown {
		t.Errorf("of a root: %s", got)
	}
}

func TestNewIssuer(t *testing.T) {
	for _, c := range [][2]string{
		{"", ownURL}, {"http://login.example", ownURL}, {"https://login.example?x=1", ownURL},
		{"login.example", ownURL},
		{issuerURL, ""}, {issuerURL, "bridge.example"}, {issuerURL, "ftp://bridge.example/mcp"},
		{issuerURL, ownURL + "#x"},
		{"https://user:hunter2@login.example", ownURL}, {issuerURL, "https://user:hunter2@bridge.example/mcp"},
	} {
		_, err := NewIssuer(IssuerConfig{URL: c[0], Audience: c[1]})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", c, err)
		}
	}
	if _, err := NewIssuer(IssuerConfig{URL: "http://127.0.0.1:9000",
		Audience: "http://127.0.0.1:7878/mcp"}); err != nil {
		t.Error(err)
	}
}
