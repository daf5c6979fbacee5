package catalog

import "io/fs"

// ours returns true: a user's cache is in the user's profile, which others can't write.
func ours(fs.FileInfo) bool { return true }
