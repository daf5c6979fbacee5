package config

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a server's name, in bytes: a model and a person have to read it.
const maxName = 128

// BadName says what is wrong with a server's name, if anything.
func BadName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "its name is empty"
	case len(name) > maxName:
		return "its name is longer than " + strconv.Itoa(maxName) + " bytes"
	case strings.ContainsFunc(name, Hidden):
		return "its name has control or invisible characters"
	}
	return ""
}

// Hidden reports whether a terminal acts on r or doesn't show it. The joiners and selectors that
// scripts and emoji need count as shown.
func Hidden(r rune) bool {
	switch r {
	case ' ', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point)
}

// Display returns a name as messages show it: quoted and cut where it can't be shown as it is.
func Display(name string) string {
	if BadName(name) == "" {
		return name
	}
	if len(name) > maxName {
		cut := maxName
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		return strconv.Quote(name[:cut]) + "…"
	}
	return strconv.Quote(name)
}

// Show returns a path as messages show it.
func Show(path string) string {
	if strings.ContainsFunc(path, Hidden) {
		return strconv.Quote(path)
	}
	return path
}
