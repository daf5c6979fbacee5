package identity

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime/filelock"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
)

const (
	// tokenPrefix begins each token, so that scanners for secrets find one.
	tokenPrefix = "mcpb_"

	maxTokenFile = 1 << 20         // bytes
	maxTokens    = 1000            // in a file
	lockWait     = 5 * time.Second // for another command that changes the file
)

// The errors of a token that isn't there, and of one that is there already.
var (
	ErrNoToken = errors.New("there is no such token")
	ErrExists  = errors.New("there is a token of that name")
)

// tokenName is what a token, and so its principal, may be called.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// Tokens are the tokens in a file, of which it has hashes alone: a line for each, with a name, the
// hash, and the day it was made. The file is read again when it has changed. It is safe for
// concurrent use, by several processes too.
type Tokens struct {
	path     string
	reserved []string
	log      *slog.Logger
	begun    atomic.Bool // the file was seen to be there

	mu   sync.Mutex
	read fileState // when the file was read last; the zero value if it wasn't there
	all  []Token
	err  error // why the file can't be used
}

// fileState is what tells whether a file is still as it was read.
type fileState struct {
	info      fs.FileInfo
	changed   time.Time
	untrusted string // who else could have written it, or could replace it; empty for no one
}

func (s fileState) same(o fileState) bool {
	return s.info != nil && o.info != nil && os.SameFile(s.info, o.info) && s.info.Size() == o.info.Size() &&
		s.info.ModTime().Equal(o.info.ModTime()) && s.info.Mode() == o.info.Mode() &&
		s.changed.Equal(o.changed) && s.untrusted == o.untrusted
}

// A Token is what is known of one.
type Token struct {
	Name  string
	Since string // the day it was made, as 2006-01-02; empty where the file doesn't say

	sum [sha256.Size]byte
}

// OpenTokens returns the tokens of a file, which need not be there. No token may have a reserved
// name. A nil log means silence.
func OpenTokens(path string, log *slog.Logger, reserved ...string) *Tokens {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Tokens{path: path, reserved: reserved, log: log}
}

// Path returns the file.
func (t *Tokens) Path() string { return t.path }

// Begun reports whether the file is there, whatever it holds, or was so at an earlier call. One
// that can't be looked for counts as there.
func (t *Tokens) Begun() bool {
	if t.begun.Load() {
		return true
	}
	if _, err := os.Lstat(t.path); !errors.Is(err, fs.ErrNotExist) {
		t.begun.Store(true)
	}
	return t.begun.Load()
}

// Find returns whose a token is. The error is ErrNoToken, or says why the file can't be used. It
// takes the same time for each token that there isn't.
func (t *Tokens) Find(token string) (name string, err error) {
	all, err := t.List()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(token))
	err = ErrNoToken
	for _, known := range all {
		if subtle.ConstantTimeCompare(sum[:], known.sum[:]) == 1 {
			name, err = known.Name, nil
		}
	}
	return name, err
}

// List returns all tokens in the order of their names. The caller doesn't change the slice. A file
// that isn't there has none. Each call looks who could write to the file and to its directories.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.read, t.all, t.err = fileState{}, nil, nil
		return nil, nil
	}
	now := fileState{info: info, changed: changed(t.path)}
	if bad := trust.System().File(t.path); bad != nil {
		now.untrusted = bad.Error()
	}
	if err == nil && now.same(t.read) {
		return t.all, t.err
	}
	before, all, known := t.err, t.all, t.read.info != nil
	t.read = now
	t.all, t.err = t.load()
	switch {
	case t.err != nil:
		t.log.Error("the file of tokens can't be used; no request with one is answered", text.Next(t.err)...)
	case before != nil:
		t.log.Info("the file of tokens can be used again", "tokens", len(t.all))
	case known:
		t.tell(all, info.ModTime())
	}
	return t.all, t.err
}

// Names returns the names of all tokens, in order. It reports false where the file isn't there, or
// can't be used, which says nothing of whose tokens are good.
func (t *Tokens) Names() (names []string, ok bool) {
	all, err := t.List()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || t.read.info == nil {
		return nil, false
	}
	for _, token := range all {
		names = append(names, token.Name)
	}
	return names, true
}

// MayName reports whether a principal is one of those that tokens name, whether or not there is
// one.
func (t *Tokens) MayName(principal string) bool { return t.checkName(principal) == nil }

// tell logs whose tokens are no longer there, and whose weren't there before, since a time. It is
// called with mu held.
func (t *Tokens) tell(before []Token, at time.Time) {
	has := func(all []Token, token Token) bool {
		return slices.ContainsFunc(all, func(o Token) bool { return o.Name == token.Name && o.sum == token.sum })
	}
	for _, token := range before {
		if !has(t.all, token) {
			t.log.Info("a token was revoked", "principal", token.Name, "at", at)
		}
	}
	for _, token := range t.all {
		if !has(before, token) {
			t.log.Info("a token was made", "principal", token.Name, "at", at)
		}
	}
}

// A FileError says why a file of tokens can't be used.
type FileError struct {
	Path string
	Line int // 0 where it is about the whole file
	Err  error
	Fix  string
}

