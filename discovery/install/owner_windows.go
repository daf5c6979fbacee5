package install

import (
	"io/fs"
	"os"
)

// own reports true: the system says who may write.
func own(fs.FileInfo) bool { return true }

// keepGroup does nothing: a new file gets the permissions of its directory.
func keepGroup(*os.File, fs.FileInfo) error { return nil }
