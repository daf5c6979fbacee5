package upstream

import "os"

// pair returns the two ends of a pipe, which no other process can open here.
func pair(input bool) (ours, theirs *os.File, err error) {
	r, w, err := os.Pipe()
	if input {
		return w, r, err
	}
	return r, w, err
}
