package text

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxListed is how many names List returns.
const maxListed = 50

// DidYouMean returns, in parentheses, what is most like the wrong name, or "".
func DidYouMean(wrong string, names []string) string {
	near := Nearest(wrong, names)
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(Quote(near), " or ") + "?)"
}

// List returns the names in quotes with commas between them, and of very many the first ones and
// how many more there are.
func List(names []string) string {
	if len(names) > maxListed {
		first := strings.Join(Quote(names[:maxListed]), ", ")
		return fmt.Sprintf("%s and %d more", first, len(names)-maxListed)
	}
	return strings.Join(Quote(names), ", ")
}

// Quote returns each of the names in quotes.
func Quote(names []string) []string {
	q := make([]string, 0, len(names))
	for _, n := range names {
		q = append(q, fmt.Sprintf("%q", n))
	}
	return q
}

// Sentence joins what happened and the next step. Either may be "".
func Sentence(what, next string) string {
	what, next = strings.TrimRight(what, ". "), strings.TrimSpace(next)
	if next == "" {
		return what
	}
	return what + ". Next: " + next
}

// A HintError is an error for a person, with what to do about it.
type HintError struct {
	Err  error
	Next string
}

func (e *HintError) Error() string { return e.Err.Error() }

func (e *HintError) Unwrap() error { return e.Err }

// Hint returns the next step.
func (e *HintError) Hint() string { return e.Next }

// Hint returns the next step that an error names for a person; empty for none.
func Hint(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// Hinted returns the error's text with its next step, where it has a Hint.
func Hinted(err error) string {
	if next := Hint(err); next != "" {
		return Sentence(err.Error(), next)
	}
	return err.Error()
}

// Next returns an error and its next step, where it has a Hint, as attributes of a line in a log.
func Next(err error) []any {
	if next := Hint(err); next != "" {
		return []any{"err", err, "next", next}
	}
	return []any{"err", err}
}

// Seconds returns a duration in seconds without trailing zeros: 30, 0.5.
func Seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// Count returns n with a comma before each three digits.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns a number of things: 1 tool, 2 tools.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "x") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Size returns a number of bytes as a reader wants it.
func Size(n int64) string {
	switch {
	case n < 10_000:
		return Count(n) + " bytes"
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
