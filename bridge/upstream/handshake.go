package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/jsonrpc"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxTold is how much is kept of what a server says of itself, in bytes.
const maxTold = 200

// SelfCapability is the experimental capability by which a bridge says that it is one, and under
// which it says which, as {"instance": "…"}.
const SelfCapability = "mcp-bridge"

// ErrSelf is within the error of a server that turns out to be a bridge: this one, reached some
// other way, or one more of the kind on this machine. The two would call each other, or the code of
// a run would have another run, of which this one's policy and audit know nothing.
var ErrSelf = errors.New("it is mcp-bridge itself")

// about is what a server says of itself in the handshake.
type about struct {
	version string // its name and version
	purpose string // what it is for
	tells   bool   // it tells that its tools have changed
}

// handshake makes the MCP connection of a session.
type handshake struct{ *session }

// connect makes the MCP connection, and refuses one to ourselves. It remembers for the next session
// what worked: which of the two protocols and, over HTTP, which transport.
func (h handshake) connect(ctx context.Context) error {
	err := h.shakeEither(ctx)
	if err != nil && ctx.Err() == nil && h.peer.instead(err) {
		if second := h.shakeEither(ctx); second == nil || errors.Is(second, ErrSelf) {
			h.hints.other = !h.hints.other
			err = second
		}
	}
	return h.plain(ctx, err)
}

// shakeEither makes a handshake of the newer protocol or the older one. Over HTTP the newer one
// comes first, as the specification of 2026-07-28 has it (basic/transports/streamable-http,
// Backward Compatibility). Over pipes the older one does: a server that ignores server/discover
// costs seconds there, and some die of it.
func (h handshake) shakeEither(ctx context.Context) error {
	modern := h.hints.modern || h.peer.modernFirst() && !h.hints.older
	err := h.shake(ctx, modern)
	if slices.Contains(supported(err), mcp.LATEST_PROTOCOL_VERSION) {
		err = h.shake(ctx, modern) // it names the very version that it was asked by
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if !h.refused(err) && (!modern || !mayBeOlder(err)) || modern && isModern(err) {
		return err
	}
	second := h.shake(ctx, !modern)
	if second != nil && (!modern || isModern(second)) {
		return err // what it said first
	}
	return second
}

// mayBeOlder reports whether a handshake of the newer protocol over HTTP failed in a way that
// leaves it open whether the server knows the older one.
func mayBeOlder(err error) bool {
	return isA[*exchangeError](err) && !isA[*LoginError](err) && !isA[*unreachableError](err)
}

// supported returns the versions that an error says a server supports.
func supported(err error) []string {
	refusal, ok := errors.AsType[*RPCError](err)
	if !ok || refusal.Code != mcp.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	var data mcp.UnsupportedProtocolVersionData
	_ = json.Unmarshal(refusal.Data, &data)
	return data.Supported
}

// isModern reports whether an error is one that only a server of the newer protocol answers with.
func isModern(err error) bool {
	if versions := supported(err); len(versions) > 0 {
		return slices.Min(versions) > mcp.LATEST_LEGACY_PROTOCOL_VERSION // they are dates
	}
	refusal, ok := errors.AsType[*RPCError](err)
	return ok && (refusal.Code == mcp.HEADER_MISMATCH || refusal.Code == mcp.MISSING_REQUIRED_CLIENT_CAPABILITY)
}

// refused reports whether a server answered with an error, or wrongly.
func (h handshake) refused(err error) bool {
	return !h.broke(err) && !isA[*exchangeError](err) && !errors.Is(err, ErrSelf)
}

// broke reports whether an error is the end of the session.
func (h handshake) broke(err error) bool { return isClosed(h.over) && errors.Is(err, h.cause) }

// shake makes one handshake, of the newer protocol or the older one.
func (h handshake) shake(ctx context.Context, modern bool) error {
	h.meta = nil
	if err := h.peer.open(ctx, modern); err != nil {
		return err
	}
	if !modern {
		return h.initialize(ctx)
	}
	// A server that doesn't answer this may answer the other handshake.
	asking, cancel := context.WithTimeout(ctx, h.cfg.StartTimeout/2)
	defer cancel()
	err := h.discover(asking)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return &exchangeError{err}
	}
	return err
}

// hello makes one request of a handshake.
func (h handshake) hello(ctx context.Context, method string, params map[string]any, result any) error {
	id := h.conn.NewID()
	if meta := h.metaFor(ctx, id, false); meta != nil {
		params["_meta"] = meta
	}
	raw, err := h.exchange(ctx, id, method, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("its answer to %s can't be read: %w", method, err)
	}
	return nil
}

func (h handshake) client() mcp.Implementation {
	return mcp.Implementation{Name: "mcp-bridge", Version: h.cfg.ClientVersion}
}

