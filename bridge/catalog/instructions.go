package catalog

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Bounds of what the instructions say of servers, which every conversation pays for.
const (
	maxPurposeWords  = 10
	maxPurposeLetter = 80  // characters of a purpose
	maxServersCost   = 560 // of all servers together; see cost

	maxInstructionNames = 250 // bytes of JSON of the servers' names
)

//go:embed instructions.txt
var instructions string

// findsTools is what instructions.txt says of search_tools.
const findsTools = " search_tools finds which tools there are and how they are called."

// WithoutSearch returns instructions for a client that has no search_tools.
func WithoutSearch(instructions string) string {
	return strings.Replace(instructions, findsTools, "", 1)
}

// Instructions returns what a host tells its model of the whole bridge.
func (c *Catalog) Instructions() string {
	if len(open(c.servers)) == 0 {
		return instructions + "No servers are configured at present; plain Python works."
	}
	return instructions + fmt.Sprintf(`Servers, in quotes what they say of themselves: %s. `+
		`In code each is mcp_<alias> (its name in lower case, "_" for other characters): mcp_x.tool(key=value). `+
		`mcp_x.resources and mcp_x.prompts have what a server offers besides tools.`, withPurposes(c))
}

// cost estimates what text takes of a context, in quarters of a token.
func cost(s string) (n int) {
	for _, r := range s {
		switch {
		case r == ' ' || 'a' <= r && r <= 'z':
			n++
		case r < utf8.RuneSelf:
			n += 4
		default:
			n += 4 * utf8.RuneLen(r)
		}
	}
	return n
}

// withPurposes returns the servers' names, each with its purpose in brackets as far as there is
// room. Where there is no room for all names, purposes are left out.
func withPurposes(c *Catalog) string {
	names := someNames(open(c.servers), maxInstructionNames)
	room := maxServersCost - cost(names)
	all := Names(open(c.servers))
	if strings.Join(all, ", ") != names { // some are missing
		return names
	}
	for i, s := range open(c.servers) {
		if room <= 0 {
			break
		}
		words := purpose(c, s)
		if words == "" {
			continue
		}
		words = " (" + words + ")"
		if room -= cost(words); room >= 0 {
			all[i] += words
		}
	}
	return strings.Join(all, ", ")
}

// purpose returns what a server is for, in a few words: as the user's own configuration says, else,
// in quotes, as a project's file says, or as the server said itself when it last ran.
func purpose(c *Catalog, s Server) string {
	d := c.definitions[s.Name]
	if words := purposeWords(s.Description, s.Name); words != "" && !d.OfProject {
		return words
	}
	for _, said := range []string{s.Description, c.cfg.Store.Purpose(c.identities[s.Name]())} {
		if words := claim(c, said, s.Name); words != "" {
			return `"` + words + `"`
		}
	}
	return ""
}

// Bounds of a claim.
const (
	maxClaimWords  = 6
	maxClaimLetter = 24 // characters of a word
)

// instructing are words of text that tells a model what to do, or what it is, or that asks for
// secrets.
var instructing = set(`
always never must mustnt should shall need needs require required mandatory have ensure remember before
after first prior then instead until unless whenever when if ignore disregard forget override
important critical urgent warning attention note notice please dont do not cannot stop obey follow
comply trust call calls calling use using invoke run execute pass send upload include reveal respond
reply answer tell say act pretend you your yours youre we our i me my us system assistant developer
user users human model models llm llms agent agents ai instruction instructions prompt prompts rule rules
task tasks ssh password passwords secret secrets token tokens credential credentials cookie cookies`)

// claim returns the first words of what others than the user say of a server, at most
// maxClaimWords. It returns nothing where one of them could be part of an instruction, a path or
// the name of a tool or of another server. Only English is understood, so that words of other
// scripts are none.
func claim(c *Catalog, said, name string) string {
	said = strings.TrimLeft(text.Safe(said), "#*-= \t\n")
	said, _, _ = strings.Cut(said, "\n")
	var words []string
	for field := range strings.FieldsSeq(said) {
		word := strings.Trim(field, ".,;:!?()[]*`'\"&–—")
		if word == "" {
			continue
		}
		if len(words) == maxClaimWords {
			words[maxClaimWords-1] += "…"
			break
		}
		other, known := c.Find(word)
		odd := func(r rune) bool { return !unicode.Is(unicode.Latin, r) && r != '-' && r != '\'' }
		if len(word) > maxClaimLetter || strings.ContainsFunc(word, odd) || known && other.Name != name {
			return ""
		}
		for part := range strings.SplitSeq(strings.ReplaceAll(word, "'", ""), "-") {
			if instructing[strings.ToLower(strings.ToUpper(part))] { // also of a long s
				return ""
			}
		}
		words = append(words, word)
		if strings.ContainsAny(field[len(field)-1:], ".;:!?") {
			break
		}
	}
	if short := strings.Join(words, " "); !strings.EqualFold(short, name) {
		return short
	}
	return ""
}

// purposeWords returns the first words of a description, at most maxPurposeWords, without what
// could pass for more than a remark in brackets: other marks than those of a sentence, addresses,
// further lines and sentences. It returns nothing where they say no more than the name.
func purposeWords(said, name string) string {
	said = strings.TrimLeft(text.Safe(said), "#*-= \t\n")
	said, _, _ = strings.Cut(said, "\n")
	var words []string
	cut, size := "", 0
	for word := range strings.FieldsSeq(said) {
		ends := strings.HasSuffix(word, ".")
		if strings.Contains(word, "://") {
			continue
		}
		word = strings.Trim(strings.Map(wordRune, word), "-_/.,'&+:")
		if word == "" {
			continue
		}
		if size += utf8.RuneCountInString(word) + 1; len(words) == maxPurposeWords || size > maxPurposeLetter {
			cut = "…"
			break
		}
		words = append(words, word)
		if ends {
			break
		}
	}
	short := strings.Join(words, " ")
	if strings.EqualFold(short, name) || short == "" {
		return ""
	}
	return short + cut
}

// wordRune keeps letters, digits and the marks that stand in words.
func wordRune(r rune) rune {
	letter := unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
	if r != utf8.RuneError && (letter || strings.ContainsRune("-_/.,'&+:", r)) {
		return r
	}
	return -1
}
