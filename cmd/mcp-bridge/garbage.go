package main

import (
	"os"
	"runtime/debug"
)

// softMemory is how large this process may grow, in bytes, before the garbage collector works harder rather than let garbage become
// as much as what is held, which results that code has asked for and doesn't read can make much of. It is above what one run may hold of these, and all runs together (sandbox), so that the collector comes to rest.
const softMemory = 768 << 20

// boundGarbage sets it, unless the user has set the Go runtime's own variable.
func boundGarbage() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
}
