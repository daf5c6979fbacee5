package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// watched is a writer that remembers its first failure: what a command prints is lost where the disk is full or the reader is gone,
// and its prints needn't look at that one by one. It is safe for concurrent use as far as w is.
type watched struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (w *watched) Write(p []byte) (int, error) { return w.through(w.w, p) }

// through writes to a writer that leads to the same place as w's.
func (w *watched) through(to io.Writer, p []byte) (int, error) {
	n, err := to.Write(p)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = err
		}
	}
	return n, err
}

// watching writes to another writer that leads to the same place.
type watching struct {
	*watched
	to io.Writer
}

func (w watching) Write(p []byte) (int, error) { return w.through(w.to, p) }

// lost is why not everything could be written, or nil.
func (w *watched) lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// unprinted is how a command ends whose own error is err, once it is known whether all that it printed was written. An error of its own
// says more; a code with which it ends anyway stays.
func (w *watched) unprinted(err error, stderr io.Writer) error {
	lost := w.lost()
	var ends exitError
	switch {
	case lost == nil:
	case errors.Is(lost, syscall.EPIPE): // who has read enough, as head(1), needs no word of it
		if err == nil || errors.Is(err, lost) {
			return exitError{exitPipe}
		}
	case err == nil, errors.Is(err, lost) && err.Error() == lost.Error(): // that same error, in no words of the command's own
		return lostError{lost}
	case errors.As(err, &ends):
		fmt.Fprintln(stderr, "mcp-bridge: "+lostError{lost}.Error())
	}
	return err
}

// lostError says that not all of what a command has to say was written.
type lostError struct{ err error }

func (e lostError) Error() string {
	return fmt.Sprintf("standard output can't be written, and what is missing there is lost: %v", e.err)
}

func (e lostError) Unwrap() error { return e.err }
