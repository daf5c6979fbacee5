package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/args"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/exit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/settings"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/terminal"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

type runOptions struct {
	code    string
	file    string // what tracebacks call the code
	servers []string
	timeout string
	files   string
	json    bool
}

func runCmd(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [FILE|-]",
		Short: "Run Python in a container, as run_python would",
		Long: "Run Python in a container, as run_python would.\n" +
			"Without FILE and -c the code is read from standard input, unless that is a terminal.",
		Example: "  mcp-bridge run -c 'print(1)'\n  echo 'print(1)' | mcp-bridge run\n  mcp-bridge run " +
			"script.py --timeout 10\n" +
			"  mcp-bridge run --server github - < script.py",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.source(cmd, &o, args); err != nil {
				return exit.Usage(err)
			}
			return a.run(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.code, "code", "c", "", "the code itself")
	f.StringArrayVar(&o.servers, "server", nil,
		"a server that the code may call; repeat for more (default: all; '' for none)")
	_ = cmd.RegisterFlagCompletionFunc("server",
		func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeServers(cmd, nil, typed)
		})
	f.StringVar(&o.timeout, "timeout", "", "the code's own time, such as 10 or 10s")
	f.StringVar(&o.files, "artifacts", "",
		"a directory to write the files into that the code hands over; no file there is replaced")
	_ = cmd.MarkFlagDirname("artifacts") // it fails only for a flag that isn't there
	f.BoolVar(&o.json, "json", false, "print one JSON object with everything there is to know of the run")
	return cmd
}

var errNoCode = errors.New("no code: name a file, - for standard input, or use -c CODE")

// source sets the code of o, from -c, a file or standard input, and the name that Python itself
// would give it in a traceback.
func (a *app) source(cmd *cobra.Command, o *runOptions, args []string) (err error) {
	given := cmd.Flags().Changed("code")
	switch {
	case given && len(args) > 0:
		return errors.New("there is code in -c and in a file: give one of them")
	case given:
		o.file = "<string>"
		return nil
	case len(args) == 0 && a.io.AtTerminal():
		return errNoCode
	case len(args) == 0 || args[0] == "-":
		o.file = "<stdin>"
		o.code, err = readCode(cmd.Context(), a.io.In)
		if err == nil && len(args) == 0 && strings.TrimSpace(o.code) == "" {
			err = errNoCode
		}
		return err
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	o.file = args[0]
	o.code, err = readCode(cmd.Context(), f)
	return err
}

// maxCode is more than a run takes, so that its own error is the one to be seen.
const maxCode = 64 << 20

// readCode reads until the end of r or of ctx. A read that is under way then is left behind: the
// program is about to end.
func readCode(ctx context.Context, r io.Reader) (string, error) {
	type result struct {
		code []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(r, maxCode))
		done <- result{b, err}
	}()
	select {
	case got := <-done:
		return string(got.code), got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (a *app) run(cmd *cobra.Command, o runOptions) error {
	printed := terminal.NewCodeOutput(a.io.Out.Code(), a.io.Err.Code())
	d := bridge.Direct{Code: o.code, File: o.file, Ask: a.asker(printed),
		Progress: func(line string) { a.io.Say("mcp-bridge: " + line) }}
	if o.timeout != "" {
		var s settings.Seconds
		if err := s.Decode(o.timeout); err != nil || s <= 0 {
			return exit.Usage(fmt.Errorf("--timeout %s: it must be a positive number of seconds such as 10",
				o.timeout))
		}
		d.Timeout = time.Duration(s)
	}
	if cmd.Flags().Changed("server") {
		d.Servers = []string{}
		for _, s := range o.servers {
			if s != "" {
				d.Servers = append(d.Servers, s)
			}
		}
	}
	if !o.json {
		d.Output = func(c sandbox.Chunk) { printed.Take(c.Stream, c.Text) }
	}
	return withParts(cmd.Context(), a.io.Err, once, func(ctx context.Context, p *parts) error {
		p.tellListed()
		r, err := p.bridge.RunDirect(ctx, d)
		if wrong := args.Error(""); errors.As(err, &wrong) {
			return exit.Usage(err)
		}
		if err != nil {
			return err
		}
		return a.report(o, r)
	})
}

// asker returns a function that asks on the terminal whether a call may be made, or nil where
// standard input is no terminal.
func (a *app) asker(printed *terminal.CodeOutput) func(context.Context, string) (bool, error) {
	if !a.io.AtTerminal() {
		return nil
	}
	return func(ctx context.Context, question string) (bool, error) {
		return a.askAmid(ctx, printed, question)
	}
}

// askAmid asks whether a call may be made. What the code prints meanwhile is held back, so that the
// question is what the user sees last.
func (a *app) askAmid(ctx context.Context, printed *terminal.CodeOutput, question string) (bool, error) {
	defer printed.Hold()()
	yes, _, err := a.io.Ask(ctx, "\n"+question+"\nAllow it? [y/N] ")
	if err != nil {
		a.io.Say("\nmcp-bridge: the call has ended; the answer is not needed")
	}
	return yes, err
}

// report prints how a run ended, and returns how the command ends.
func (a *app) report(o runOptions, r bridge.Report) error {
	var paths map[string]string
	var unwritten error
	if o.files != "" && len(r.Result.Artifacts) > 0 {
		paths, unwritten = files.Write(o.files, r.Result.Artifacts)
	}
	code := exitCode(r.Result)
	if o.json {
		ends := code
		if ends == exit.OK && unwritten != nil {
			ends = exit.Failed
		}
		fmt.Fprintln(a.io.Out, string(r.JSON(ends, paths)))
	} else {
		explain(a.io.Err, o, r, paths)
	}
	switch {
	case code != exit.OK && unwritten != nil:
		fmt.Fprintf(a.io.Err, "mcp-bridge: %v\n", unwritten)
		return exit.With(code)
	case code != exit.OK:
		return exit.With(code)
	case unwritten != nil:
		return fmt.Errorf("the code ran, but not all of its files could be written: %w", unwritten)
	}
	return nil
}

// explain prints what the output itself doesn't say. paths are those of the files that
// were written, by name.
func explain(out *terminal.Output, o runOptions, r bridge.Report, paths map[string]string) {
	if e := r.Result.Error; e != nil {
		fmt.Fprint(out, e.Traceback)
		if e.Traceback == "" {
			fmt.Fprintf(out, "%s: %s\n", e.Type, e.Message)
		}
	}
	for _, f := range r.Result.Artifacts {
		where := "was handed over; --artifacts DIR writes it"
		if p, written := paths[f.Name]; written {
			where = "is in " + p
		} else if o.files != "" {
			where = "was handed over, but not written"
		}
		fmt.Fprintf(out, "mcp-bridge: %s (%s, %d bytes) %s\n", f.Name, f.Mime, len(f.Data), where)
	}
	for _, n := range r.Notices {
		fmt.Fprintln(out, "mcp-bridge: "+n)
	}
	if r.Result.Message != "" {
		fmt.Fprintln(out, "mcp-bridge: "+r.Result.Message)
	}
}

func exitCode(r sandbox.Result) int {
	switch r.Status {
	case sandbox.StatusOK:
		return exit.OK
	case sandbox.StatusTimeout:
		return exit.Timeout
	case sandbox.StatusCancelled:
		return exit.Interrupted
	case sandbox.StatusMemoryLimit:
		return exit.Memory
	case sandbox.StatusEngine:
		return exit.Unavailable
	case sandbox.StatusExit:
		if r.ExitCode > 0 && r.ExitCode < 256 {
			return r.ExitCode
		}
	}
	return exit.Failed
}
