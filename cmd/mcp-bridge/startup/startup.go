// Package startup holds the garbage collector back while the program starts, and knows what the
// system lets the process be. Its import path sorts before those of the libraries that allocate
// most, and packages are initialized in that order (Go specification, "Program initialization"); it
// imports none that sorts behind them, such as golang.org/x/sys.
package startup

import (
	"os"
	"runtime/debug"
	"time"
)

// percent lets the heap grow to 16 MiB, where the default would collect at 4: the packages' own
// initialization allocates more than that, all of which stays. The collection took half of the
// processor time until `initialize` was answered.
const percent = 400

// usual is the collector's percentage from a second after Begin on, which is Go's default.
const usual = 100

// afterwards is how long after its start the program is taken to have started.
const afterwards = time.Second

// A user's GOGC has the last word.
var held = os.Getenv("GOGC") == ""

func init() {
	if held {
		debug.SetGCPercent(percent)
	}
}

// Begin has the collector work as usual again a second from now, and give back what the start left.
func Begin() {
	if held {
		time.AfterFunc(afterwards, func() {
			debug.SetGCPercent(usual)
			debug.FreeOSMemory()
		})
	}
}
