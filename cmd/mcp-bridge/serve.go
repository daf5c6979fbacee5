package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime/seccomp"
)

func (a *app) serveCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over stdio; what a host runs",
		Long:  "Serve MCP over standard input and output until the input ends.\n\nVariables:\n" + describeVariables(),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
}

func (a *app) serve(ctx context.Context) error {
	a.serving.Store(true)
	return a.withParts(ctx, serving, func(ctx context.Context, p *parts) error {
		p.tell(nil)
		if os.Geteuid() == 0 && !p.cfg.AllowRootful {
			p.log.Warn("this is root, whose engine is rootful: no code will be run; run mcp-bridge as an ordinary user")
		}
		if p.cfg.AllowRootful {
			p.log.Warn("MCP_BRIDGE_ALLOW_ROOTFUL is set: a flaw in a rootful engine would hand over the machine")
		}
		if p.cfg.Seccomp != seccomp.Strict {
			p.log.Warn("MCP_BRIDGE_SECCOMP is set: the engine's filter of system calls is not the strict one", "filter", p.cfg.Seccomp)
		}
		p.warnOfFiles()
		p.warnOfPolicy()
		p.log.Info("serving", "version", version(), "servers", len(p.catalog.Servers), "not_used", len(p.catalog.Problems))
		if held := p.heldNames(); len(held) > 0 {
			p.log.Warn("servers are not started before you approve them: they are new, or have changed, where code could have written them", "servers", held)
		}
		if a.atTerminal() {
			a.say("mcp-bridge: waiting for an MCP client on standard input; Ctrl-C ends")
		}
		defer p.follow(ctx)()
		err := p.bridge.Serve(ctx, a.stdin, a.frames)
		if errors.Is(err, context.Canceled) {
			return nil // a signal: that is how one ends it
		}
		return err
	})
}

func describeVariables() string {
	var b strings.Builder
	t := reflect.TypeFor[config]()
	i := 0
	for name := range fieldsOf(t) {
		tag := t.Field(i).Tag
		i++
		def := tag.Get("default")
		if def != "" {
			def = " (default " + def + ")"
		}
		fmt.Fprintf(&b, "  %-34s %s%s\n", name, tag.Get("desc"), def)
	}
	return b.String()
}
