package text

import "unicode/utf8"

// First returns the first n bytes of s, or a little less where that would cut a character.
func First(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Last returns the last n bytes of s, or a little less where that would cut a character.
func Last(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// Brief returns s, or its beginning and "…", n characters in all.
func Brief(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end, count := 0, 0 // where the first n-1 characters end
	for i := range s {
		if count == n-1 {
			end = i
		}
		if count++; count > n {
			return s[:end] + "…"
		}
	}
	return s
}
