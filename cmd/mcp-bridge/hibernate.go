package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/secrets"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
)

// hibernation returns how sandboxes are saved before they end; nil if they aren't.
func (p *parts) hibernation() (*sandboxes.Hibernation, error) {
	if p.cfg.Hibernate == "" {
		return nil, nil
	}
	store, err := hibernation.Open(hibernation.Config{Dir: filepath.Clean(p.cfg.Hibernate),
		Key: func(mayMake bool) ([]byte, error) { return hibernationKey(p.log, mayMake) }, Log: p.log})
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("MCP_BRIDGE_HIBERNATE: %w", err))
	}
	return &sandboxes.Hibernation{Store: store, Log: p.log, Environment: p.chooser.Named}, nil
}

// hibernationKey returns the user's key of saved sandboxes: from the keyring, or where there is
// none from a file of mode 0600. If there is no key yet it makes one, or returns
// hibernation.ErrNoKey.
func hibernationKey(log *slog.Logger, mayMake bool) ([]byte, error) {
	dir := stateDir()
	if dir == "" {
		return nil, errors.New("there is no place to keep it; set HOME or XDG_STATE_HOME")
	}
	const name = "hibernation"
	store := &secrets.Store{Dir: filepath.Join(dir, "keys"), Keyring: secrets.SystemKeyring()}
	account := secrets.Account(name)
	unlock, err := store.Lock(context.Background(), account)
	if err != nil {
		return nil, err
	}
	defer unlock()
	text, in, err := store.Get(account)
	if errors.Is(err, secrets.ErrNone) {
		if !mayMake {
			return nil, hibernation.ErrNoKey
		}
		key := make([]byte, hibernation.KeySize)
		_, _ = rand.Read(key) // never fails
		text = base64.StdEncoding.EncodeToString(key)
		in, err = store.Put(account, name, text)
	}
	if err != nil {
		return nil, err
	}
	if in == secrets.InFile {
		log.Warn("the key of saved sandboxes is in a file, since there is no keyring that takes it",
			"file", store.File(account))
	}
	return base64.StdEncoding.DecodeString(text)
}
