package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Store keeps the grants of one user. Processes may share one; its methods may be called
// concurrently.
type Store secrets.Store

// ErrNone says that there is no login.
var ErrNone = errors.New("there is no login")

// account returns the account of a server's grant. Name and URL are both part of it: the same name
// may mean another server tomorrow, and two entries for one URL may be two users there.
func account(s discovery.Server) string { return secrets.Account(s.Name, s.URL) }

func (s *Store) all() *secrets.Store { return (*secrets.Store)(s) }

// told returns an error of the secrets in the words of logins.
func told(doing string, err error) error {
	switch {
	case errors.Is(err, secrets.ErrNone):
		return ErrNone
	case err != nil:
		return fmt.Errorf("%s the login: %w", doing, err)
	}
	return nil
}

// Get returns a server's grant, and where it is kept, or ErrNone.
func (s *Store) Get(srv discovery.Server) (g Grant, in string, err error) {
	text, in, err := s.all().Get(account(srv))
	if err != nil {
		return g, "", told("reading", err)
	}
	if json.Unmarshal([]byte(text), &g) != nil {
		return Grant{}, "", errors.New("what is kept of the login can't be read; log out and in again")
	}
	if g.URL != srv.URL {
		return Grant{}, "", ErrNone
	}
	return g, in, nil
}

// stamp returns what changes when a grant is replaced; nil if there isn't one.
func (s *Store) stamp(srv discovery.Server) os.FileInfo {
	info, err := os.Stat(s.all().File(account(srv)))
	if err != nil {
		return nil
	}
	return info
}

// Put keeps a grant and returns where. Its caller has Lock; one that renews a grant, from before
// Get on.
func (s *Store) Put(srv discovery.Server, g Grant) (in string, err error) {
	text, err := json.Marshal(g)
	if err == nil {
		in, err = s.all().Put(account(srv), srv.Name, string(text))
	}
	return in, told("keeping", err)
}

// Delete forgets a server's grant, wherever it is. ErrNone says that there was none. If the keyring
// doesn't let a grant go, the error says so, and the next Delete tries again. Its caller has Lock.
func (s *Store) Delete(srv discovery.Server) error {
	return told("forgetting", s.all().Delete(account(srv)))
}

// Lock keeps other processes, and other callers in this one, from changing a server's grant. It
// waits until ctx ends, and a minute at most.
func (s *Store) Lock(ctx context.Context, srv discovery.Server) (unlock func(), err error) {
	return s.all().Lock(ctx, account(srv))
}
