package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/entrypoint"
	"github.com/mcp-bridge/mcp-bridge/entrypoint/transcript"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// collecting is an engine whose guests keep the files that they are sent, and end well at their
// execute. With deaf, they read nothing after the source.
type collecting struct {
	runtimetest.Local
	deaf bool

	mu     sync.Mutex // guests that wait for their runs live beside the one that has one
	files  map[string][]byte
	frames int // of files
	orders []string
}

func (c *collecting) Run(ctx context.Context, spec runtime.Spec, std runtime.Stdio) (runtime.Exit, error) {
	if isCompiler(spec) {
		return runtime.Exit{Code: 1}, nil // nothing is compiled ahead
	}
	in := bufio.NewReader(std.Stdin)
	if err := transcript.SkipSource(in); err != nil {
		return runtime.Exit{}, nil
	}
	fmt.Fprintln(std.Stdout, `{"type":"ready","protocol":2,"seccomp":true}`)
	if c.deaf {
		<-ctx.Done()
		return runtime.Exit{}, ctx.Err()
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return runtime.Exit{}, nil
		}
		var f struct {
			entrypoint.File
			N int64
		}
		if err := json.Unmarshal(line, &f); err != nil {
			return runtime.Exit{}, err
		}
		c.mu.Lock()
		if f.Type != entrypoint.TypePing {
			c.orders = append(c.orders, f.Type)
		}
		c.mu.Unlock()
		switch f.Type {
		case entrypoint.TypePing:
			fmt.Fprintf(std.Stdout, `{"type":"pong","n":%d}`+"\n", f.N)
		case entrypoint.TypeFile:
			data, err := base64.StdEncoding.DecodeString(f.Data)
			if err != nil || len(line) > entrypoint.MaxFrame {
				return runtime.Exit{}, fmt.Errorf("%d bytes: %w", len(line), err)
			}
			c.mu.Lock()
			c.frames++
			c.files[f.Name] = append(c.files[f.Name], data...)
			c.mu.Unlock()
		case entrypoint.TypeExecute:
			fmt.Fprintln(std.Stdout, `{"type":"done","id":"run-1","ok":true,"wait":{"exited":true,"status":0}}`)
		}
	}
}

func input(name string, data []byte) sandbox.Input {
	return sandbox.Input{Name: name, Size: int64(len(data)), Data: bytes.NewReader(data)}
}

func files(in ...sandbox.Input) func() ([]sandbox.Input, error) {
	return func() ([]sandbox.Input, error) { return in, nil }
}

// TestFilesAreSent: whole, in pieces, before the execute, also to a guest that has waited.
func TestFilesAreSent(t *testing.T) {
	for _, standby := range []int{0, 1} {
		t.Run(fmt.Sprint(standby, " standby"), func(t *testing.T) {
			c := &collecting{files: map[string][]byte{}}
			cfg := config()
			cfg.Standby, cfg.StandbyIdle, cfg.MaxContainers = standby, time.Minute, 4
			s, err := sandbox.New(c, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			big := bytes.Repeat([]byte("0123456789"), 200_000)
			growing := sandbox.Input{Name: "growing", Size: 3, Data: strings.NewReader("123456")}
			for range 1 + standby {
				c.mu.Lock()
				clear(c.files)
				c.frames, c.orders = 0, nil
				c.mu.Unlock()
				got, err := s.Run(t.Context(), sandbox.Request{ID: "run-1", Code: "1", Timeout: 20 * time.Second,
					Files: files(input("big", big), input("empty", nil), growing)}, nil)
				if err != nil || got.Status != sandbox.StatusOK {
					t.Fatalf("%+v, %v", got, err)
				}
				c.mu.Lock()
				if !bytes.Equal(c.files["big"], big) || c.files["empty"] == nil && len(c.files) != 3 ||
					string(c.files["growing"]) != "123" || c.frames != 6 {
					t.Errorf("%d files in %d frames", len(c.files), c.frames)
				}
				if last := c.orders[len(c.orders)-1]; last != entrypoint.TypeExecute {
					t.Errorf("the last frame is %s", last)
				}
				c.mu.Unlock()
				growing.Data, growing.Size = strings.NewReader("123456"), 3
				if standby == 0 {
					break
				}
			}
		})
	}
}

// TestFilesAreRefused: beyond the bound, or when they can't be read; a guest that doesn't take them
// is killed.
func TestFilesAreRefused(t *testing.T) {
	broken := errors.New("the disk is broken")
	big := input("big", make([]byte, 4<<20))
	for _, tc := range []struct {
		name  string
		deaf  bool
		files []sandbox.Input
		want  string
	}{
		{"too large", false, []sandbox.Input{{Name: "a", Size: sandbox.MaxInputs}, {Name: "b", Size: 1}},
			"at most 67108864 can be copied"},
		{"unreadable", false, []sandbox.Input{{Name: "a", Size: 5,
			Data: io.MultiReader(strings.NewReader("12"), errorReader{broken})}}, broken.Error()},
		{"cut while it is read", false, []sandbox.Input{{Name: "a", Size: 5, Data: strings.NewReader("12")}},
			"the file a could not be read whole"},
		{"a deaf guest", true, []sandbox.Input{big}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config()
			if tc.deaf {
				cfg.StartTimeout = 200 * time.Millisecond
			}
			s, err := sandbox.New(&collecting{deaf: tc.deaf, files: map[string][]byte{}}, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got, err := s.Run(t.Context(), sandbox.Request{ID: "run-1", Code: "1", Timeout: 20 * time.Second,
				Files: files(tc.files...)}, nil)
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %+v, %v, want %q", got, err, tc.want)
			}
			if tc.want == "" && got.Status == sandbox.StatusOK {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
