package sandbox

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
)

// Home is the directory that the code of a sandbox begins in.
const Home = "/workspace"

// MaxPiece bounds a Piece, and what Unpack takes.
const MaxPiece = 8 << 20

// Piece is a part of a tar archive.
type Piece struct {
	Data []byte
	Left []File // what the whole archive leaves out; Type is "too_large", "too_many", "denied" or "other"
	More bool   // there are bytes after these
}

// Pack returns the bytes from offset on, MaxPiece at most, of a tar archive of what is below a
// directory. Pieces are parts of one archive while nothing in the directory changes. All of it is
// the guest's word, as what it writes to a file is. The error may be a *FileError.
func (k *Kept) Pack(ctx context.Context, path string, offset int64) (Piece, error) {
	n, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesPack, Path: path, Offset: offset, Limit: MaxPiece})
	if err != nil {
		return Piece{}, err
	}
	p := Piece{Data: n.data.bytes, More: n.done.More}
	for _, e := range n.done.Entries[:min(len(n.done.Entries), MaxListed)] {
		p.Left = append(p.Left, File{Name: n.short(e.Name), Type: n.short(e.Type), Size: e.Size})
	}
	return p, nil
}

// Unpack adds what a tar archive has to a directory: directories, regular files and symbolic links.
// A file that is there goes on where it ends. The error may be a *FileError.
func (k *Kept) Unpack(ctx context.Context, path string, archive []byte) error {
	if len(archive) > MaxPiece {
		return fmt.Errorf("sandbox: an archive of %d bytes is more than can be unpacked at a time", len(archive))
	}
	_, err := k.files(ctx, entrypoint.Files{Op: entrypoint.FilesUnpack, Path: path,
		Data: base64.StdEncoding.EncodeToString(archive)})
	return err
}
