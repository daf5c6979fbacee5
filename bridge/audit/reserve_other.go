//go:build !linux

package audit

import "os"

// reserve does nothing here: a full disk is noticed by the first line that doesn't fit.
func reserve(*os.File, int64, int64) error { return nil }
