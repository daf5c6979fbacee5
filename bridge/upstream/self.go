package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// SelfCapability is the experimental capability by which a bridge says that it is one, and under which it says which, as
// {"instance": "…"}.
const SelfCapability = "mcp-bridge"

// ErrSelf is within the error of a server that turns out to be a bridge: this one, reached some other way, or one more of the
// kind, started by this one. The two would call each other.
var ErrSelf = errors.New("it is mcp-bridge itself")

// connect makes the MCP connection, and refuses one to ourselves.
func (s *session) connect(ctx context.Context) error {
	if err := s.handshake(ctx); err != nil {
		return err
	}
	return s.loop
}

// loopTo says whether a connection with this answer to the handshake would be one to ourselves. A bridge on another machine,
// which has its own servers, is a server like any other.
func (s *session) loopTo(capabilities mcp.ServerCapabilities) error {
	said, ok := capabilities.Experimental[SelfCapability].(map[string]any)
	if !ok {
		return nil
	}
	instance, _ := said["instance"].(string)
	switch {
	case s.cfg.Instance != "" && instance == s.cfg.Instance:
	case s.server.Transport == discovery.HTTP, s.server.Transport == discovery.SSE:
		return nil
	}
	return fmt.Errorf("%w, behind a command or an address that doesn't tell; take it out of %s", ErrSelf, s.server.Source)
}
