package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// killed calls run_python until the bridge is killed, and says what has it called again.
func killed(ctx context.Context, url, version string) error {
	s, err := connect(ctx, url, version)
	if err != nil {
		return err
	}
	if err := attempt(ctx, s); err != nil {
		return err
	}
	fmt.Println("ready")
	calls := 0
	var failures []string
	for end := time.Now().Add(90 * time.Second); err == nil && time.Now().Before(end); calls++ {
		err = attempt(ctx, s)
	}
	again := time.Time{} // when the bridge was there
	for err != nil && (again.IsZero() || time.Since(again) < 20*time.Second) {
		if said := err.Error(); len(failures) == 0 || failures[len(failures)-1] != said {
			failures = append(failures, said)
		}
		time.Sleep(200 * time.Millisecond)
		if again.IsZero() && there(url) {
			again = time.Now()
		}
		err = attempt(ctx, s)
	}
	by := "the same client goes on by itself"
	if err != nil {
		by = "another client goes on"
		if s, err = connect(ctx, url, version); err == nil {
			err = attempt(ctx, s)
		}
	}
	if err != nil {
		return err
	}
	fmt.Printf("ok   Go SDK, %s: %d calls, then %s; %s\n", version, calls, strings.Join(failures, " | "), by)
	return s.Close()
}

func there(url string) bool {
	r, err := http.Get(strings.Replace(url, "/mcp", "/healthz", 1))
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func connect(ctx context.Context, url, version string) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "mcp-bridge-test", Version: "1"}, nil)
	return c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
}

// attempt calls once.
func attempt(ctx context.Context, s *mcp.ClientSession) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	result, err := s.CallTool(ctx,
		&mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "print(6 * 7)"}})
	if err != nil {
		return err
	}
	if text, _ := result.Content[0].(*mcp.TextContent); text == nil || !strings.HasPrefix(text.Text, "42") {
		return errors.New("the answer is another one")
	}
	return nil
}
