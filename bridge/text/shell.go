package text

import "strings"

// ShellWord returns s as one word of a POSIX shell, for a command that a person types.
func ShellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@/:-"
	if s != "" && strings.Trim(s, plain) == "" { // all of it was trimmed
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