// initialize makes the handshake of the older protocol.
func (h handshake) initialize(ctx context.Context) error {
	var result mcp.InitializeResult
	err := h.hello(ctx, string(mcp.MethodInitialize), map[string]any{
		"protocolVersion": mcp.LATEST_LEGACY_PROTOCOL_VERSION,
		"capabilities":    h.can.capabilities(),
		"clientInfo":      h.client(),
	}, &result)
	if err != nil {
		return err
	}
	version := result.ProtocolVersion
	if mcp.IsModernProtocol(version) || !mcp.IsValidProtocolVersion(version) {
		return fmt.Errorf("the version %.40q of the protocol isn't known here", version)
	}
	h.peer.agreed(version)
	if err := h.conn.Notify(ctx, string(mcp.MethodNotificationInitialized), nil); err != nil {
		return h.explain(ctx, err)
	}
	if result.Capabilities.Logging != nil {
		if err := h.askForLogs(ctx); err != nil {
			return err
		}
	}
	return h.met(ctx, false, result.ServerInfo, result.Capabilities, result.Instructions)
}

// askForLogs tells a server what to log. Its answer isn't waited for.
func (h handshake) askForLogs(ctx context.Context) error {
	m, err := jsonrpc.NewRequest(json.RawMessage(`"b-log"`), string(mcp.MethodSetLogLevel),
		map[string]string{"level": h.cfg.LogLevel})
	switch {
	case err != nil:
		return err
	case h.peer.left() == nil: // over HTTP sending it means to wait for the answer
		h.peer.Post(m)
		return nil
	}
	return h.explain(ctx, h.peer.Send(ctx, m))
}

// discover makes the handshake of the newer protocol.
func (h handshake) discover(ctx context.Context) error {
	h.meta = map[string]any{
		mcp.MetaKeyProtocolVersion: mcp.LATEST_PROTOCOL_VERSION,
		mcp.MetaKeyClientInfo:      h.client(),
		mcp.MetaKeyLogLevel:        h.cfg.LogLevel,
	}
	var result mcp.DiscoverResult
	if err := h.hello(ctx, string(mcp.MethodServerDiscover), map[string]any{}, &result); err != nil {
		return err
	}
	if len(result.SupportedVersions) == 0 {
		return errors.New("its answer to server/discover names no version of the protocol")
	}
	h.peer.agreed(mcp.LATEST_PROTOCOL_VERSION)
	var info mcp.Implementation
	if said := result.GetResultMeta().ServerInfo(); said != nil {
		info = *said
	}
	return h.met(ctx, true, info, result.Capabilities, result.Instructions)
}

// met notes what a server said of itself.
func (h handshake) met(
	ctx context.Context, modern bool, who mcp.Implementation, can mcp.ServerCapabilities, instructions string,
) error {
	h.about = about{
		version: h.mask.cut(who.Name+" "+who.Version, maxTold),
		purpose: purpose(who, instructions, h.mask),
		tells:   can.Tools != nil && can.Tools.ListChanged,
	}
	h.hints.modern, h.hints.older = modern, !modern
	if err := h.loopTo(can); err != nil {
		return err
	}
	return ctx.Err() // the last message may have been late
}

// purpose returns the beginning of what a server says it is for: its instructions, else its
// description, title or name.
func purpose(who mcp.Implementation, instructions string, m *mask) string {
	for _, said := range []string{instructions, who.Description, who.Title, who.Name} {
		if said = strings.TrimSpace(said); said != "" {
			return m.cut(said, maxTold)
		}
	}
	return ""
}

// plain returns an error of the handshake for a caller.
func (h handshake) plain(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrSelf):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case isA[*exchangeError](err), h.broke(err):
		return err
	case len(supported(err)) > 0:
		return fmt.Errorf("it knows other versions of the protocol than this bridge: %s",
			h.mask.text(strings.Join(supported(err), ", ")))
	}
	return fmt.Errorf("it answered the handshake wrongly: %s", h.mask.text(err.Error()))
}

// loopTo returns an error where a connection with this answer to the handshake would be one to
// ourselves. A bridge on another machine, which has its own servers, is a server like any other.
// One at a URL on this machine, behind a gateway that has started it, reads the same files as we
// do.
func (h handshake) loopTo(capabilities mcp.ServerCapabilities) error {
	said, ok := capabilities.Experimental[SelfCapability].(map[string]any)
	if !ok {
		return nil
	}
	instance, _ := said["instance"].(string)
	remote := h.server.Transport == discovery.HTTP || h.server.Transport == discovery.SSE
	if remote && !here(h.server.URL) && (h.cfg.Instance == "" || instance != h.cfg.Instance) {
		return nil
	}
	return fmt.Errorf("%w, or one like it on this machine, behind a command or an address that doesn't "+
		"tell; take it out of %s",
		ErrSelf, h.server.Source)
}

// here reports whether a URL leads to this machine, by its name or by an address of any of its
// interfaces. The name isn't looked up.
func here(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || discovery.OnThisMachine(u) {
		return err == nil
	}
	if name, err := os.Hostname(); err == nil && name != "" &&
		strings.EqualFold(name, strings.TrimSuffix(u.Hostname(), ".")) {
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
