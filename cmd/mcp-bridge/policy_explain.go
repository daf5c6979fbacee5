package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func (a *app) policyTestCmd() *cobra.Command {
	var args string
	cmd := &cobra.Command{
		Use:   "test SERVER.TOOL",
		Short: "Explain what would become of a call: which file, which line, which rule",
		Long: "Explain what would become of a call: which file, which line, which rule.\n" +
			"The server is started only where the verdict depends on what it says of its tool.\n\n" +
			"Exit codes: 0 the call would be made, 3 you would be asked first, 4 it would be refused; 1 failure,\n" +
			"2 wrong usage, or no such server or tool.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTools,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := checkObject(args); args != "" && err != nil {
				return usageError{fmt.Errorf(`--args is a JSON object such as {"path": "/tmp"}%w`, err)}
			}
			return a.withParts(cmd.Context(), once, func(ctx context.Context, p *parts) error {
				return a.policyTest(ctx, p, names[0], cmp.Or(args, "{}"))
			})
		},
	}
	cmd.Flags().StringVar(&args, "args", "", "the arguments as `JSON`, for the limits of their size")
	return cmd
}

// checkObject is what speaks against text being a JSON object, as the end of a sentence.
func checkObject(text string) error {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("; what is given is no JSON: %w", err)
	}
	switch v.(type) {
	case map[string]any:
		return nil
	case []any:
		return errors.New(", not an array")
	case nil:
		return errors.New(", not null")
	}
	return errors.New(", not a single value")
}

func (a *app) policyTest(ctx context.Context, p *parts, name, args string) error {
	if p.broken != nil {
		return p.broken
	}
	s, tool, configured := splitTool(p.catalog, name)
	if one, err := policy.Exact(name); !configured && err == nil {
		s.Name, tool = one.Server, one.Name
	} else if !configured {
		s.Name, tool, _ = strings.Cut(name, ".") // a name with * or ? in it
	}
	if s.Name == "" || tool == "" {
		return usageError{fmt.Errorf("%q is no tool: say SERVER.TOOL; mcp-bridge servers lists the servers", name)}
	}
	d, err := a.verdict(ctx, p, s, tool, configured)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "tool %q of server %q: %s\n  why: %s\n", tool, s.Name, d.Verdict, d.Why())
	granted := false
	if d.Verdict == policy.Ask && configured {
		granted = a.sayGranted(p.grants(), p.grant(s, tool))
	}
	beyond := p.policy.Run().Count(judged(s, tool), len(args))
	if beyond != nil && d.Verdict != policy.Deny {
		fmt.Fprintf(a.stdout, "  but beyond a limit, already as the first call of a run: %v\n", beyond)
	}
	switch why, sure := p.bridge.Catalog().Unreachable(tool, s.Name); {
	case why != "" && sure:
		return usageError{errors.New(why)}
	case why != "":
		fmt.Fprintf(a.stdout, "  but %s\n", why)
	}
	switch {
	case d.Verdict == policy.Deny, beyond != nil:
		return exitError{exitDenied}
	case d.Verdict == policy.Ask && !granted:
		return exitError{exitAsked}
	}
	return nil
}

// verdict is what the policy says of a tool, for which the server is started where its own word counts. What it doesn't list has said
// nothing of itself.
func (a *app) verdict(ctx context.Context, p *parts, s discovery.Server, tool string, configured bool) (policy.Decision, error) {
	if d, ok := p.bridge.Catalog().JudgeMethod(s.Name, tool); ok {
		return d, nil
	}
	t := upstream.Tool{Name: tool}
	if _, hidden := s.HiddenBy(tool); configured && !hidden && p.policy.Hinted(judged(s, tool)) {
		all, err := p.pool.Tools(ctx, s.Name)
		if err != nil {
			return policy.Decision{}, err
		}
		if i := slices.IndexFunc(all, func(t upstream.Tool) bool { return t.Name == tool }); i >= 0 {
			t = all[i]
		}
	}
	return p.bridge.Catalog().Judge(s.Name, t), nil
}

// judged is a tool as the policy knows it.
func judged(s discovery.Server, tool string) policy.Tool {
	return policy.Tool{Server: s.Name, Name: tool, Also: s.Names()[1:]}
}

// sayGranted says whether the user has allowed a tool for good.
func (a *app) sayGranted(all elicit.Grants, g policy.Grant) bool {
	if all == nil {
		return false
	}
	kept, has := all.Granted(g)
	if !has {
		return false
	}
	if changed := kept.Seen.Changed(g.Seen); len(changed) > 0 {
		fmt.Fprintf(a.stdout, "  which you always allow, but its server has changed its %s since: you are asked again\n", strings.Join(changed, " and "))
		return false
	}
	fmt.Fprintln(a.stdout, "  which you always allow: mcp-bridge policy list")
	return true
}
