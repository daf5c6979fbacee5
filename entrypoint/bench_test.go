package entrypoint

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The benchmarks of the guest, as a plain process. Each stands beside the least that the same thing
// could cost, measured in the same run: figures of different runs or machines say little.
// bench/run makes a table of them.

// samples collects what a round takes and reports the median and the 95th percentile instead of a
// mean.
func samples(b *testing.B, round func() time.Duration) {
	b.Helper()
	manySamples(b, 1, round)
}

// manySamples is for what is over so soon that the few rounds a benchmark is run for would say
// little.
func manySamples(b *testing.B, each int, round func() time.Duration) {
	b.Helper()
	var all []time.Duration
	for b.Loop() {
		for range each {
			all = append(all, round())
		}
	}
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(float64(len(all)), "samples")
	b.ReportMetric(ms(all[len(all)/2]), "p50-ms")
	b.ReportMetric(ms(all[len(all)*95/100]), "p95-ms")
	b.ReportMetric(0, "ns/op") // a mean over what is not measured, too
}

func took(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// process is a child that is spoken to in lines.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(b *testing.B, argv ...string) *process {
	b.Helper()
	// the benchmarks' own commands
	p := &process{cmd: exec.CommandContext(b.Context(), argv[0], argv[1:]...)} //nolint:gosec
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *process) end() {
	p.in.Close()
	p.cmd.Wait() //nolint:errcheck // its status is of no interest
}

// guest is a real one and the frames of it.
type guest struct {
	*process
	frames *Reader
	w      *Writer
}

func startGuest(b *testing.B) *guest {
	b.Helper()
	p := startProcess(b, Boot()...)
	if _, err := p.in.Write(Source()); err != nil {
		b.Fatal(err)
	}
	g := &guest{process: p, frames: NewReader(p.out, 0), w: NewWriter(p.in, 0)}
	g.until(b, TypeReady, nil)
	return g
}

// until reads frames up to one of a type; see is shown the others.
func (g *guest) until(b *testing.B, kind string, see func(FromGuest)) FromGuest {
	b.Helper()
	for {
		f, err := g.frames.Read()
		if err != nil {
			b.Fatalf("waiting for %s: %v", kind, err)
		}
		if f.Type == kind {
			return f
		}
		if see != nil {
			see(f)
		}
	}
}

