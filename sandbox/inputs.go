package sandbox

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// InputDir is where the code finds the files of its Request, and MaxInputs how many bytes they may
// have together.
const (
	InputDir  = "/workspace/in"
	MaxInputs = 64 << 20
)

// An Input is a file that is copied into the container before the code runs.
type Input struct {
	Name string    // unique in the run; one part of a path, at most 255 bytes
	Size int64     // of Data, which may have more: that is not read
	Data io.Reader // read while the run is prepared
}

// inputPiece is how many bytes of a file go in one frame.
const inputPiece = 512 << 10

// sendFiles sends the files of the run to a guest that waits for its execute. An error means that
// one could not be read. A guest that doesn't take them in time, or is gone, is found out by what
// follows.
func (n *session) sendFiles(g *guest) error {
	if len(n.inputs) == 0 {
		return nil
	}
	late := time.AfterFunc(n.sandbox.cfg.StartTimeout, func() { g.cut(errStartTimeout) })
	defer late.Stop()
	buf := make([]byte, inputPiece)
	for _, f := range n.inputs {
		data := io.LimitReader(f.Data, f.Size)
		for left := f.Size; ; {
			size, err := io.ReadFull(data, buf[:min(left, inputPiece)])
			if err != nil {
				return fmt.Errorf("the file %s could not be read whole: %w", f.Name, err)
			}
			frame := entrypoint.File{Type: entrypoint.TypeFile, ID: n.req.ID, Name: f.Name}
			frame.Data = base64.StdEncoding.EncodeToString(buf[:size])
			if err := g.stdin.Write(frame); err != nil {
				n.unsentFrame(err)
				return nil
			}
			if left -= int64(size); left == 0 {
				break
			}
		}
	}
	return nil
}

// held returns the files with all their data in memory.
func held(files []Input) ([]Input, error) {
	if size := inputBytes(files); size > MaxInputs {
		return nil, fmt.Errorf("the files are %d bytes long; at most %d can be copied", size, MaxInputs)
	}
	all := slices.Clone(files)
	for i, f := range all {
		data := make([]byte, f.Size)
		if _, err := io.ReadFull(f.Data, data); err != nil {
			return nil, fmt.Errorf("the file %s could not be read whole: %w", f.Name, err)
		}
		all[i].Data = bytes.NewReader(data)
	}
	return all, nil
}

// inputBytes returns the size of all files together.
func inputBytes(files []Input) (size int64) {
	for _, f := range files {
		size += f.Size
	}
	return size
}
