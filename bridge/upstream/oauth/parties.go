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
	Page   string   // the origin at which the login begins; its page may lead on to another
	Others []string // further origins to which the code or tokens go; often none
	Issuer string   // as it calls itself
	Client string   // of the entry, if neither the entry nor a login before has named this issuer
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
	return fmt.Sprintf("You log in at %s; the code that gives goes to %s (issuer %s), the token to the server. "+
		"If the page leads on to another place, the code that one gives goes there too.",
		p.Page, p.Receivers(), p.Issuer)
}

// Receivers names where the code and the tokens go.
func (p Parties) Receivers() string {
	if len(p.Others) == 0 {
		return p.Page
	}
	return strings.Join(p.Others, " and ")
}

// Question returns what to ask the user before the login; empty if there is nothing to ask.
func (p Parties) Question() string {
	var q []string
	if len(p.Others) > 0 {
		q = append(q, fmt.Sprintf("You would log in at %s, but the code and tokens that gives would go to %s "+
			"(issuer %s).\nThat party could then act as you at the first. Say yes only if you know that they "+
			"belong together.", p.Page, p.Receivers(), p.Issuer))
	}
	if p.Client != "" {
		q = append(q, fmt.Sprintf("The server, not its entry, says that the client %s is to log in at %s "+
			"(issuer %s).\nThat page may lead on to another place, where you trust: what you agree to there, and the "+
			"client's secret,\nwould go to %s all the same. Say yes only if you know that the client was "+
			"registered there.", p.Client, p.Page, p.Issuer, p.Receivers()))
	}
	return strings.Join(q, "\n")
}

// agreed returns nil if the user needn't be asked, or has said yes. A server may have the user
// agree at one authorization server, which the user trusts, and have the code and its verifier sent
// to another, which could then act as the user at the first. Where the first knows the entry's
// client, it may not even ask the user again.
func (l Login) agreed(ctx context.Context, p Parties) error {
	if p.Question() == "" {
		return nil
	}
	about := fmt.Sprintf("the server has you log in at %s, and what that gives sent to %s", p.Page,
		p.Receivers())
	next := ""
	if p.Client != "" {
		about += fmt.Sprintf(", with the client %s of its entry, which doesn't name that issuer", p.Client)
		next = "; run mcp-bridge login at a terminal, or write the address of the issuer's metadata into the " +
			"entry (oauth: authServerMetadataUrl)"
	}
	if l.Confirm == nil {
		return errors.New(about + "; there is no terminal to ask whether these belong together, so the login " +
			"was not begun" + next)
	}
	switch yes, err := l.Confirm(ctx, p); {
	case err != nil:
		return fmt.Errorf("%s; asking whether these belong together: %w", about, err)
	case !yes:
		return errors.New(about + ", with which you didn't agree; the login was not begun")
	}
	return nil
}

// client returns the entry's client if the user is to confirm that it belongs to issuer: the entry
// doesn't name the metadata to believe, and the login before was made elsewhere or is over.
func (l Login) client(issuer string) string {
	o := l.Server.OAuth
	if o.MetadataURL != "" || l.before.Issuer == issuer && l.before.ClientID == o.ClientID {
		return ""
	}
	return legible(o.ClientID)
}
