package secrets

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestKeyringStartsNoBus: the bus in the runtime directory is asked, wherever that is, and none is
// started, which would be left behind.
func TestKeyringStartsNoBus(t *testing.T) {
	for _, address := range []string{"", "autolaunch:"} {
		dir, err := os.MkdirTemp("", "run +é") //nolint:usetesting // a socket's path must be short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		started := filepath.Join(dir, "started")
		script := "#!/bin/sh\necho >" + `"` + started + `"`
		if err := os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		t.Setenv("XDG_RUNTIME_DIR", dir)
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
		if SystemKeyring() != nil {
			t.Error("there is a keyring without a bus")
		}
		bus, err := net.Listen("unix", filepath.Join(dir, "bus"))
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32
		done := make(chan struct{})
		go func() { // ends with bus
			defer close(done)
			for {
				c, err := bus.Accept()
				if err != nil {
					return
				}
				asked.Add(1)
				_ = c.Close()
			}
		}()
		k := SystemKeyring()
		if k == nil {
			t.Fatal("there is no keyring")
		}
		if _, err := k.Get("someone"); err == nil {
			t.Error("a bus that hangs up has a secret")
		}
		_ = bus.Close()
		<-done
		if _, err := os.Stat(started); !errors.Is(err, fs.ErrNotExist) || asked.Load() == 0 {
			t.Errorf("address %q: dbus-launch: %v; the bus was asked %d times", address, err, asked.Load())
		}
	}
}
