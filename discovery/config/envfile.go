package config

import (
	"fmt"
	"path"
	"strings"
)

// maxVariables bounds how many variables are taken from one file.
const maxVariables = 1000

// envFile adds the variables of the file that an entry names except those that the entry sets
// itself. A relative path counts from the directory of the entry's own file, never from the working
// directory: a project must not set the variables of the user's own servers.
func (e *Entry) envFile(r *Reader) Refusal {
	if e.EnvFile == "" {
		return Refusal{}
	}
	p := r.Clean(e.EnvFile)
	if p == "" {
		p = path.Join(path.Dir(r.Clean(e.Source.Path)), strings.ReplaceAll(e.EnvFile, `\`, "/"))
	}
	text, bad := e.read(r, p)
	if bad.Refused() {
		return Refusal{"its envFile is " + Show(r.Native(p)) + ", and of that: " + bad.Reason, bad.Next}
	}
	variables, line := dotenv(text)
	if line > 0 {
		return Refusal{fmt.Sprintf("its envFile %s can't be understood at line %d", Show(r.Native(p)), line),
			"write NAME=value there"}
	}
	for name, value := range variables {
		if _, own := e.Env[name]; !own {
			e.SetEnv(name, value)
		}
	}
	return Refusal{}
}

// dotenv returns the variables of a file of lines NAME=value, with comments and quotes, or the
// number of the line that isn't one. What is in double quotes may have escapes; nothing is filled
// in.
func dotenv(text string) (variables map[string]string, bad int) {
	variables = map[string]string{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		n++
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || badVariable(name) || strings.ContainsAny(name, " \t\"'") || len(variables) >= maxVariables {
			return nil, n
		}
		if variables[name], ok = unquoted(strings.TrimSpace(value)); !ok {
			return nil, n
		}
	}
	return variables, 0
}

// unquoted returns a value without its quotes, or without the comment behind it.
func unquoted(value string) (string, bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		if i := strings.Index(value, " #"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
		return value, true
	}
	inner := value[1:]
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == value[0]:
			rest := strings.TrimSpace(inner[i+1:])
			return b.String(), rest == "" || rest[0] == '#'
		case c == '\\' && value[0] == '"' && i+1 < len(inner):
			i++
			b.WriteString(strings.NewReplacer("n", "\n", "t", "\t", "r", "\r").Replace(inner[i : i+1]))
		default:
			b.WriteByte(c)
		}
	}
	return "", false // it isn't closed
}
