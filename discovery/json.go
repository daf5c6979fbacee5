package discovery

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// get is the value of the last member of that name, as in every JSON reader of a host; nil if there is none.
func get(o *hujson.Object, key string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if nameOf(o.Members[i]) == key {
			return &o.Members[i].Value
		}
	}
	return nil
}

// count is how many members have that name.
func count(o *hujson.Object, key string) (n int) {
	for _, m := range o.Members {
		if nameOf(m) == key {
			n++
		}
	}
	return n
}

func nameOf(m hujson.ObjectMember) string {
	lit, _ := m.Name.Value.(hujson.Literal)
	if len(lit) >= 2 && bytes.IndexByte(lit, '\\') < 0 { // most names, and there may be very many
		return string(lit[1 : len(lit)-1])
	}
	return lit.String()
}

func stringOf(v *hujson.Value) (string, bool) {
	if v == nil {
		return "", false
	}
	lit, ok := v.Value.(hujson.Literal)
	if !ok || lit.Kind() != '"' {
		return "", false
	}
	return lit.String(), true
}

// optional is a member that has to be a string if it is there; null counts as not there.
func optional(o *hujson.Object, key string) (string, bool) {
	v := get(o, key)
	if k := kind(v); k == "nothing" || k == "null" {
		return "", true
	}
	return stringOf(v)
}

// kind is what messages call a value. It shows nothing of it but true, false and null.
func kind(v *hujson.Value) string {
	if v == nil {
		return "nothing"
	}
	switch v.Value.(type) {
	case *hujson.Object:
		return "an object"
	case *hujson.Array:
		return "an array"
	}
	switch v.Value.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't':
		return "true"
	case 'f':
		return "false"
	}
	return "null"
}

// maxName bounds a server's name, in bytes: a model and a person have to read it.
const maxName = 128

// badName says what is wrong with a server's name, if anything.
func badName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "its name is empty"
	case len(name) > maxName:
		return "its name is longer than " + strconv.Itoa(maxName) + " bytes"
	case strings.ContainsFunc(name, hidden):
		return "its name has control or invisible characters"
	}
	return ""
}

// hidden reports whether a terminal acts on r or doesn't show it. The joiners and selectors that
// scripts and emoji need count as shown.
func hidden(r rune) bool {
	switch r {
	case ' ', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	}
	return !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// display is a name as messages show it: as it is, or quoted and cut where that can't be shown.
func display(name string) string {
	if badName(name) == "" {
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

// show is a path as messages show it.
func show(path string) string {
	if strings.ContainsFunc(path, hidden) {
		return strconv.Quote(path)
	}
	return path
}