func (e *FileError) Error() string {
	where := e.Path
	if e.Line > 0 {
		where += fmt.Sprintf(", line %d", e.Line)
	}
	return fmt.Sprintf("the tokens in %s can't be used: %v", where, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Hint names the next step for a person.
func (e *FileError) Hint() string { return e.Fix }

// load reads the file, unless others could have written or read it. It is called with mu held.
func (t *Tokens) load() ([]Token, error) {
	bad := func(line int, fix, format string, a ...any) error {
		return &FileError{Path: t.path, Line: line, Err: fmt.Errorf(format, a...), Fix: fix}
	}
	if err := trust.System().File(t.path); err != nil {
		return nil, bad(0, t.untrustedFix(err), "%w", err)
	}
	info, err := os.Stat(t.path)
	switch {
	case err != nil:
		return nil, bad(0, t.readable(), "%w", err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return nil, bad(0, "name a file", "it is not a regular file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, bad(0, "chmod 600 "+t.path, "others may read it (its mode is %#o)", info.Mode().Perm())
	case info.Size() > maxTokenFile:
		return nil, bad(0, "revoke some tokens", "it is longer than %d bytes", maxTokenFile)
	}
	content, err := os.ReadFile(t.path)
	if err != nil {
		return nil, bad(0, t.readable(), "%w", err)
	}
	var all []Token
	for i, line := range strings.Split(string(content), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		token, err := t.parse(fields)
		if err == nil && slices.ContainsFunc(all, func(o Token) bool { return o.Name == token.Name }) {
			err = fmt.Errorf("the name %s is there twice", token.Name)
		}
		if err == nil && len(all) >= maxTokens {
			err = fmt.Errorf("there are more than %d tokens", maxTokens)
		}
		if err != nil {
			return nil, bad(i+1, "correct the line, or take it out", "%w", err)
		}
		all = append(all, token)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// untrustedFix returns the next step after an error of trust.
func (t *Tokens) untrustedFix(err error) string {
	var known *trust.Error
	switch {
	case errors.As(err, &known):
		return known.Hint()
	case errors.Is(err, fs.ErrPermission):
		return t.readable()
	}
	return "let no one else write to it"
}

// readable returns the next step where the file can't be read.
func (t *Tokens) readable() string {
	return "give the user that runs mcp-bridge leave to read " + t.path + " and to enter its directories"
}

// parse reads the fields of a line.
func (t *Tokens) parse(fields []string) (Token, error) {
	if len(fields) < 2 || len(fields) > 3 {
		return Token{}, errors.New("a line is a name and sha256: with a hash in hexadecimal")
	}
	token := Token{Name: fields[0]}
	if err := t.checkName(token.Name); err != nil {
		return Token{}, err
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != len(token.sum) {
		return Token{}, fmt.Errorf("what follows the name %s is no sha256: with 64 hexadecimal digits", token.Name)
	}
	copy(token.sum[:], sum)
	if len(fields) == 3 {
		token.Since = fields[2]
	}
	return token, nil
}

// A NameError says why a token can't have a name.
type NameError struct{ why string }

func (e *NameError) Error() string { return e.why }

// checkName returns a *NameError for a name that a token can't have.
func (t *Tokens) checkName(name string) error {
	switch {
	case !tokenName.MatchString(name):
		return &NameError{fmt.Sprintf("%.80q can't name a token: a name is letters, digits and . _ @ -, "+
			"at most 64, "+
			"and begins with a letter or a digit", name)}
	case slices.Contains(t.reserved, name):
		return &NameError{fmt.Sprintf("the name %s is taken: it means who uses this machine", name)}
	}
	return nil
}

// Add makes a token and returns it. It can't be had again. The error is ErrExists where there is
// one of that name.
func (t *Tokens) Add(name string) (token string, err error) {
	if err := t.checkName(name); err != nil {
		return "", err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	err = t.change(func(all []Token) ([]Token, error) {
		switch {
		case slices.ContainsFunc(all, func(o Token) bool { return o.Name == name }):
			return nil, ErrExists
		case len(all) >= maxTokens:
			return nil, fmt.Errorf("there are %d tokens, which is the limit; revoke one", maxTokens)
		}
		made := Token{Name: name, Since: time.Now().UTC().Format(time.DateOnly), sum: sha256.Sum256([]byte(token))}
		return append(slices.Clone(all), made), nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Revoke removes a token. Bridges refuse it from their next request on. The error is ErrNoToken
// where no token has that name, a *FileError where the file can't be used and no token in it is
// good, else a *text.HintError: the token is still good. The file stays when the last one goes, so
// that no bridge that asks for tokens stops to.
func (t *Tokens) Revoke(name string) error {
	err := t.change(func(all []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(o Token) bool { return o.Name == name })
		if len(left) == len(all) {
			return nil, ErrNoToken
		}
		return left, nil
	})
	if err == nil || errors.Is(err, ErrNoToken) || errors.As(err, new(*FileError)) {
		return err
	}
	return &text.HintError{Err: fmt.Errorf("the token of %s isn't revoked and is still good: %w", name, err),
		Next: "make room, or give leave to write to " + filepath.Dir(t.path) + ", and run the command again; " +
			"until then end the bridges that take the token"}
}

// change replaces the file by one with other tokens.
func (t *Tokens) change(edit func([]Token) ([]Token, error)) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return fmt.Errorf("making the directory of the tokens: %w", err)
	}
	release, err := filelock.Within(context.Background(), lockWait, t.path+".lock")
	if err != nil {
		return err
	}
	defer release()
	all, err := t.List()
	if err != nil {
		return err
	}
	if all, err = edit(all); err != nil {
		return err
	}
	var content bytes.Buffer
	content.WriteString("# tokens of mcp-bridge, as hashes; made by: mcp-bridge token add NAME\n")
	for _, token := range all {
		line := fmt.Sprintf("%s sha256:%x %s", token.Name, token.sum, token.Since)
		content.WriteString(strings.TrimSpace(line) + "\n")
	}
	pattern := filepath.Base(t.path) + ".new-*"
	filelock.Sweep(filepath.Dir(t.path), pattern)
	if err := filelock.Replace(t.path, pattern, content.Bytes()); err != nil {
		return fmt.Errorf("writing the tokens: %w", err)
	}
	return nil
}
