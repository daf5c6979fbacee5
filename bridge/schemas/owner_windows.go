package schemas

import "io/fs"

// ours is true of everything: a user's cache is in the user's profile, which others can't write.
func ours(fs.FileInfo) bool { return true }
