package catalog

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed synonyms.txt
var synonymText string

// thesaurus holds what words stand for, stemmed.
type thesaurus struct {
	any map[string][]string // words each of which a word may mean
	all map[string][]string // words that it is short for
}

// synonyms returns the thesaurus of synonyms.txt.
var synonyms = sync.OnceValue(func() thesaurus {
	t := thesaurus{map[string][]string{}, map[string][]string{}}
	for line := range strings.Lines(synonymText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if word, others, ok := strings.Cut(line, ":"); ok {
			t.any[stem(word)] = words(others)
		} else if word, others, ok := strings.Cut(line, " = "); ok {
			t.all[stem(word)] = words(others)
		}
	}
	return t
})
