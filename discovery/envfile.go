package discovery

import (
	"fmt"
	"path"
	"strings"
)

// maxVariables is how many variables are taken from one file.
const maxVariables = 1000

// envFile adds the variables of the file that an entry names, but for those that the entry sets itself. A relative path counts
// from the directory of the entry's own file, never from the working directory: whoever wrote that must not have the variables
// of a server that the user has set up for all projects.
func (s *scan) envFile(d *definition) refusal {
	if d.envFile == "" {
		return refusal{}
	}
	p := s.places.clean(d.envFile)
	if p == "" {
		p = path.Join(path.Dir(s.places.clean(d.Source.Path)), strings.ReplaceAll(d.envFile, `\`, "/"))
	}
	text, err := s.value(p)
	if err != nil {
		reason, next := unreadable(err, true)
		if missing(err) {
			next = "make it, or take its name out"
		}
		return refusal{"its envFile is " + show(s.places.native(p)) + ", and of that: " + reason, next}
	}
	variables, line := dotenv(text)
	if line > 0 {
		return refusal{fmt.Sprintf("its envFile %s can't be understood at line %d", show(s.places.native(p)), line), "write NAME=value there"}
	}
	for name, value := range variables {
		if _, own := d.Env[name]; !own {
			d.variable(name, value)
		}
	}
	return refusal{}
}

// dotenv is the variables of a file of lines NAME=value, with comments and quotes, or the line that is none. What is in double
// quotes may have escapes; nothing is filled in.
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

// unquoted is a value without its quotes, or without the comment behind it.
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
