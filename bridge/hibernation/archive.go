package hibernation

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of what is unpacked. A sandbox's files take less.
const (
	maxEntries = 10_000
	maxBytes   = 144 << 20
	maxName    = 4096
	maxBatch   = 4 << 20 // bytes of files that are handed on at a time
)

// Unpack hands on what an archive of a sandbox has, in archives of a few megabytes: regular files,
// large ones in parts of which each goes on where the one before it ended, then links, then
// directories, the innermost first, so that nothing is written through a link or into a directory
// that may not be written to. What hostile code has made of the archive ends with an error: nothing
// else, no name outside of the directory, no more than a sandbox holds.
func Unpack(archive io.Reader, give func([]byte) error) error {
	b := batches{give: give}
	var links, folders []tar.Header
	total := int64(0)
	r := tar.NewReader(archive)
	for entries := 0; ; entries++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unreadable(err)
		}
		name := path.Clean(h.Name)
		total += h.Size
		switch {
		case path.IsAbs(name), name == ".", name == "..", strings.HasPrefix(name, "../"),
			strings.ContainsRune(h.Name+h.Linkname, 0), len(h.Name) > maxName, len(h.Linkname) > maxName:
			return fmt.Errorf("it has a file outside of its directory: %.100q", h.Name)
		case entries >= maxEntries, h.Size < 0, total > maxBytes:
			return errors.New("it has more than a sandbox holds")
		}
		clean := tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o777,
			ModTime: h.ModTime.Truncate(time.Second), Format: tar.FormatGNU}
		switch h.Typeflag {
		case tar.TypeReg:
			if err := b.file(clean, r, h.Size); err != nil {
				return err
			}
		case tar.TypeSymlink:
			clean.Linkname = h.Linkname
			links = append(links, clean)
		case tar.TypeDir:
			folders = append(folders, clean)
		default:
			return fmt.Errorf("it has something that is no file, directory or link: %.100q", h.Name)
		}
	}
	slices.Reverse(folders) // each comes after what it is in
	for _, h := range append(links, folders...) {
		if err := b.add(h, nil); err != nil {
			return err
		}
	}
	return b.flush()
}

// batches collects what is handed on at a time.
type batches struct {
	give func([]byte) error
	buf  bytes.Buffer
	w    *tar.Writer
}

// file adds a file, in parts if it is large.
func (b *batches) file(h tar.Header, r io.Reader, size int64) error {
	for {
		part := make([]byte, min(size, maxBatch))
		if _, err := io.ReadFull(r, part); err != nil {
			return unreadable(err)
		}
		size -= int64(len(part))
		one := h
		if size > 0 {
			one.Mode = 0o600 // more is to be added
		}
		if err := b.add(one, part); err != nil || size == 0 {
			return err
		}
	}
}

func (b *batches) add(h tar.Header, data []byte) error {
	if b.buf.Len() > 0 && b.buf.Len()+len(data) > maxBatch {
		if err := b.flush(); err != nil {
			return err
		}
	}
	if b.w == nil {
		b.w = tar.NewWriter(&b.buf)
	}
	h.Size = int64(len(data))
	err := b.w.WriteHeader(&h)
	if err == nil {
		_, err = b.w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("%.100q can't be put into an archive: %w", h.Name, err)
	}
	return nil
}

func (b *batches) flush() error {
	if b.w == nil {
		return nil
	}
	err := b.w.Close()
	if err == nil {
		err = b.give(b.buf.Bytes())
	}
	b.buf.Reset()
	b.w = nil
	return err
}

// unreadable returns why an archive can't be read.
func unreadable(err error) error {
	if errors.Is(err, errDamaged) {
		return err
	}
	return fmt.Errorf("its archive can't be read: %w", err)
}
