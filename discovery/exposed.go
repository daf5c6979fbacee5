package discovery

import (
	"errors"

	"github.com/mcp-bridge/mcp-bridge/trust"
)

// lookOnce returns owners that remember what they have looked at: most files are below the same few
// directories.
func lookOnce(o trust.Owners) trust.Owners {
	type looked struct {
		entry trust.Entry
		err   error
	}
	look, seen := o.Look, map[string]looked{}
	if look != nil {
		o.Look = func(path string) (trust.Entry, error) {
			l, ok := seen[path]
			if !ok {
				l.entry, l.err = look(path)
				seen[path] = l
			}
			return l.entry, l.err
		}
	}
	return o
}

// others returns what an error of the file's owners means.
func (s *scan) others(err error) (reason, next string) {
	var bad *trust.Error
	if !errors.As(err, &bad) {
		return "it can't be told who could have written it: " + err.Error(), "move it to a directory of your own"
	}
	_, _ = s.stat(bad.Path) // for who watches the files: once it is mended there, the file counts
	return "others could have written it: " + show(bad.Path) + " " + bad.Why, show(bad.Hint())
}

// exposedError is what is wrong with a file that others could have written.
type exposedError struct{ refusal }

func (e *exposedError) Error() string { return e.reason }
