//go:build !linux && !darwin

package runtime

// bootID returns nothing here, so that no bridge is ever called dead: what one leaves ends by its
// own clock.
func bootID() string { return "" }

func startMark(int) string { return "" }

// gone is never asked: see bootID.
func gone(int) bool { return false }
