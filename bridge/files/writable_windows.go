package files

// writable returns nil: on Windows only writing tells.
func writable(string) error { return nil }
