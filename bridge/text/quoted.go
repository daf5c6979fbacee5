package text

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxBlanks is how many blanks in a row are shown.
const maxBlanks = 3

// blanks matches what is shown as nothing but room.
var blanks = regexp.MustCompile(`[\s\v\x{85}\pZ\x{2800}\x{1D159}\x{16FE4}]+`)

// blankSigns escapes the blanks that strconv.Quote takes for graphic signs.
var blankSigns = strings.NewReplacer("\u2800", `\u2800`, "\U0001d159", `\U0001d159`,
	"\U00016fe4", `\U00016fe4`)

// HasBlank reports whether a character of s is shown as nothing but room.
func HasBlank(s string) bool { return blanks.MatchString(s) }

// Quoted returns s as a string of Go's source. Between its quotes stands, in brackets, how many
// blanks there are where they are too many to show.
func Quoted(s string) string {
	var b strings.Builder
	last := 0
	for _, at := range blanks.FindAllStringIndex(s, -1) {
		run := s[at[0]:at[1]]
		n := utf8.RuneCountInString(run)
		if n <= maxBlanks {
			continue
		}
		with := ""
		if strings.ContainsAny(run, "\n\r\v\f\u0085\u2028\u2029") {
			with = " and line ends"
		}
		fmt.Fprintf(&b, "%s[%d blanks%s]", strconv.Quote(s[last:at[0]]), n, with)
		last = at[1]
	}
	b.WriteString(strconv.Quote(s[last:]))
	return blankSigns.Replace(b.String())
}
