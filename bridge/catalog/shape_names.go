package catalog

import "strings"

// Bounds of what passes for the name of a field. Others are ids, hashes, dates, addresses, paths
// and people's names.
const (
	maxFieldName   = 40
	maxFieldWord   = 20 // letters of a word in it
	maxFieldDigits = 2
	minHex         = 8 // letters from which on what could be hexadecimal is taken for it
	minToken       = 9 // letters from which on words of next to no letters each are a token's
)

// isFieldName reports whether a key looks like the name of a field in snake_case, camelCase or
// kebab-case, and not like data. A name begins with a lower-case letter or "_". It is safe to show:
// it has ASCII letters, digits, "_" and "-" only.
func isFieldName(key string) bool {
	if key == "" || len(key) > maxFieldName || key[0] != '_' && (key[0] < 'a' || key[0] > 'z') {
		return false
	}
	digits, humps, word, hex := 0, 1, 0, true
	for i := range len(key) {
		c := key[i]
		switch {
		case c >= 'a' && c <= 'z':
			word++
		case c >= 'A' && c <= 'Z':
			word++
			if i > 0 && key[i-1] >= 'a' && key[i-1] <= 'z' {
				humps, word = humps+1, 1
			}
		case c >= '0' && c <= '9':
			digits++
		case c == '_' || c == '-':
			if word > 0 {
				humps++
			}
			word = 0
		default:
			return false
		}
		if word > maxFieldWord {
			return false
		}
		hex = hex && strings.IndexByte("0123456789abcdefABCDEF-", c) >= 0
	}
	letters := len(key) - digits
	switch {
	case digits > maxFieldDigits, letters < 1, hex && len(key) >= minHex:
		return false
	case len(key) >= minToken && len(key) < 3*humps: // aGVsbG8gd29ybGQ
		return false
	}
	return true
}
