package hibernation

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// A file is magic, a salt, and chunks. A chunk is its length in four bytes, and what AES-256-GCM
// makes of its text. Its nonce is its number and whether it is the last one, so chunks can be
// neither moved, left out nor added. The key is derived from the user's key, the salt and the
// file's name: no two files have the same, and none counts under another's name.
const (
	magic    = "mcp-bridge sandbox 1\n"
	saltSize = 32
	headSize = len(magic) + saltSize
	maxChunk = 1 << 20 // bytes of text
)

// KeySize is that of a key, in bytes.
const KeySize = 32

// errDamaged says that a file isn't what was written with this key.
var errDamaged = errors.New("its file is damaged, or was written with another key")

// cipherFor returns the cipher of a file.
func cipherFor(key, salt []byte, name string) (cipher.AEAD, error) {
	own, err := hkdf.Key(sha256.New, key, salt, magic+name, KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(own)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce returns the nonce of a chunk.
func nonce(n uint64, last bool) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint64(b, n)
	if last {
		b[11] = 1
	}
	return b
}

// A sealer writes a file. Close must be called, or what was written is no whole file.
type sealer struct {
	w    io.Writer
	aead cipher.AEAD
	n    uint64 // chunks so far
}

func newSealer(w io.Writer, key []byte, name string) (*sealer, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	aead, err := cipherFor(key, salt, name)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(append([]byte(magic), salt...))
	return &sealer{w: w, aead: aead}, err
}

// Write writes p in chunks of its own.
func (s *sealer) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		text := p[n:min(n+maxChunk, len(p))]
		if err = s.chunk(text, false); err == nil {
			n += len(text)
		}
	}
	return n, err
}

// Close writes the last chunk, which is empty. It doesn't close the file.
func (s *sealer) Close() error { return s.chunk(nil, true) }

func (s *sealer) chunk(text []byte, last bool) error {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(text)+s.aead.Overhead()))
	b = s.aead.Seal(b, nonce(s.n, last), text, nil)
	s.n++
	_, err := s.w.Write(b)
	return err
}

// An opener reads what a sealer has written. It returns nothing that wasn't sealed, and no EOF
// before the end that was.
type opener struct {
	r    io.Reader
	aead cipher.AEAD
	n    uint64
	text []byte // of the chunk under way
	over bool
}

func newOpener(r io.Reader, key []byte, name string) (*opener, error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return nil, errDamaged
	}
	aead, err := cipherFor(key, head[len(magic):], name)
	return &opener{r: r, aead: aead}, err
}

// chunk returns the next chunk, or io.EOF after the last one.
func (o *opener) chunk() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(o.r, size[:]); err != nil {
		return nil, errDamaged
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n < o.aead.Overhead() || n > maxChunk+o.aead.Overhead() {
		return nil, errDamaged
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(o.r, b); err != nil {
		return nil, errDamaged
	}
	last := n == o.aead.Overhead() // no other chunk is empty
	text, err := o.aead.Open(b[:0], nonce(o.n, last), b, nil)
	if err != nil {
		return nil, errDamaged
	}
	o.n++
	if !last {
		return text, nil
	}
	if m, _ := o.r.Read(size[:]); m != 0 {
		return nil, errDamaged
	}
	return nil, io.EOF
}

// Read implements io.Reader.
func (o *opener) Read(p []byte) (n int, err error) {
	if o.over {
		return 0, io.EOF
	}
	if len(o.text) == 0 {
		if o.text, err = o.chunk(); err != nil {
			o.over = errors.Is(err, io.EOF)
			return 0, err
		}
	}
	n = copy(p, o.text)
	o.text = o.text[n:]
	return n, nil
}
