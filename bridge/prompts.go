package bridge

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Prompts are for people: hosts offer them as commands. A model sees one only when its user chooses
// it.
const (
	serversPrompt = "servers"
	loginPrompt   = "login"
	policyPrompt  = "policy"
)

// addPrompts offers the prompts.
func (b *Bridge) addPrompts() {
	add := func(p mcp.Prompt, say func(c *catalog.Catalog, args map[string]string) string) {
		b.server.AddPrompt(p, func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			said := say(b.Catalog().For(requestOf(ctx).Principal()), req.Params.Arguments)
			return mcp.NewGetPromptResult(p.Description, []mcp.PromptMessage{
				mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(said)),
			}), nil
		})
	}
	add(mcp.NewPrompt(serversPrompt, mcp.WithPromptTitle("Servers"),
		mcp.WithPromptDescription(
			"Which MCP servers code can call, and which of those configured it can't, and why")),
		func(c *catalog.Catalog, _ map[string]string) string { return c.ServersPrompt() })
	add(mcp.NewPrompt(loginPrompt, mcp.WithPromptTitle("Log in to a server"),
		mcp.WithPromptDescription("How to log in to a remote MCP server"),
		mcp.WithArgument("server", mcp.ArgumentDescription("The server's name"))),
		func(c *catalog.Catalog, args map[string]string) string { return c.LoginPrompt(args["server"]) })
	add(mcp.NewPrompt(policyPrompt, mcp.WithPromptTitle("Policy"),
		mcp.WithPromptDescription("Which tools code may call, which you are asked about, and which are denied")),
		func(c *catalog.Catalog, _ map[string]string) string {
			broken := ""
			if err := b.policyError(); err != nil {
				broken = text.Hinted(err)
			}
			return c.PolicyPrompt(broken)
		})
}

// completions propose values for arguments.
type completions struct{ bridge *Bridge }

var (
	_ server.PromptCompletionProvider   = completions{}
	_ server.ResourceCompletionProvider = completions{}
)

// maxCompletions is how many values MCP has at most.
const maxCompletions = 100

// CompletePromptArgument proposes the servers that one can log in to.
func (c completions) CompletePromptArgument(
	_ context.Context, prompt string, a mcp.CompleteArgument, _ mcp.CompleteContext,
) (*mcp.Completion, error) {
	if prompt != loginPrompt || a.Name != "server" {
		return beginningWith(a.Value, nil), nil
	}
	return beginningWith(a.Value, c.bridge.Catalog().Remote()), nil
}

// CompleteResourceArgument proposes runs that handed over files, and names of those, of one run if
// that is known.
func (c completions) CompleteResourceArgument(
	ctx context.Context, uri string, a mcp.CompleteArgument, known mcp.CompleteContext,
) (*mcp.Completion, error) {
	var values []string
	for _, f := range c.bridge.outputs.of(ctx).Files() {
		switch {
		case uri != output.FileTemplate:
		case a.Name == "run":
			values = append(values, f.Run)
		case a.Name == "name" || a.Name == "+name":
			if run := known.Arguments["run"]; run == "" || run == f.Run {
				values = append(values, f.Name)
			}
		}
	}
	return beginningWith(a.Value, values), nil
}

// beginningWith returns the values that begin so, each once, in their order.
func beginningWith(beginning string, values []string) *mcp.Completion {
	found := []string{}
	for _, v := range values {
		if strings.HasPrefix(v, beginning) && !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	shown := found[:min(len(found), maxCompletions)]
	return &mcp.Completion{Values: shown, Total: len(found), HasMore: len(shown) < len(found)}
}
