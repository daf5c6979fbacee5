package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Parties are who takes part in a login beside the server and the user, in plain ASCII. The server
// has named them all, and nothing else says that they belong together.
type Parties struct {
	Page   string   // the origin at which the user agrees
	Others []string // further origins to which the code or tokens go; often none
	Issuer string   // as it calls itself
}

// parties returns who takes part in a login. The endpoints are URLs, as take has seen.
func (a *authority) parties() Parties {
	page, _ := url.Parse(a.Authorize)
	p := Parties{Page: legible(hostOf(page)), Issuer: legible(a.Issuer)}
	for _, raw := range []string{a.Token, a.Revoke} {
		u, _ := url.Parse(raw)
		name := legible(hostOf(u))
		if raw != "" && !sameOrigin(u, page) && !slices.Contains(p.Others, name) {
			p.Others = append(p.Others, name)
		}
	}
	return p
}

// legible returns a server's text with what may look like other text spelled out. The longest name
// of a host is shown whole.
func legible(s string) string {
	return strings.Trim(strconv.QuoteToASCII(text.Brief(strings.Join(strings.Fields(s), " "), textLimit)), `"`)
}

// String says who takes part, for the user.
func (p Parties) String() string {
	return fmt.Sprintf("You log in at %s; the code that gives goes to %s (issuer %s), the token to the server.",
		p.Page, p.Receivers(), p.Issuer)
}

// Receivers names where the code and the tokens go.
func (p Parties) Receivers() string {
	if len(p.Others) == 0 {
		return p.Page
	}
	return strings.Join(p.Others, " and ")
}

// agreed returns nil if the user needn't be asked, or has said yes. A server may show the page of
// one authorization server, which the user trusts, and have the code and its verifier sent to
// another, which could then act as the user at the first.
func (l Login) agreed(ctx context.Context, p Parties) error {
	if len(p.Others) == 0 {
		return nil
	}
	apart := fmt.Sprintf("the server has you log in at %s, and what that gives sent to %s", p.Page,
		p.Receivers())
	if l.Confirm == nil {
		return errors.New(apart + "; there is no terminal to ask whether these belong together, so the login " +
			"was not begun")
	}
	switch yes, err := l.Confirm(ctx, p); {
	case err != nil:
		return fmt.Errorf("%s; asking whether these belong together: %w", apart, err)
	case !yes:
		return errors.New(apart + ", with which you didn't agree; the login was not begun")
	}
	return nil
}
