package wheels

import (
	"embed"
	"fmt"
)

// locks has the locks of the environment data, which scripts/locks makes.
//
//go:embed data/*.toml
var locks embed.FS

// DataLock returns the lock of the environment data for ip.
func DataLock(ip Interpreter) (*Lock, error) {
	major, minor, err := numbers(ip.Version)
	if err != nil {
		return nil, err
	}
	text, err := locks.ReadFile(fmt.Sprintf("data/pylock.data-cp%d%d-%s.toml", major, minor, ip.Machine))
	if err != nil {
		return nil, fmt.Errorf("there is no lock of data for %s, only for CPython 3.11 to 3.14 on x86_64 and"+
			" aarch64", ip)
	}
	return Parse(text)
}