func (g *guest) execute(b *testing.B, code string) {
	b.Helper()
	shop := Provider{Name: "shop", Alias: "shop", Tools: map[string]Tool{
		"echo": {
			SafeName:     "echo",
			OriginalName: "echo",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`),
		},
	}}
	if err := g.w.Write(Execute{Type: TypeExecute, ID: "r", Code: code, Providers: []Provider{shop}}); err != nil {
		b.Fatal(err)
	}
}

func (g *guest) answer(b *testing.B, call string, result json.RawMessage) {
	if err := g.w.Write(ToolResult{Type: TypeToolResult, CallID: call, OK: true, Result: result}); err != nil {
		b.Error(err)
	}
}

// done is from execute to done, of a guest that was ready.
func done(b *testing.B, code string, see func(*guest, FromGuest)) func() time.Duration {
	return func() time.Duration {
		g := startGuest(b)
		defer g.end()
		return took(b, func() error {
			g.execute(b, code)
			if f := g.until(b, TypeDone, func(f FromGuest) {
				if see != nil {
					see(g, f)
				}
			}); !f.OK {
				return fmt.Errorf("the code failed: %+v", f.Error)
			}
			return nil
		})
	}
}

func command(b *testing.B, argv ...string) func() time.Duration {
	return func() time.Duration {
		// the benchmarks' own commands
		return took(b, exec.CommandContext(b.Context(), argv[0], argv[1:]...).Run) //nolint:gosec
	}
}

func BenchmarkReady(b *testing.B) {
	b.Run("guest", func(b *testing.B) {
		samples(b, func() time.Duration {
			begin := time.Now()
			g := startGuest(b)
			d := time.Since(begin)
			g.end()
			return d
		})
	})
	b.Run(
		"baseline/python3_-I_-c_pass",
		func(b *testing.B) { samples(b, command(b, "python3", "-I", "-c", "pass")) },
	)
	b.Run(
		"baseline/python3_-I_-S_-c_pass",
		func(b *testing.B) { samples(b, command(b, "python3", "-I", "-S", "-c", "pass")) },
	)
}

func BenchmarkExecute(b *testing.B) {
	b.Run("pass", func(b *testing.B) { samples(b, done(b, "pass", nil)) })
	b.Run("print", func(b *testing.B) { samples(b, done(b, "print(1)", nil)) })
	b.Run("await", func(b *testing.B) { samples(b, done(b, "import asyncio\nawait asyncio.sleep(0)", nil)) })
	b.Run("baseline/true", func(b *testing.B) { samples(b, command(b, "true")) })
}

const text = `{"content":[{"type":"text","text":"%s"}]}`

// BenchmarkCall is from a result to the next call of code that does nothing else.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{10, 1_000_000} {
		result := json.RawMessage(fmt.Sprintf(text, strings.Repeat("x", size)))
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) {
			g := startGuest(b)
			defer g.end()
			g.execute(b, "while True: mcp_shop.echo(text='abc')")
			call := g.until(b, TypeToolCall, nil)
			manySamples(b, 20, func() time.Duration {
				return took(b, func() error {
					g.answer(b, call.CallID, result)
					call = g.until(b, TypeToolCall, nil)
					return nil
				})
			})
		})
		line, err := marshal(ToolResult{Type: TypeToolResult, CallID: "1", OK: true, Result: result})
		if err != nil {
			b.Fatal(err)
		}
		for _, baseline := range []struct{ name, code string }{
			{"pipe", "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(b'x\\n'); sys.stdout.buffer.flush()"},
			{"pipe_and_json.loads", "import sys, json\nfor line in sys.stdin.buffer: json.loads(line); sys.stdout.buffer.write(b'x\\n'); sys.stdout.buffer.flush()"},
		} {
			b.Run(fmt.Sprintf("baseline/%d_%s", size, baseline.name), func(b *testing.B) {
				p := startProcess(b, "python3", "-I", "-c", baseline.code)
				defer p.end()
				manySamples(b, 20, func() time.Duration {
					return took(b, func() error {
						if _, err := p.in.Write(line); err != nil {
							return err
						}
						_, err := p.out.ReadString('\n')
						return err
					})
				})
			})
		}
	}
}

// BenchmarkGather is fifty calls at once of a tool that takes 100 ms.
func BenchmarkGather(b *testing.B) {
	const code = "import asyncio\nawait asyncio.gather(*(mcp_shop.echo(text='a') for _ in range(50)))\nNone"
	b.Run("50", func(b *testing.B) {
		samples(b, done(b, code, func(g *guest, f FromGuest) {
			if f.Type == TypeToolCall {
				time.AfterFunc(
					100*time.Millisecond,
					func() { g.answer(b, f.CallID, json.RawMessage(fmt.Sprintf(text, "x"))) },
				)
			}
		}))
	})
	b.Run("baseline/100ms", func(b *testing.B) {
		samples(b, func() time.Duration {
			return took(b, func() error {
				<-time.After(100 * time.Millisecond)
				return nil
			})
		})
	})
}

// BenchmarkOutput is ten megabytes, in prints of a hundred bytes or at once.
func BenchmarkOutput(b *testing.B) {
	b.Run("100000_prints", func(b *testing.B) {
		samples(b, done(b, "line = 'x' * 99\nfor _ in range(100_000): print(line)", nil))
	})
	b.Run("one_print", func(b *testing.B) { samples(b, done(b, "print('x' * 10_000_000)", nil)) })
	b.Run("baseline/cat", func(b *testing.B) {
		samples(b, command(b, "sh", "-c", "head -c 10000000 /dev/zero | cat | cat >/dev/null"))
	})
	b.Run("baseline/100000_prints_to_cat", func(b *testing.B) {
		samples(b, command(b, "sh", "-c", `python3 -I -c "
line = 'x' * 99
for _ in range(100_000): print(line, flush=True)" | cat >/dev/null`))
	})
}
