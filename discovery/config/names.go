package config

import (
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
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
	case hidden(name):
		return "its name has control or invisible characters"
	}
	return ""
}

// hidden reports whether a text has characters that a screen doesn't show, or doesn't show on one
// line.
func hidden(s string) bool { return strings.ContainsAny(s, "\n\t") || text.Escape(s) != s }

// Display returns a name as messages show it: quoted and cut where it can't be shown as it is.
func Display(name string) string {
	cut := text.First(name, maxName)
	switch {
	case BadName(name) == "":
		return name
	case cut != name:
		return quote(cut) + "…"
	}
	return quote(name)
}

// Show returns a path as messages show it.
func Show(path string) string {
	if hidden(path) {
		return quote(path)
	}
	return path
}

func quote(s string) string { return text.Escape(strconv.Quote(s)) }
