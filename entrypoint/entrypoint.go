// Package entrypoint is both ends of one protocol: the Python guest that runs inside the container, and the Go side of the
// frames that it speaks.
//
// The container's command is Boot: a constant line of Python that reads Source from its standard input and runs it. From then
// on both directions are frames, one JSON object a line (frame.go; Reader and Writer). The guest is two processes: a
// supervisor, which alone holds the frames' descriptors, and the child that runs the code (guest/supervisor.py). The protocol's
// document is testdata/transcripts, which both sides replay.
//
// Nothing that a user or a server provides is ever part of Source: code and metadata are data in a frame. The package knows
// nothing of containers, MCP clients or configuration.
package entrypoint

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// The statuses with which the guest's process ends. With ExitDone it has sent its done; with every other one it says on its
// standard error why it ended.
const (
	ExitDone     = 0
	ExitProtocol = 65 // the host sent a frame that the guest doesn't take
	ExitHostGone = 66 // standard input ended, or standard output was closed
	ExitSilent   = 67 // nothing was heard from the host for Silence
	ExitInternal = 70 // the guest itself failed
)

// The glob, not the folder: of a folder, embed leaves out what begins with "_", and __init__.py with it.
//
//go:embed guest/*.py
var guestFiles embed.FS

//go:embed boot.py
var boot string

// Boot is the command of the container. It is the same for every run; it needs a python3 of version 3.10 or newer.
func Boot() []string {
	return []string{"python3", "-I", "-B", "-c", boot}
}

// Source returns what is to be written to the guest's standard input before any frame: a line of two
// lengths in decimal, and so many bytes of the module that is run first and of all modules. It is the
// same for every run, and shared: don't change it.
func Source() []byte { return source() }

var source = sync.OnceValue(func() []byte {
	boot := module("guest/boot.py")
	return slices.Concat(fmt.Appendf(nil, "%d %d\n", len(boot), len(modules())), boot, modules())
})

// modules is a JSON object of each module's name and text.
func modules() []byte {
	names, err := fs.Glob(guestFiles, "guest/*.py")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := map[string]string{}
	for _, name := range names {
		texts[strings.TrimSuffix(path.Base(name), ".py")] = string(module(name))
	}
	text, err := json.Marshal(texts)
	if err != nil {
		panic(err) // strings always marshal
	}
	return text
}

func module(file string) []byte {
	text, err := guestFiles.ReadFile(file)
	if err != nil {
		panic(err) // all are embedded
	}
	return text
}
