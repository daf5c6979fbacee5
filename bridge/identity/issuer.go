package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// leeway is how much the issuer's clock may differ from ours.
	leeway = time.Minute

	maxSubject = 255 // bytes, as OpenID Connect has it
)

// algorithms are the signatures that are taken: with a public key, so that what checks a token
// can't make one, and never none.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// IssuerConfig is what an Issuer is made of.
type IssuerConfig struct {
	URL      string // of the authorization server, as its tokens name it in iss; required
	Audience string // the bridge's own URL, as tokens for it name it in aud; required
	Log      *slog.Logger
}

// An Issuer is an authorization server whose JWTs are taken. It is safe for concurrent use.
type Issuer struct {
	cfg  IssuerConfig
	keys *keys
}

// NewIssuer checks the configuration. It asks the issuer for nothing before the first token comes.
func NewIssuer(cfg IssuerConfig) (*Issuer, error) {
	for _, text := range []string{cfg.URL, cfg.Audience} {
		if u, err := url.Parse(text); err == nil && u.User != nil {
			return nil, fmt.Errorf("the URL of %q holds a user: it is logged, and shown to clients; leave that out",
				u.Host)
		}
	}
	issuer, err := url.Parse(cfg.URL)
	if err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" ||
		!confidential(issuer) {
		return nil, fmt.Errorf("%q is no issuer: it is an https URL without a query, as tokens name it in iss",
			cfg.URL)
	}
	own, err := url.Parse(cfg.Audience)
	if err != nil || own.Host == "" || own.Fragment != "" || own.RawQuery != "" ||
		!slices.Contains([]string{"https", "http"}, own.Scheme) {
		return nil, fmt.Errorf("%q is no audience: it is the URL by which clients reach this bridge, such as "+
			"https://bridge.example/mcp", cfg.Audience)
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Issuer{cfg: cfg, keys: newKeys(issuer, cfg.Log)}, nil
}

// URL returns the issuer's own.
func (i *Issuer) URL() string { return i.cfg.URL }

// metadataURL returns where the metadata of the bridge is.
func (i *Issuer) metadataURL() string {
	own, err := url.Parse(i.cfg.Audience)
	if err != nil { // NewIssuer has parsed it
		return ""
	}
	paths := metadataPaths(i.cfg.Audience)
	own.Path, own.RawPath = paths[len(paths)-1], ""
	return own.String()
}

// errToken is why a JWT isn't taken, in words that its sender may read.
func errToken(format string, a ...any) error {
	return fmt.Errorf("the token is not taken: "+format, a...)
}

// Verify returns the subject of a JWT of the issuer for this bridge. The error is an
// *UnavailableError where the issuer's keys can't be had, or says what is wrong with the token.
func (i *Issuer) Verify(ctx context.Context, token string) (subject string, err error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return "", errToken("it is no JWT that is signed with a public key (%s)", algorithmNames())
	}
	key, err := i.keys.find(ctx, parsed.Headers[0].KeyID, parsed.Headers[0].Algorithm)
	if err != nil {
		return "", err
	}
	var claims jwt.Claims
	if err := parsed.Claims(key.Key, &claims); err != nil {
		return "", errToken("its signature isn't its issuer's")
	}
	want := jwt.Expected{Issuer: i.cfg.URL, AnyAudience: jwt.Audience{i.cfg.Audience}, Time: time.Now()}
	switch err := claims.ValidateWithLeeway(want, leeway); {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return "", errToken("its iss is not %s", i.cfg.URL)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return "", errToken("its aud is not %s", i.cfg.Audience)
	case errors.Is(err, jwt.ErrExpired):
		return "", errToken("it has expired")
	case err != nil:
		return "", errToken("it is not valid yet")
	case claims.Expiry == nil:
		return "", errToken("it has no exp, so that it would be good for ever")
	case !plain(claims.Subject):
		return "", errToken("its sub must be from 1 to %d bytes of printable text", maxSubject)
	}
	return claims.Subject, nil
}

// plain reports whether a subject can be shown on a line, and is no more than that.
func plain(subject string) bool {
	return subject != "" && len(subject) <= maxSubject && utf8.ValidString(subject) &&
		!strings.ContainsFunc(subject, func(c rune) bool { return !unicode.IsPrint(c) })
}

func algorithmNames() string {
	names := make([]string, 0, len(algorithms))
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}
