package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
)

// How much a word counts by where it stands.
const (
	weightName        = 5
	weightServer      = 2
	weightTitle       = 3
	weightParameter   = 1.5
	weightDescription = 1
	weightNotes       = 0.4 // descriptions of parameters
)

// How much a word of the query counts by how it is like a word of the tool.
const (
	likeSame   = 1.0
	likePrefix = 0.7
	likeTypo   = 0.6
)

const (
	saturation   = 1.5     // how soon further occurrences of a word count no more: the k1 of BM25
	maxWords     = 2000    // of one tool that are looked at
	maxIndexed   = 50_000  // of all tools of a server; beyond, a tool is found by the first words of its name
	maxNameWords = 10      // which are these
	maxQuery     = 20      // words of a query that are looked at
	maxTypos     = 5       // of these, the first, that are compared with the words they are not
	wholeName    = 20.0    // for a query that is a tool's name
	maxText      = 8 << 10 // bytes of one text that are looked at
)

// indexedTool is a tool by the weights of its words.
type indexedTool struct {
	tool  upstream.Tool
	name  string // folded, with and without its server's
	full  string
	words map[string]float64
	room  int // for further words
}

func index(b *toolbox) []indexedTool {
	out := make([]indexedTool, 0, len(b.tools))
	left := maxIndexed
	for _, t := range b.tools {
		i := indexedTool{tool: t, name: fold(t.Name), full: fold(b.server.name + t.Name), words: map[string]float64{},
			room: max(min(left, maxWords), maxNameWords)}
		i.add(t.Name, weightName)
		i.add(t.Title, weightTitle)
		i.add(b.server.name, weightServer)
		i.add(t.Description, weightDescription)
		i.addParameters()
		left -= len(i.words)
		out = append(out, i)
	}
	return out
}

func (t *indexedTool) add(text string, weight float64) {
	for _, w := range words(text) {
		if len(t.words) < t.room || t.words[w] > 0 {
			t.words[w] += weight
		}
	}
}

func (t *indexedTool) addParameters() {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(t.tool.InputSchema) > maxSchema || json.Unmarshal(t.tool.InputSchema, &schema) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if len(t.words) >= t.room {
			return
		}
		t.add(name, weightParameter)
		var property struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(schema.Properties[name], &property) == nil {
			t.add(property.Description, weightNotes)
		}
	}
}

type hit struct {
	box   *toolbox
	tool  upstream.Tool
	score float64
}

// search gives the tools that fit the query, best first, at most limit of them. It is the same for the same tools. Its error is
// that of ctx, whose end it minds between words and between tools.
func search(ctx context.Context, query string, boxes []*toolbox, limit int) ([]hit, error) {
	asked := asked(query)
	whole := fold(query)
	counts, total, err := countWords(ctx, boxes)
	if err != nil {
		return nil, err
	}
	alike := make([]map[string]float64, len(asked))
	for i, word := range asked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		alike[i] = likeWords(word, counts, i < maxTypos)
	}
	var hits []hit
	for _, b := range boxes {
		for _, t := range b.indexed() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			score := t.score(alike, counts, total)
			if whole != "" && (whole == t.name || whole == t.full) {
				score += wholeName
			}
			if score > 0 {
				hits = append(hits, hit{b, t.tool, math.Round(score*1000) / 1000})
			}
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.box.server.name, b.box.server.name), strings.Compare(a.tool.Name, b.tool.Name))
	})
	return hits[:min(len(hits), limit)], nil
}

// asked are the words of a query, each of them once.
func asked(query string) []string {
	var out []string
	for _, w := range words(query) {
		if len(out) < maxQuery && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// countWords says in how many tools each word is, and how many tools there are.
func countWords(ctx context.Context, boxes []*toolbox) (counts map[string]int, total float64, err error) {
	counts = map[string]int{}
	for _, b := range boxes {
		for _, t := range b.indexed() {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			total++
			for w := range t.words {
				counts[w]++
			}
		}
	}
	return counts, total, nil
}

// score adds up what each word of the query finds; rare words count more, and so do tools that have all of them.
func (t *indexedTool) score(alike []map[string]float64, counts map[string]int, total float64) float64 {
	sum, found := 0.0, 0
	for _, candidates := range alike {
		best := 0.0
		consider := func(word string, like, weight float64) {
			if like > 0 && weight > 0 {
				n := float64(counts[word])
				rarity := math.Log(1 + (total-n+0.5)/(n+0.5))
				best = max(best, like*rarity*weight*(saturation+1)/(weight+saturation))
			}
		}
		if len(candidates) <= len(t.words) {
			for word, like := range candidates {
				consider(word, like, t.words[word])
			}
		} else {
			for word, weight := range t.words {
				consider(word, candidates[word], weight)
			}
		}
		sum += best
		if best > 0 {
			found++
		}
	}
	if found == 0 {
		return 0
	}
	return sum * math.Sqrt(float64(found)/float64(len(alike)))
}

// likeWords are the words of the tools that a word of the query may mean. Typing errors are looked for only where the word itself
// is nowhere, and if they are asked for.
func likeWords(word string, counts map[string]int, typos bool) map[string]float64 {
	found := map[string]float64{}
	if counts[word] > 0 {
		found[word] = likeSame
	}
	for other := range counts {
		if other != word && (len(word) >= 3 && strings.HasPrefix(other, word) || len(other) >= 4 && strings.HasPrefix(word, other)) {
			found[other] = likePrefix
		}
	}
	if len(found) > 0 || len(word) < 4 || !typos {
		return found
	}
	allowed := 1 + len(word)/8
	for other := range counts {
		if abs(len(other)-len(word)) <= allowed && distance(word, other) <= allowed+swapped(word, other) {
			found[other] = likeTypo
		}
	}
	return found
}

func abs(n int) int { return max(n, -n) }

// swapped is 1 for words that differ by two letters in each other's place, which a distance counts twice.
func swapped(a, b string) int {
	if len(a) != len(b) {
		return 0
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return 1
	}
	return 0
}

// empty words say nothing of what a tool does.
var empty = strings.Fields(`a an and are as at be by can do does for from how i if in into is it its me my of on or that the their this to
want we what when which will with you your`)

// words are the words of a text, in lower case and without their endings; names in camelCase or snake_case are several.
func words(text string) []string {
	text = text[:min(len(text), maxText)]
	var out []string
	var word []rune
	end := func() {
		if w := stem(strings.ToLower(string(word))); w != "" && !slices.Contains(empty, w) {
			out = append(out, w)
		}
		word = word[:0]
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		lowerNext := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && lowerNext) {
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}

// stem takes off the commonest English endings: what is left need not be a word.
func stem(w string) string {
	for _, ending := range []struct{ from, to string }{
		{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"ings", ""}, {"ing", ""}, {"ed", ""}, {"s", ""},
	} {
		if rest, ok := strings.CutSuffix(w, ending.from); ok && len(rest) >= 3 && !strings.HasSuffix(w, "ss") {
			w = rest + ending.to
			break
		}
	}
	if len(w) > 4 { // create, creates, created, creating
		w = strings.TrimSuffix(w, "e")
	}
	return w
}
