package catalog

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// maxText is how many bytes of one text are looked at.
const maxText = 8 << 10

// empty words say nothing of what a tool does.
var empty = set(`a about all also am an and any are as at be by can could do does each etc for from had
has have how i if in into is it its just like may me my of on onto or our out please should some
somebody than that the their them then there these this those to us used using via want was we were
what when which while who will with would you your`)

func set(text string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		words[w] = true
	}
	return words
}

// words returns the words of a text in lower case, stemmed and without the empty ones. Names in
// camelCase, snake_case and with dashes are several words.
func words(s string) []string {
	s = text.First(s, maxText)
	var out []string
	var word []rune
	end := func() {
		if w := strings.ToLower(string(word)); w != "" && !empty[w] {
			out = append(out, stem(w))
		}
		word = word[:0]
	}
	runes := []rune(s)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			lowerNext := i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !pluralAt(runes, i+1)
			if unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && lowerNext {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return out
}

// pluralAt reports whether an s stands there at the end of a word, as in PRs and URLs.
func pluralAt(runes []rune, i int) bool {
	last := i+1 == len(runes) || !unicode.IsLetter(runes[i+1]) && !unicode.IsDigit(runes[i+1])
	return runes[i] == 's' && last
}

// summary returns the first sentence or line of a description, and what follows it.
func summary(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	for i, r := range text {
		if r == '\n' || r == '.' && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\n') {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// endings are those of English plurals and verbs, the first that fits.
var endings = []struct{ from, to string }{
	{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"},
	{"ings", ""}, {"ing", ""}, {"ied", "y"}, {"ed", ""}, {"s", ""},
}

// minStem is how many letters a stem keeps at least.
const minStem = 3

// stem takes off the commonest English endings, so that create, creates, created and creating are
// one. What is left need not be a word.
func stem(w string) string {
	for _, ending := range endings {
		rest, ok := strings.CutSuffix(w, ending.from)
		least := minStem
		if ending.from == "s" { // PRs
			least--
		}
		if !ok || len(rest)+len(ending.to) < least || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us") {
			continue
		}
		w = rest + ending.to
		break
	}
	if len(w) > minStem+1 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// fold returns the same text for names that differ only in case, spaces, dots, dashes and
// underscores.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '.', '-', '_', '/', ':':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

//go:embed synonyms.txt
var synonymText string

// synonyms returns the words of synonyms.txt, stemmed, with those that each may mean.
var synonyms = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(synonymText) {
		if word, meanings, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			all[stem(word)] = words(meanings)
		}
	}
	return all
})
