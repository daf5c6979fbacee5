//go:build !unix

package streamable

// maxConns returns how many connections there may be.
func maxConns() int { return mostConns }
