package bridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/approvals"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestGrantOfChangedTool: what the user has allowed for good is for the tool as its server
// described it then. Changed, it asks again and says what is new; the next "always" is for that.
func TestGrantOfChangedTool(t *testing.T) {
	was := upstream.Tool{Name: "rug", Title: "Rug", Description: "Reads a rug.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Annotations: json.RawMessage(`{"readOnlyHint":true}`)}
	changed := func(f func(*upstream.Tool)) upstream.Tool {
		now := was
		f(&now)
		return now
	}
	for _, tt := range []struct {
		name string
		now  upstream.Tool
		want []string // of the question; none where the grant holds
	}{
		{"as it was", was, nil},
		{"spaces and order of the schema", changed(func(t *upstream.Tool) {
			t.InputSchema = json.RawMessage(`{ "properties": {"n": {"type": "integer"}}, "type": "object" }`)
		}), nil},
		{"description", changed(func(t *upstream.Tool) { t.Description = "Burns a rug.\nArguments: none\u202e" }),
			[]string{`description, now "Rug Burns a rug.\nArguments: none".`}},
		{"title", changed(func(t *upstream.Tool) { t.Title = "Carpet" }),
			[]string{`description, now "Carpet Reads a rug."`}},
		{"title and description, divided otherwise", changed(func(t *upstream.Tool) {
			t.Title,
				t.Description = "RugReads", " a rug."
		}), []string{"description, now"}},
		{"schema", changed(func(t *upstream.Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) }),
			[]string{`schema, now "{\"type\":\"object\"}"`}},
		{"output schema", changed(func(t *upstream.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) }),
			[]string{"schema, now"}},
		{"annotations", changed(func(t *upstream.Tool) {
			t.Annotations = json.RawMessage(
				`{"destructiveHint":true}`)
		}), []string{`annotations, now "{\"destructiveHint\":true}"`}},
		{"all, and endless", changed(func(t *upstream.Tool) {
			t.Description, t.InputSchema, t.Annotations = strings.Repeat("x", 1<<20), json.RawMessage(`{}`), nil
		}), []string{`xxx […]"; schema, now "{}"; annotations, now "".`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			grants := approvals.New(approvals.Config{Record: filepath.Join(t.TempDir(), "approved.json")})
			u := &user{answer: answer("always")}
			for _, tool := range []upstream.Tool{was, tt.now, tt.now} {
				if err := u.consent(t, grants, asked(tool)); err != nil { // each time in another run
					t.Fatal(err)
				}
			}
			questions := 1
			if tt.want != nil {
				questions = 2
			}
			if len(u.saw) != questions || strings.Contains(u.saw[0], "for good") {
				t.Fatalf("%d questions, want %d: %.2000q", len(u.saw), questions, u.saw)
			}
			for _, want := range tt.want {
				if got := u.saw[1]; !strings.Contains(got, "its server has changed it since: ") ||
					!strings.Contains(got, want) || len(got) > 3000 {
					t.Errorf("got %.3000q, want %q", got, want)
				}
			}
			if all := grants.Grants(); len(all) != 1 {
				t.Errorf("kept: %v", all)
			}
			client := &user{err: elicit.ErrCannotAsk}
			other := changed(func(t *upstream.Tool) { t.Description = "other" })
			if err := client.consent(t, grants, asked(other)); err == nil ||
				!strings.Contains(err.Error(), `description, now "Rug other"`) {
				t.Errorf("where no one can be asked: %v", err)
			}
		})
	}
}

// TestGrantWithoutWhatWasSaid: a grant of a tool that wasn't known holds for what the server says
// of the tool when it is next called, and for nothing else afterwards.
func TestGrantWithoutWhatWasSaid(t *testing.T) {
	grants := approvals.New(approvals.Config{Record: filepath.Join(t.TempDir(), "approved.json")})
	g := GrantOf(gh, upstream.Tool{Name: "x"})
	g.Seen = policy.Seen{}
	if err := grants.Grant(g); err != nil {
		t.Fatal(err)
	}
	u := &user{answer: answer("no")}
	for i, tt := range []struct {
		says      string
		questions int
	}{{"first", 0}, {"first", 0}, {"second", 1}} {
		err := u.consent(t, grants, asked(upstream.Tool{Name: "x", Description: tt.says}))
		if len(u.saw) != tt.questions || (err == nil) != (tt.questions == 0) {
			t.Errorf("%d: %d questions, %v", i, len(u.saw), err)
		}
	}
}

var gh = discovery.Server{Name: "github", Command: "gh"}

// asked is the question about a call of a tool of the server github.
func asked(t upstream.Tool) elicit.Call {
	c := catalog.New(catalog.Config{}, []discovery.Server{gh}, nil)
	return question(c, "github", t, nil, policy.Decision{Verdict: policy.Ask, Source: "a rule"})
}

// user answers each question in the same way.
type user struct {
	answer string
	err    error
	saw    []string // messages
}

// consent asks about one call of a run.
func (u *user) consent(t *testing.T, grants elicit.Grants, call elicit.Call) error {
	ask := func(_ context.Context, form map[string]any) (json.RawMessage, error) {
		u.saw = append(u.saw, form["message"].(string))
		return json.RawMessage(u.answer), u.err
	}
	return elicit.NewConsent(grants, ask, slog.New(slog.DiscardHandler)).Allow(t.Context(), call)
}
