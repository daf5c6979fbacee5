// Package text makes text that others wrote safe to show to people and to models, cuts it without
// splitting a character, and finds the names that a wrong one resembles. It knows nothing of where
// a text comes from.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Safe returns s without the characters that a screen doesn't show or that change how it shows
// others: control and format characters, direction marks, tags, fillers and variation selectors.
// Models read those, and terminals obey them. Line feeds and tabs stay, every other kind of line
// end becomes a line feed, and bytes that aren't UTF-8 become U+FFFD. Joiners and variation
// selectors stay where a script or an emoji needs them.
func Safe(s string) string {
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	each(lineEnds.Replace(s), func(r rune, hidden bool) {
		if !hidden {
			out.WriteRune(r)
		}
	})
	return out.String()
}

// lineEnds are the characters and sequences other than a line feed that may end a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// Line returns s as Safe does, on one line and with single spaces.
func Line(s string) string { return strings.Join(strings.Fields(Safe(s)), " ") }

// Escape returns s with the characters that Safe removes or replaces written as escapes of Go's
// string literals.
func Escape(s string) string {
	return escape(s, func(out *strings.Builder, r rune) {
		switch {
		case r < 0x80:
			fmt.Fprintf(out, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			fmt.Fprintf(out, `\U%08x`, r)
		}
	})
}

// EscapeJSON returns a JSON text that decodes to the same value, in which the characters that Safe
// removes or replaces are escapes.
func EscapeJSON(s string) string {
	return escape(s, func(out *strings.Builder, r rune) {
		if r == '\r' { // it can only stand between values
			out.WriteRune(r)
			return
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(out, `\u%04x`, unit)
		}
	})
}

func escape(s string, write func(*strings.Builder, rune)) string {
	if isPlain(s) {
		return s
	}
	var out strings.Builder
	each(s, func(r rune, hidden bool) {
		if hidden {
			write(&out, r)
		} else {
			out.WriteRune(r)
		}
	})
	return out.String()
}

// isPlain reports whether s is printable ASCII with line feeds and tabs, as most text is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

const (
	zwnj, zwj  = '\u200c', '\u200d'
	vs15, vs16 = '\ufe0e', '\ufe0f' // ask for the text or the emoji form of a symbol
	keycap     = '\u20e3'
)

// each calls do with every character of s and whether it is hidden. What a joiner does depends on
// its neighbours: last is the character shown before it, base the same without combining marks.
func each(s string, do func(r rune, hidden bool)) {
	var last, base rune
	for i, r := range s {
		hidden := false
		switch {
		case r == '\n' || r == '\t' || ' ' <= r && r <= '~':
		case r == zwj || r == zwnj:
			next, _ := utf8.DecodeRuneInString(s[i+len("\u200d"):])
			inScript := last != zwj && last != zwnj && unicode.In(base, joining...)
			inEmoji := r == zwj && emojiEnd(last) && unicode.Is(pictographs, next)
			hidden = !inScript && !inEmoji
		case r == vs15 || r == vs16:
			next, _ := utf8.DecodeRuneInString(s[i+len("\ufe0f"):])
			inKeycap := next == keycap && strings.ContainsRune("0123456789#*", last)
			hidden = !unicode.Is(pictographs, last) && !inKeycap
		case '\u180b' <= r && r <= '\u180f': // forms and joins of Mongolian letters
			hidden = !unicode.Is(unicode.Mongolian, last) || '\u180b' <= last && last <= '\u180f'
		default:
			hidden = unicode.In(r, invisible...) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		}
		do(r, hidden)
		if hidden {
			continue
		}
		last = r
		if !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Me, unicode.Cf) {
			base = r
		}
	}
}

// emojiEnd reports whether an emoji that is joined to another one may end with r.
func emojiEnd(r rune) bool { return r == vs16 || unicode.Is(pictographs, r) }

// invisible are the characters that aren't shown, with Unicode's Default_Ignorable_Code_Point
// among them, and those that are shown but act on a terminal or end a line.
var invisible = []*unicode.RangeTable{
	unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point,
}

// joining are the scripts in which ZWJ and ZWNJ change what is read: the cursive ones, and those
// whose consonants form clusters.
var joining = []*unicode.RangeTable{
	unicode.Adlam, unicode.Arabic, unicode.Hanifi_Rohingya, unicode.Mandaic, unicode.Manichaean,
	unicode.Mongolian, unicode.Nko, unicode.Phags_Pa, unicode.Sogdian, unicode.Syriac,
	unicode.Balinese, unicode.Bengali, unicode.Chakma, unicode.Devanagari, unicode.Grantha,
	unicode.Gujarati, unicode.Gurmukhi, unicode.Javanese, unicode.Kannada, unicode.Khmer,
	unicode.Malayalam, unicode.Meetei_Mayek, unicode.Myanmar, unicode.Newa, unicode.Oriya,
	unicode.Sinhala, unicode.Tamil, unicode.Telugu, unicode.Tibetan, unicode.Tirhuta,
}

// pictographs covers Unicode's Extended_Pictographic, for which package unicode has no table, and
// the skin tones. It may cover more: a symbol to which a selector means nothing looks as before.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00a9, 0x00ae, 5}, {0x203c, 0x2049, 13}, {0x2122, 0x2139, 23}, {0x2190, 0x21ff, 1}, {0x2300, 0x23ff, 1},
		{0x24c2, 0x24c2, 1}, {0x25a0, 0x27bf, 1}, {0x2934, 0x2935, 1}, {0x2b00, 0x2bff, 1},
		{0x3030, 0x303d, 13}, {0x3297, 0x3299, 2},
	},
	R32:         []unicode.Range32{{0x1f000, 0x1faff, 1}},
	LatinOffset: 1,
}
