package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// Prompts are for people: hosts offer them as commands. A model sees one only when its user chooses it.
const (
	serversPrompt = "servers"
	loginPrompt   = "login"
	policyPrompt  = "policy"
)

// addPrompts offers the prompts.
func (b *Bridge) addPrompts() {
	add := func(p mcp.Prompt, say func(args map[string]string) string) {
		b.server.AddPrompt(p, func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult(p.Description, []mcp.PromptMessage{
				mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(say(req.Params.Arguments))),
			}), nil
		})
	}
	add(mcp.NewPrompt(serversPrompt, mcp.WithPromptTitle("Servers"),
		mcp.WithPromptDescription("Which MCP servers code can call, and which of those configured it can't, and why")), b.serversText)
	add(mcp.NewPrompt(loginPrompt, mcp.WithPromptTitle("Log in to a server"),
		mcp.WithPromptDescription("How to log in to a remote MCP server"),
		mcp.WithArgument("server", mcp.ArgumentDescription("The server's name"))), b.loginText)
	add(mcp.NewPrompt(policyPrompt, mcp.WithPromptTitle("Policy"),
		mcp.WithPromptDescription("Which tools code may call, which you are asked about, and which are denied")), b.policyText)
}

// asIs has the model show what the user asked for.
const asIs = "Show me the following as it is. Call no tool.\n\n"

func (b *Bridge) serversText(map[string]string) string {
	var out strings.Builder
	out.WriteString(asIs)
	c := b.catalog()
	fmt.Fprintf(&out, "Code in run_python can call %d MCP servers.\n", len(c.servers))
	b.writeServers(&out, c, true)
	out.WriteString("\nIn a terminal, `mcp-bridge servers` shows from which files they are.\n")
	return out.String()
}

func (b *Bridge) loginText(args map[string]string) string {
	c := b.catalog()
	name := args["server"]
	if name == "" {
		remote := c.remote()
		if len(remote) == 0 {
			return asIs + "There are no remote servers to log in to. `mcp-bridge servers` shows where was looked.\n"
		}
		return asIs + fmt.Sprintf("Remote servers: %s. To log in to one, type this in a terminal: mcp-bridge login SERVER\n", text.List(remote))
	}
	e, ok := c.find(name)
	if !ok {
		return asIs + c.unknown(name, c.servers) + "\n"
	}
	if c.definitions[e.name].URL == "" {
		return asIs + fmt.Sprintf("Server %q is a program on this machine: there is nothing to log in to.\n", text.Line(e.name))
	}
	return asIs + fmt.Sprintf("To log in to %s, type this in a terminal: mcp-bridge login %s\nThe browser opens. The next call of the server uses the login.\n",
		text.Line(e.name), text.ShellWord(e.name))
}

// remote are the names of the servers that are reached by a URL.
func (c *catalog) remote() (names []string) {
	for _, e := range c.servers {
		if c.definitions[e.name].URL != "" {
			names = append(names, e.name)
		}
	}
	return names
}

func (b *Bridge) policyText(map[string]string) string {
	if b.broken != nil {
		return asIs + "No code is run: " + text.Line(text.Hinted(b.broken)) + "\n"
	}
	var out strings.Builder
	out.WriteString(asIs)
	c := b.catalog()
	if path := c.policy.Path(); path == "" {
		out.WriteString("No policy is set: code may call every tool. MCP_BRIDGE_POLICY names a file with one.\n\n")
	} else {
		fmt.Fprintf(&out, "The policy is %s.\n\n", text.Line(path))
	}
	for _, e := range c.servers {
		fmt.Fprintf(&out, "- %s: %s\n", text.Line(e.name), c.verdicts(e))
	}
	out.WriteString("\nIn a terminal, `mcp-bridge policy test SERVER.TOOL` says which line decides, and `mcp-bridge policy list` what you have allowed for good.\n")
	return out.String()
}

// verdicts says what of a server's tools, as far as they are known, may be called.
func (c *catalog) verdicts(e entry) string {
	box := c.shelf.known(e)
	if box == nil {
		return "its tools aren't known yet"
	}
	var asked []string
	for _, t := range box.tools {
		if c.judge(e, t).Verdict == policy.Ask {
			asked = append(asked, t.Name)
		}
	}
	said := fmt.Sprintf("%d allowed", len(box.tools)-len(asked))
	if len(asked) > 0 {
		said += "; you are asked about " + text.List(asked)
	}
	if denied := slices.Sorted(maps.Keys(box.denied)); len(denied) > 0 {
		said += "; denied: " + text.List(denied)
	}
	return said
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
func (c completions) CompletePromptArgument(_ context.Context, prompt string, a mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	if prompt != loginPrompt || a.Name != "server" {
		return beginningWith(a.Value, nil), nil
	}
	return beginningWith(a.Value, c.bridge.catalog().remote()), nil
}

// CompleteResourceArgument proposes runs that handed over files, and names of those, of one run if that is known.
func (c completions) CompleteResourceArgument(_ context.Context, uri string, a mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	var values []string
	for _, f := range c.bridge.kept.Files() {
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
