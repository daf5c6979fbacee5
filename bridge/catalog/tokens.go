package catalog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// DefinitionTokens estimates how many tokens the definitions of a server's tools take of the
// context of a host that loads them: of each its name, as most hosts give it, its description and
// the schema of its arguments. It counts as the vocabulary o200k_base does, within 5 %,
// or 40 tokens of few tools (TestDefinitionTokens). Other models' vocabularies take more or less.
func DefinitionTokens(server string, tools []upstream.Tool) (n int) {
	for _, t := range tools {
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		var shown bytes.Buffer
		enc := json.NewEncoder(&shown)
		enc.SetEscapeHTML(false)
		err := enc.Encode(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}{"mcp__" + server + "__" + t.Name, t.Description, schema})
		if err == nil { // a schema that is no JSON reaches no model
			n += Tokens(string(bytes.TrimSpace(shown.Bytes()))) + 1 // "mcp" is two
		}
	}
	return n
}

// AnnouncedTokens estimates how many tokens the names of a server's tools take, a line each.
func AnnouncedTokens(server string, tools []upstream.Tool) int {
	var names strings.Builder
	for _, t := range tools {
		names.WriteString("mcp__" + server + "__" + t.Name + "\n")
	}
	return Tokens(names.String()) + 5*len(tools)/3 // "mcp" is two, and names have rarer words
}

// piece matches what such vocabularies cut a text into before they look for tokens: words, which
// begin with a capital where one follows small letters, with the mark or blank before them, numbers
// of three digits, marks and blanks. It takes most of a millisecond to compile, so it isn't at each
// start.
var piece = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^\r\n\pL\pN]?\p{Lu}*[\p{Ll}\p{Lm}\p{Lo}\pM]+|[^\r\n\pL\pN]?\p{Lu}+|` +
		`\pN{1,3}| ?[^\s\pL\pN]+[\r\n/]*|\s+`)
})

// maxMarks bounds what a row of marks takes: long ones are of one mark, and few tokens.
const maxMarks = 10

// Tokens estimates how many tokens a text takes.
func Tokens(text string) int {
	n := 0
	for _, p := range piece().FindAllString(text, -1) {
		n += hundredths(p)
	}
	return n / 100
}

// hundredths estimates what a piece takes, in hundredths of a token: the averages of its kind in
// the definitions of thirteen servers.
func hundredths(piece string) int {
	first, _ := utf8.DecodeRuneInString(piece)
	last, _ := utf8.DecodeLastRuneInString(piece)
	n := 100
	switch {
	case unicode.IsNumber(last), unicode.IsSpace(last):
	case !unicode.IsLetter(last) && !unicode.IsMark(last): // marks
		n = max(n, 96*(min(len(piece), maxMarks)-3))
		if len(piece) == 4 {
			n = 123
		}
	case unicode.IsLetter(first), first == ' ':
		n += 3 + 4*max(0, len(piece)-11)
	case first == '_':
		n += 4 + 6*max(0, len(piece)-8)
	default:
		n += 6 * max(0, len(piece)-3)
	}
	return n + 33*(len(piece)-utf8.RuneCountInString(piece)) // other letters than English has
}
