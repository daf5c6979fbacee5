package main

import (
	"os"
	"runtime/debug"
)

// softMemory is how large this process may grow, in bytes, before the garbage collector works harder rather than let garbage become
// as much as what is held, which results that code has asked for and doesn't read can make much of. What is held has bounds of its own.
const softMemory = 512 << 20

// boundGarbage sets it, unless the user has set the Go runtime's own variable.
func boundGarbage() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}
