package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	fetchTimeout = 10 * time.Second // for the issuer's metadata and keys together
	maxDocument  = 512 << 10        // bytes of each
	maxKeys      = 100

	keysFor   = time.Hour        // for which keys are used before they are asked for again
	staleFor  = 24 * time.Hour   // likewise, where the issuer doesn't answer
	leastWait = 30 * time.Second // between two requests for keys, whatever tokens come
)

// An UnavailableError says why an issuer's keys can't be had.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return "the issuer's keys can't be had: " + e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// keys are an issuer's public keys. They are asked for with the first token, when they are old, and
// when a token names one that isn't among them, but never more often than every leastWait. It is
// safe for concurrent use: a token whose key is known, be it an old one, waits for no request.
type keys struct {
	issuer *url.URL
	client *http.Client
	log    *slog.Logger

	turn chan struct{} // holds one while the issuer is asked

	mu     sync.Mutex
	all    []jose.JSONWebKey
	at     time.Time // when they came; zero: never
	tried  time.Time // when the issuer was asked last
	failed error     // why it didn't answer then
}

func newKeys(issuer *url.URL, log *slog.Logger) *keys {
	k := &keys{issuer: issuer, log: log, turn: make(chan struct{}, 1)}
	k.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			MaxIdleConns:          2,
			IdleConnTimeout:       time.Minute,
			TLSHandshakeTimeout:   fetchTimeout,
			ResponseHeaderTimeout: fetchTimeout,
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || !k.trusts(r.URL) {
				return errors.New("it was sent on too often, or over plain http")
			}
			return nil
		},
	}
	return k
}

// trusts reports whether the issuer's documents may come from a URL: plain http, on this machine,
// is for an issuer that is itself reached so.
func (k *keys) trusts(u *url.URL) bool {
	return confidential(u) && (u.Scheme == "https" || k.issuer.Scheme == "http")
}

// find returns the key that has signed a token, by its id and algorithm. An old one serves while
// the issuer is asked.
func (k *keys) find(ctx context.Context, id, algorithm string) (*jose.JSONWebKey, error) {
	key, fresh := k.known(id, algorithm)
	switch {
	case key != nil && fresh:
		return key, nil
	case key != nil:
		select {
		case k.turn <- struct{}{}:
			go func() { // until fetchTimeout at most
				defer func() { <-k.turn }()
				_ = k.refresh(ctx) // which logs an error
			}()
		default:
		}
		return key, nil
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, &UnavailableError{context.Cause(ctx)}
	}
	defer func() { <-k.turn }()
	if key, _ = k.known(id, algorithm); key != nil {
		return key, nil // another request has asked meanwhile
	}
	err := k.refresh(ctx)
	if key, _ = k.known(id, algorithm); key != nil {
		return key, nil
	}
	if err != nil {
		return nil, &UnavailableError{err}
	}
	return nil, errToken("its issuer has no key %.40q for %.10s", id, algorithm)
}

// known returns a key and whether it needs no refresh. A token that names no key is of the only one
// that could be meant.
func (k *keys) known(id, algorithm string) (key *jose.JSONWebKey, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := time.Since(k.at)
	if k.at.IsZero() || age > staleFor {
		return nil, false
	}
	var found []*jose.JSONWebKey
	for i := range k.all {
		made := k.all[i].Algorithm // that signatures by it have; empty: any of its kind
		if (id == "" || k.all[i].KeyID == id) && (made == "" || made == algorithm) {
			found = append(found, &k.all[i])
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], age < keysFor
}

// refresh asks the issuer for its keys, unless it was asked a moment ago. Only the one with the
// turn calls it. The request ends with its own timeout, not with the token that has caused it.
func (k *keys) refresh(ctx context.Context) error {
	k.mu.Lock()
	if !k.tried.IsZero() && time.Since(k.tried) < leastWait {
		defer k.mu.Unlock()
		return k.failed
	}
	k.tried = time.Now()
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	all, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed = err; err != nil {
		k.log.Warn("the keys of the tokens' issuer can't be had", "issuer", k.issuer.String(), "err", err)
		return err
	}
	k.all, k.at = all, time.Now()
	return nil
}

// fetch asks for the issuer's metadata, and by that for its keys.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	type metadata struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	var meta metadata
	var failed error
	for _, place := range metadataPlaces(k.issuer) {
		meta = metadata{} // nothing of another place's
		err := k.get(ctx, place, &meta)
		if err == nil && meta.Issuer != k.issuer.String() {
			err = fmt.Errorf("%s is about another issuer, %.200q", place, meta.Issuer)
		}
		if err == nil {
			failed = nil
			break
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return nil, failed
	}
	at, err := url.Parse(meta.Keys)
	if err != nil || at.Host == "" || !k.trusts(at) {
		return nil, fmt.Errorf("its metadata has no https URL in jwks_uri, but %.200q", meta.Keys)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, at.String(), &set); err != nil {
		return nil, err
	}
	var all []jose.JSONWebKey
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		var key jose.JSONWebKey // of a kind that isn't known, perhaps
		if json.Unmarshal(raw, &key) == nil && key.Valid() && key.IsPublic() &&
			(key.Use == "" || key.Use == "sig") {
			all = append(all, key)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no public key to check a signature with", at)
	}
	return all, nil
}

// metadataPlaces returns where an issuer's metadata may be: by RFC 8414, then as OpenID Connect
// has it.
func metadataPlaces(issuer *url.URL) []string {
	base := *issuer
	path := strings.TrimSuffix(issuer.Path, "/")
	base.Path, base.RawPath = "", ""
	root := base.String()
	places := []string{
		root + "/.well-known/oauth-authorization-server" + path,
		root + "/.well-known/openid-configuration" + path,
		root + path + "/.well-known/openid-configuration",
	}
	return slices.Compact(places)
}

// get reads a JSON document.
func (k *keys) get(ctx context.Context, from string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := k.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s", from, res.Status)
	case len(body) > maxDocument:
		return fmt.Errorf("%s is longer than %d bytes", from, maxDocument)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s can't be read: %w", from, err)
	}
	return nil
}

// confidential reports whether what is said at a URL can't be read or changed on its way.
func confidential(u *url.URL) bool {
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
