package discovery

import (
	"path"
	"strings"
	"unicode/utf8"
)

// glob is path.Match for names that aren't paths: * stands for any characters and ? for any one, a slash like all others. It takes
// time in proportion to the product of both lengths at most: after a mismatch only the last star takes one more.
func glob(pattern, name string) (bool, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return false, err
	}
	parts, chars := globParts(pattern), []rune(name)
	p, c, star, from := 0, 0, -1, 0
	for c < len(chars) {
		switch {
		case p < len(parts) && parts[p] == "*":
			star, from = p, c
			p++
		case p < len(parts) && meets(parts[p], chars[c]):
			p, c = p+1, c+1
		case star >= 0:
			from++
			p, c = star+1, from
		default:
			return false, nil
		}
	}
	return strings.Trim(strings.Join(parts[p:], ""), "*") == "", nil
}

// meets says whether a part of a pattern that is about one character is about this one.
func meets(part string, char rune) bool {
	ok, err := path.Match(part, string(char))
	return part == "?" || ok && err == nil
}

// globParts splits a well-formed pattern into stars and what is about one character each.
func globParts(pattern string) (parts []string) {
	for i := 0; i < len(pattern); {
		end := i + 1
		switch pattern[i] {
		case '\\':
			end += runeLen(pattern[end:])
		case '[':
			for pattern[end] != ']' {
				if pattern[end] == '\\' {
					end++
				}
				end++
			}
			end++
		default:
			end = i + runeLen(pattern[i:])
		}
		parts = append(parts, pattern[i:end])
		i = end
	}
	return parts
}

func runeLen(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
