package oauth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// closeWait is how long Close waits for a renewal: a refresh token that is good once may be under
// way.
const closeWait = 3 * time.Second

var (
	// ErrClosed says that a source was closed.
	ErrClosed = errors.New("the logins are closed, as the program ends")

	// ErrOff says that a server's entry wants no login.
	ErrOff = errors.New("its entry says not to log in")
)

// Source logs in, and hands out access tokens from a store and renews them. Its methods may be
// called concurrently.
type Source struct {
	client *Client
	store  *Store
	now    func() time.Time
	ctx    context.Context // of renewals
	cancel context.CancelFunc
	work   sync.WaitGroup // one for each renewal
	last   time.Duration  // closeWait, but in tests

	mu     sync.Mutex
	closed bool
	held   map[string]*held // by account
}

// held is what one server's tokens were when last looked at.
type held struct {
	turn  chan struct{} // holds one while a caller reads or renews; it guards what follows
	grant Grant
	stamp os.FileInfo // of the grant's file, when it was read; nil for none
}

// NewSource returns a source of what a store has.
func NewSource(s *Store) *Source {
	ctx, cancel := context.WithCancel(context.Background())
	return &Source{client: NewClient(), store: s, now: time.Now, ctx: ctx, cancel: cancel, last: closeWait,
		held: map[string]*held{}}
}

// Login asks the user to agree and keeps the grant; in says where.
func (s *Source) Login(ctx context.Context, l Login) (in string, err error) {
	if l.Server.OAuth.Off {
		return "", ErrOff
	}
	if l.Server.OAuth.ClientID != "" {
		l.before, _, _ = s.store.Get(l.Server) // without it the user is asked
	}
	g, err := s.client.Login(ctx, l)
	if err != nil {
		return "", fmt.Errorf("logging in to %q: %w", l.Server.Name, err)
	}
	unlock, err := s.store.Lock(ctx, l.Server)
	if err != nil {
		return "", err
	}
	defer unlock()
	return s.store.Put(l.Server, g)
}

// LoginByPage logs in during a call, with a page as the only place where the user agrees. agree
// shows the page, and fails if the user declines. A login that has a question for the user fails:
// that takes a terminal.
func (s *Source) LoginByPage(ctx context.Context, srv discovery.Server, scope string,
	agree func(ctx context.Context, page, about string) error) error {
	scopes, err := Scopes(scope)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel(nil) // the answer to the page may come before the client's
	_, err = s.Login(ctx, Login{Server: srv, Scopes: scopes, Show: func(page string, p Parties) {
		asking.Go(func() {
			if err := agree(ctx, page, p.String()); err != nil {
				cancel(err)
			}
		})
	}})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Scopes splits names of scopes at spaces and commas.
func Scopes(given ...string) ([]string, error) {
	separates := func(r rune) bool { return r == ',' || unicode.IsSpace(r) }
	all := strings.FieldsFunc(strings.Join(given, " "), separates)
	for _, s := range all {
		// RFC 6749, 3.3
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, fmt.Errorf(`%q can't be the name of a scope: those have no quotes, no \ and only ASCII`, s)
		}
	}
	return all, nil
}

// Close waits for renewals under way, for closeWait at most, and then ends them. Token fails from
// now on.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	defer time.AfterFunc(s.last, s.cancel).Stop()
	s.work.Wait()
	s.cancel()
}

// Token returns an access token for a server, renewed if it is about to end, or an empty one if
// there is no login or it is over. refused is a token that the server has just refused, which is
// renewed instead of handed out again; it may be empty.
//
// Of several callers one renews, and the others wait for it or for the end of their contexts; so do
// other processes. A renewal goes on when its caller has given up: its refresh token may be good
// only once.
func (s *Source) Token(ctx context.Context, srv discovery.Server, refused string) (string, error) {
	h := s.of(srv)
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	// else the user has logged in again, or out
	if h.good(s.now(), refused) && same(h.stamp, s.store.stamp(srv)) {
		defer func() { <-h.turn }()
		return h.grant.AccessToken, nil
	}
	var token string
	done := make(chan error, 1)
	if !s.start(func() {
		var err error
		token, err = s.fetch(srv, h, refused)
		<-h.turn
		done <- err
	}) {
		<-h.turn
		return "", ErrClosed
	}
	select {
	case err := <-done:
		return token, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// start runs f in a goroutine that Close waits for. It reports whether the source is open.
func (s *Source) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
	return !s.closed
}

// fetch returns the token that the store has, renewed if need be. The caller has the turn.
func (s *Source) fetch(srv discovery.Server, h *held, refused string) (string, error) {
	if err := s.look(srv, h); err != nil || h.grant.AccessToken == "" || h.good(s.now(), refused) {
		return h.grant.AccessToken, err
	}
	if h.grant.RefreshToken == "" {
		return "", nil
	}
	if err := s.renew(srv, h, refused); err != nil {
		return "", fmt.Errorf("renewing the login: %w", err)
	}
	return h.grant.AccessToken, nil
}

func (s *Source) of(srv discovery.Server) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := account(srv)
	if s.held[name] == nil {
		s.held[name] = &held{turn: make(chan struct{}, 1)}
	}
	return s.held[name]
}

func (h *held) good(now time.Time, refused string) bool {
	return h.grant.usable(now) && h.grant.AccessToken != refused
}

// look reads what the store has, which may be nothing.
func (s *Source) look(srv discovery.Server, h *held) (err error) {
	h.stamp = s.store.stamp(srv) // before it is read: what comes between is seen the next time
	h.grant, _, err = s.store.Get(srv)
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// same reports whether a file was not replaced.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// renew fetches new tokens, unless another process has done so meanwhile. It keeps them before they
// are used: the old refresh token may no longer be valid.
func (s *Source) renew(srv discovery.Server, h *held, refused string) error {
	unlock, err := s.store.Lock(s.ctx, srv)
	if err != nil {
		return err
	}
	defer unlock()
	if err = s.look(srv, h); err != nil || h.grant.RefreshToken == "" || h.good(s.now(), refused) {
		return err
	}
	g := h.grant
	err = s.client.refresh(s.ctx, &g)
	var refusal *Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == "invalid_grant":
		h.grant = Grant{}
		if err := s.store.Delete(srv); err != nil && !errors.Is(err, ErrNone) {
			return err
		}
		return nil
	case err != nil && refused == "" && s.now().Before(h.grant.Expires):
		return nil // good for a moment yet
	case err != nil:
		h.grant = Grant{}
		return err
	}
	if _, err := s.store.Put(srv, g); err != nil {
		return err
	}
	h.grant, h.stamp = g, s.store.stamp(srv)
	return nil
}

// Logout revokes a server's grant and forgets it. ErrNone says that there was none. If the
// authorization server can't be told, the login is forgotten all the same, and the error says so.
// If the keyring doesn't let it go, it is not: see Store.Delete.
func (s *Source) Logout(ctx context.Context, srv discovery.Server) error {
	unlock, err := s.store.Lock(ctx, srv)
	if err != nil {
		return err
	}
	defer unlock()
	g, _, err := s.store.Get(srv)
	var told error
	if err == nil { // else there isn't one, or only the keyring knows it
		if told = s.client.revoke(ctx, g); told != nil {
			told = fmt.Errorf("the login is forgotten here, and the authorization server could not be told: %w", told)
		}
	}
	if err := s.store.Delete(srv); err != nil {
		return err
	}
	return told
}
