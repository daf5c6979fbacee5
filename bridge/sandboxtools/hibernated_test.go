package sandboxtools

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/hibernation"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
)

// TestHibernated: a sandbox that is saved is shown as such; what uses it wakes it, and says so.
func TestHibernated(t *testing.T) {
	store, err := hibernation.Open(hibernation.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Key: func(bool) ([]byte, error) { return bytes.Repeat([]byte{1}, hibernation.KeySize), nil }})
	if err != nil {
		t.Fatal(err)
	}
	b := newSavingBox(t, &sandboxes.Hibernation{Store: store, Log: slog.New(slog.DiscardHandler)})
	b.call("sandbox_create", `{"name":"n","metadata":{"a":"b"}}`)
	id := fmt.Sprintf(`{"sandbox_id":%q}`, b.id())
	back := fmt.Sprintf("[sandbox %s: files are back, variables are not]", b.id())
	b.registry.EndAll("me")
	for _, tt := range []struct{ tool, args, want string }{
		{"sandbox_info", id, `"status":"hibernated"`},
		{"sandbox_list", `{"metadata":{"a":"b"}}`, `"status":"hibernated"`},
		{"sandbox_pause", id, "it is hibernated. sandbox_resume wakes it"},
		{"sandbox_update", id, "it is hibernated. sandbox_resume wakes it"},
	} {
		if got := b.call(tt.tool, tt.args); !strings.Contains(got, tt.want) || len(b.guests) != 1 {
			t.Errorf("%s: %s", tt.tool, got)
		}
	}
	if res, _ := b.by("you", "sandbox_info", id); !strings.Contains(res.Content[0].(mcp.TextContent).Text,
		"neither a live nor a saved one") {
		t.Errorf("another's: %+v", res.Content)
	}
	for i, tool := range []string{"sandbox_resume", "sandbox_undo"} {
		for _, woken := range []bool{true, false} {
			res, _ := b.by("me", tool, id)
			if last := res.Content[len(res.Content)-1].(mcp.TextContent).Text; res.IsError ||
				(last == back) != woken ||
				len(b.guests) != i+2 {
				t.Errorf("%s: %q of %d guests", tool, last, len(b.guests))
			}
		}
		b.registry.EndAll("me")
	}
	if got := b.call("sandbox_kill", id); !strings.Contains(got, `"deleted":true`) ||
		len(store.List("me")) != 0 {
		t.Errorf("%s; %v", got, store.List("me"))
	}
	if got := b.call("sandbox_resume", id); !strings.Contains(got, "Not found") {
		t.Error(got)
	}
}
