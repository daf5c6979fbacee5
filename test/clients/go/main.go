// Command go calls run_python over HTTP with the official Go SDK: go URL
//
// go URL killed VERSION goes on until the bridge is killed, and then says what has it go on.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const code = `import time
print("news", flush=True)
time.sleep(1.2)
print(6 * 7)`

func main() {
	do := func() error { return run(context.Background(), os.Args[1]) }
	if len(os.Args) > 3 {
		do = func() error { return killed(context.Background(), os.Args[1], os.Args[3]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL Go SDK:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	var news atomic.Int32
	c := mcp.NewClient(&mcp.Implementation{Name: "mcp-bridge-test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { news.Add(1) },
	})
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return err
	}
	call := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code}}
	call.SetProgressToken("p")
	result, err := s.CallTool(ctx, call)
	if err != nil {
		return err
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	if text == nil || !strings.Contains(text.Text, "42") || news.Load() == 0 {
		return fmt.Errorf("%+v after %d reports", result, news.Load())
	}
	version := s.InitializeResult().ProtocolVersion
	fmt.Printf("ok   Go SDK, %s: 42, after %d reports\n", version, news.Load())
	return s.Close()
}
