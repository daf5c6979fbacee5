package output

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngAround    = 12 // bytes of a chunk beside its data: length, type, checksum
)

// pngNeeded are ancillary chunks that the picture needs: its transparency and its animation.
var pngNeeded = map[string]bool{"tRNS": true, "acTL": true, "fcTL": true, "fdAT": true}

// mendPNG returns a PNG without the ancillary chunks whose checksum is wrong, as many viewers read
// it; Go's decoder, and perhaps a model's, refuses the whole image. The picture that the protocol's
// own example server sends (server-everything, get-tiny-image) is one. Chunks that the picture
// needs stay, and so do data whose chunks aren't well-formed up to the end of the image.
func mendPNG(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte(pngSignature)) {
		return data
	}
	var mended []byte
	kept := 0 // data before it is in mended, or was left out
	for at := len(pngSignature); ; {
		rest := data[at:]
		if len(rest) < pngAround {
			return data
		}
		n := uint64(binary.BigEndian.Uint32(rest))
		if n > uint64(len(rest)-pngAround) {
			return data
		}
		size := pngAround + int(n)
		kind := rest[4:8]
		if !isLetters(kind) {
			return data
		}
		if string(kind) == "IEND" {
			break
		}
		ancillary := kind[0]&0x20 != 0 // lower case: PNG, third edition, 5.4
		sum := binary.BigEndian.Uint32(rest[size-4:])
		if ancillary && !pngNeeded[string(kind)] && crc32.ChecksumIEEE(rest[4:size-4]) != sum {
			mended = append(mended, data[kept:at]...)
			kept = at + size
		}
		at += size
	}
	if kept == 0 {
		return data
	}
	return append(mended, data[kept:]...)
}

func isLetters(b []byte) bool {
	for _, c := range b {
		if c |= 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
