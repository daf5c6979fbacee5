//go:build !linux && !darwin

package approvals

import (
	"io/fs"
	"os"
	"time"
)

// changed returns when a file was last written. Where that is all there is to see, a time that was
// set back is believed.
func changed(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

func mine(fs.FileInfo) bool { return true }
