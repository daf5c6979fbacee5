package bridge

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/schemas"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestPurposeWords(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"a sentence", "Manages issues. Also pulls.", "Manages issues"},
		{"ten words", "one two three four five six seven eight nine ten eleven", "one two three four five six seven eight nine ten…"},
		{"long words", strings.Repeat("a", 70) + " " + strings.Repeat("b", 70), strings.Repeat("a", 70) + "…"},
		{"one very long word", strings.Repeat("a", 100), ""},
		{"a heading", "# My server\n\nDoes things.", "My server"},
		{"marks", "reads) `files`: <b>all</b> \"of\" them", "reads files ball/b of them"},
		{"a line break and directions", "one \u202etwo\x1b[31m\u2028three", "one two31m"},
		{"an address", "see https://evil.example/x for more", "see for more"},
		{"the name", "GH", ""},
		{"nothing", " \n ", ""},
		{"only marks", "*** ()", ""},
		{"others' letters", "问题 и задачи", "问题 и задачи"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := purposeWords(tc.text, "gh"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestInstructionsSayPurposes: of the configuration, else of what the server said when it last ran;
// never where there are too many servers to name all.
func TestInstructionsSayPurposes(t *testing.T) {
	servers := []discovery.Server{
		{Name: "anvil", Command: "a", Description: "Issues and pulls"},
		{Name: "bolt", Command: "b"},
		{Name: "cog", Command: "c"},
	}
	saved := schemas.Open(t.TempDir())
	if err := saved.Save(schemas.Key(servers[1]), schemas.List{Purpose: "Sends\tmail for you. More."}); err != nil {
		t.Fatal(err)
	}
	got := instructions(newCatalog(servers, nil, nil, saved, newStarts(nil, nil).held))
	if want := ": anvil (Issues and pulls), bolt (Sends mail for you), cog. In code"; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	var many []discovery.Server
	for range 100 {
		many = append(many, discovery.Server{Name: "server" + strings.Repeat("x", len(many)), Description: "Issues and pulls"})
	}
	if got := instructions(newCatalog(many, nil, nil, saved, newStarts(nil, nil).held)); strings.Contains(got, "Issues") || !strings.Contains(got, " more. In code") {
		t.Errorf("got %s", got)
	}
}
