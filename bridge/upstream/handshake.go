package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// SelfCapability is the experimental capability by which a bridge says that it is one, and under which it says which, as
// {"instance": "…"}.
const SelfCapability = "mcp-bridge"

// ErrSelf is within the error of a server that turns out to be a bridge: this one, reached some other way, or one more of the
// kind on this machine. The two would call each other, or the code of a run would have another run, of which this one's policy and audit
// know nothing.
var ErrSelf = errors.New("it is mcp-bridge itself")

// connect makes the MCP connection, and refuses one to ourselves.
func (s *session) connect(ctx context.Context) error {
	if err := s.handshake(ctx); err != nil {
		return err
	}
	return s.loop
}

// loopTo says whether a connection with this answer to the handshake would be one to ourselves. A bridge on another machine,
// which has its own servers, is a server like any other. One at a URL on this machine, behind a gateway that has started it, reads the
// same files as we do.
func (s *session) loopTo(capabilities mcp.ServerCapabilities) error {
	said, ok := capabilities.Experimental[SelfCapability].(map[string]any)
	if !ok {
		return nil
	}
	instance, _ := said["instance"].(string)
	remote := s.server.Transport == discovery.HTTP || s.server.Transport == discovery.SSE
	if remote && !here(s.server.URL) && (s.cfg.Instance == "" || instance != s.cfg.Instance) {
		return nil
	}
	return fmt.Errorf("%w, or one like it on this machine, behind a command or an address that doesn't tell; take it out of %s", ErrSelf, s.server.Source)
}

// here says whether a URL leads to this machine, as far as that can be told without asking for its name: by its name, or by an address of
// any of its interfaces.
func here(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || discovery.OnThisMachine(u) {
		return err == nil
	}
	if name, err := os.Hostname(); err == nil && name != "" && strings.EqualFold(name, strings.TrimSuffix(u.Hostname(), ".")) {
		return true
	}
	host, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		own, err := netip.ParsePrefix(a.String())
		return err == nil && own.Addr().Unmap() == host.Unmap().WithZone("")
	})
}
