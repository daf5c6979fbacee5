package main

import (
	"errors"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
)

// audit opens the file that the user names; nil where there is none. That it can't be written now doesn't keep the bridge from
// serving: each run is refused with the reason, until it can.
func (c config) audit() (*audit.Log, error) {
	if c.Audit == "" {
		return nil, nil
	}
	path, err := filepath.Abs(c.Audit)
	if err != nil {
		return nil, err
	}
	l, err := audit.Open(audit.Config{Path: path, Arguments: bool(c.AuditArguments)})
	var unwritable *audit.Error
	if errors.As(err, &unwritable) {
		err = nil
	}
	return l, err
}
