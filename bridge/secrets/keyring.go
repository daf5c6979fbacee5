package secrets

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// service is what the keyring lists our secrets under.
const service = "mcp-bridge"

// keyringWait bounds one operation. A keyring that is locked asks its user, who may be away.
const keyringWait = 10 * time.Second

var errNoAnswer = fmt.Errorf("the keyring did not answer within %v; unlock it, and try again", keyringWait)

// system is the keyring of the operating system: Keychain, Credential Manager, or the Secret
// Service over D-Bus.
type system struct{}

// SystemKeyring returns the operating system's keyring, or nil if none can be reached.
func SystemKeyring() Keyring {
	switch goruntime.GOOS {
	case "darwin", "windows":
		return system{}
	}
	// The library takes the address from the environment only. Without one it may start a bus of its
	// own by dbus-launch, which nothing ends.
	const variable = "DBUS_SESSION_BUS_ADDRESS"
	if address := os.Getenv(variable); address != "" && address != "autolaunch:" {
		return system{}
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		bus := filepath.Join(dir, "bus")
		escaped := strings.ReplaceAll(url.QueryEscape(bus), "+", "%20")
		if info, err := os.Stat(bus); err == nil && info.Mode()&os.ModeSocket != 0 &&
			os.Setenv(variable, "unix:path="+escaped) == nil {
			return system{}
		}
	}
	return nil
}

func (system) Get(account string) (secret string, err error) {
	err = bounded(func() (err error) {
		secret, err = keyring.Get(service, account)
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

func (system) Set(account, secret string) error {
	return bounded(func() error { return keyring.Set(service, account, secret) })
}

func (system) Delete(account string) error {
	return bounded(func() error { return keyring.Delete(service, account) })
}

// bounded runs one operation of a library that has no context. One that hangs keeps its goroutine
// until the bus answers or the process ends. Until then it may take effect, also after a later one.
func bounded(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if errors.Is(err, keyring.ErrNotFound) {
			return ErrNone
		}
		if err != nil {
			return fmt.Errorf("the keyring: %w; see that it runs and is unlocked, and try again", err)
		}
		return nil
	case <-time.After(keyringWait):
		return errNoAnswer
	}
}
