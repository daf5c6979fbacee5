//go:build !linux && !darwin

package approvals

import (
	"io/fs"
	"time"
)

// changed returns when a file was last written. Where that is all there is to see, a time that was
// set back is believed.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }

func mine(fs.FileInfo) bool { return true }
