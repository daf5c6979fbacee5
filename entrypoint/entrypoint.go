// Package entrypoint is both ends of one protocol: the Python guest that runs inside the container,
// and the Go side of the frames that it speaks.
//
// The container's command is Boot: a constant line of Python that reads Source from its standard
// input and runs it. From then on both directions are frames, one JSON object a line (frame.go;
// Reader and Writer). The guest is two processes: a supervisor, which alone holds the frames'
// descriptors, and the child that runs the code (guest/supervisor.py). The protocol's document is
// testdata/transcripts, which both sides replay.
//
// Nothing that a user or a server provides is ever part of Source: code and metadata are data in a
// frame. The package knows nothing of containers, MCP clients or configuration.
package entrypoint

import (
	"bytes"
	"compress/zlib"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// The statuses with which the guest's process ends. With ExitDone it has sent its done; with every
// other one it says on its standard error why it ended.
const (
	ExitDone     = 0
	ExitProtocol = 65 // the host sent a frame that the guest doesn't take
	ExitHostGone = 66 // standard input ended, or standard output was closed
	ExitSilent   = 67 // nothing was heard from the host for Silence
	ExitInternal = 70 // the guest itself failed
)

// The glob, not the folder: of a folder, embed leaves out what begins with "_", and __init__.py
// with it.
//
//go:embed guest/*.py
var guestFiles embed.FS

//go:embed boot.py
var boot string

// Boot returns the command of the container, which needs a python3 of version 3.10 or newer. It is
// the same for every run with the same packages; e is nil for the standard library alone. It reads
// before it writes, and answers an empty line with one.
func Boot(e *Environment) []string {
	command := []string{"python3", "-I", "-B", "-c", boot}
	if e == nil {
		return command
	}
	order, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return append(command, string(order))
}

// Compiler returns a command that reads Source from its standard input and writes, in one line, the
// code that the container's Python compiles from it, for SourceWith.
func Compiler() []string {
	return []string{"python3", "-I", "-B", "-c", compiler}
}

const compiler = `import json, marshal, sys
from binascii import b2a_base64
from importlib.util import MAGIC_NUMBER
from zlib import compress, decompress
stdin = sys.stdin.buffer
boot, sources, _ = map(int, stdin.readline().split())
stdin.read(boot)
code = {}
for n, s in json.loads(decompress(stdin.read(sources))).items():
    code[n] = compress(marshal.dumps(compile(s, "<guest>/%s.py" % n, "exec", dont_inherit=True)))
sys.stdout.write(b2a_base64(MAGIC_NUMBER + marshal.dumps(code)).decode())
`

// SourceWith returns Source together with the code in the line that Compiler wrote in a container
// of the same image. A guest of another Python ignores that code. It fails when the line is not one
// that Compiler writes.
func SourceWith(line []byte) ([]byte, error) {
	code, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(line)))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the guest's code, %d bytes, is not what the compiler writes: %w", len(line), err)
	case len(code) == 0:
		return nil, errors.New("the compiler has written nothing")
	}
	return payload(code), nil
}

// Source returns what is to be written to the guest's standard input before any frame: a line of
// three lengths in decimal, and as many bytes of the module that is run first, of all modules, and
// of code compiled from them, of which there isn't one here. It is the same for every run, and
// shared: don't change it.
func Source() []byte { return source() }

var source = sync.OnceValue(func() []byte { return payload(nil) })

func payload(code []byte) []byte {
	boot, modules := module("guest/boot.py"), modules()
	head := fmt.Appendf(nil, "%d %d %d\n", len(boot), len(modules), len(code))
	return slices.Concat(head, boot, modules, code)
}

// modules is a JSON object of each module's name and text, compressed.
var modules = sync.OnceValue(func() []byte {
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
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, werr := w.Write(text)
	if err := errors.Join(werr, w.Close()); err != nil {
		panic(err) // a buffer takes all
	}
	return packed.Bytes()
})

func module(file string) []byte {
	text, err := guestFiles.ReadFile(file)
	if err != nil {
		panic(err) // all are embedded
	}
	return text
}
