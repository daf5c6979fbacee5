// Command mcp-bridge is one MCP server that runs Python in locked-down containers and lets it call
// the user's other servers.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/mcp-bridge/mcp-bridge/bridge/fixture"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/startup"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
)

func main() {
	startup.Begin()
	startup.Hide()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) //nolint:forbidigo // this is main
}

// run runs the program, and returns the code with which the process ends.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{frames: stdout, io: &terminal.Streams{In: stdin, Out: terminal.New(stdout),
		Err: terminal.New(stderr), Open: terminal.Open}}
	ctx, stop := untilSignal(context.Background(), a.interrupts.Takes)
	defer stop()
	// Without this, a write to a client that is gone would end the process before it cleans up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	context.AfterFunc(ctx, func() { a.endAtOnce(stop) })
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.io.Out)
	root.SetErr(a.io.Err)
	err := a.unprinted(root.ExecuteContext(ctx))
	if err == nil {
		return exit.OK
	}
	if ctx.Err() != nil {
		return exit.Interrupted // whatever else the error is
	}
	if code, ok := errors.AsType[exit.Error](err); ok {
		return code.Code
	}
	fmt.Fprintln(a.io.Err, "mcp-bridge: "+err.Error())
	if next := text.Hint(err); next != "" {
		fmt.Fprintln(a.io.Err, "next: "+next)
		return exit.Unavailable
	}
	if errors.As(err, new(exit.UsageError)) {
		return exit.Misused
	}
	return exit.Failed
}

// A signalError is the cause of a context that a signal has ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return "ended by the signal " + e.signal.String() }

// Is makes it a cancellation.
func (signalError) Is(target error) bool { return target == context.Canceled }

// errInterrupt is the cause of a context that SIGINT has ended.
var errInterrupt = signalError{os.Interrupt}

// ending returns the signals that end the program. A hang-up isn't one where it is ignored, as by
// nohup(1).
func ending() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
}

// interrupted reports whether SIGINT has ended a context of untilSignal.
func interrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errInterrupt) }

// untilSignal returns a context that ends with the first signal to end the program, of those that
// takes doesn't report to have another effect. stop ends it, too, and gives signals their usual
// effect again.
func untilSignal(parent context.Context, takes func(os.Signal) bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	signal.Notify(came, ending()...)
	go func() { // ends with ctx
		for {
			select {
			case s := <-came:
				if takes(s) {
					continue
				}
				cancel(signalError{s})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(nil)
	}
}

// endAtOnce lets the next signal end the process; the watchdog cleans up. Serve, which was told to
// end and does, then ends with code 0: Claude Code logs a failure of a server that its second
// signal kills.
func (a *app) endAtOnce(usual func()) {
	if !a.serving.Load() {
		usual()
		return
	}
	next := make(chan os.Signal, 1)
	signal.Notify(next, ending()...)
	usual()
	go func() { // until the process ends
		<-next
		os.Exit(exit.OK) //nolint:forbidigo // the process was told to end, and its watchdog cleans up
	}()
}

// unprinted returns how a command ends whose own error is err, once it is known whether all that it
// printed was written. An error of its own says more; a code with which it ends anyway stays.
func (a *app) unprinted(err error) error {
	lost := a.io.Out.Err()
	switch {
	case lost == nil:
	case errors.Is(lost, syscall.EPIPE): // the reader, such as head(1), has enough
		if err == nil || errors.Is(err, lost) {
			return exit.With(exit.Pipe)
		}
	case err == nil, errors.Is(err, lost) && err.Error() == lost.Error(): // the same error, without more words
		return lostError{lost}
	case errors.As(err, new(exit.Error)):
		fmt.Fprintln(a.io.Err, "mcp-bridge: "+lostError{lost}.Error())
	}
	return err
}

// lostError says that not all of what a command has to say was written.
type lostError struct{ err error }

func (e lostError) Error() string {
	return fmt.Sprintf("standard output can't be written, and what is missing there is lost: %v", e.err)
}

func (e lostError) Unwrap() error { return e.err }

// thirdParty is the licences and notices of what is in this program; TestThirdParty holds it fresh.
//
//go:embed THIRD_PARTY
var thirdParty string

// thirdPartyKubernetes is those of what the build tag kubernetes adds.
var thirdPartyKubernetes string

func versionCmd(a *app) *cobra.Command {
	var licenses bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or the licences of what the program contains",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			if licenses {
				fmt.Fprint(a.io.Out, thirdParty, thirdPartyKubernetes)
				return
			}
			fmt.Fprintln(a.io.Out, "mcp-bridge", version())
		},
	}
	cmd.Flags().BoolVar(&licenses, "licenses", false,
		"print the licences and notices of the modules in this program")
	return cmd
}

// version returns what Go put into the binary: the module's version, or the revision it was built
// from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}

// manCmd writes the manual pages, for packagers.
func manCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same program writes the same pages
			header := doc.GenManHeader{Title: "MCP-BRIDGE", Section: "1", Source: "mcp-bridge " + version()}
			return doc.GenManTree(root, &header, args[0])
		},
	}
}

func demoServerCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "demo-server [github]",
		Short:     "Serve a made-up shop over MCP, or a made-up GitHub repository, to try the bridge with",
		Hidden:    true,
		ValidArgs: []string{"github"},
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return fixture.ServeScript(cmd.Context(), a.io.In, a.frames, fixture.GitHub)
			}
			err := fixture.Serve(cmd.Context(), a.io.In, a.frames)
			if own, ok := errors.AsType[*fixture.ExitError](err); ok {
				return exit.With(own.Code)
			}
			return err
		},
	}
}
