// Package bridge is the MCP surface: it answers an MCP client by having code run, and answers that
// code by having upstream MCP servers call tools. It decides what a call may use, reports progress
// and renders what came back for a model.
//
// It starts no process and knows no engine: those are behind Runner and Upstreams. It alone writes
// to the client.
package bridge

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-bridge/mcp-bridge/bridge/audit"
	"github.com/mcp-bridge/mcp-bridge/bridge/catalog"
	"github.com/mcp-bridge/mcp-bridge/bridge/client"
	"github.com/mcp-bridge/mcp-bridge/bridge/elicit"
	"github.com/mcp-bridge/mcp-bridge/bridge/files"
	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/packages"
	"github.com/mcp-bridge/mcp-bridge/bridge/policy"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxtools"
	"github.com/mcp-bridge/mcp-bridge/bridge/upstream"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Name is what the server calls itself.
const Name = "mcp-bridge"

// Local is the principal of who may use this machine: see client.Local.
const Local = client.Local

// What hosts show of the server beside its name: where it is from, and two piers with a road
// between them.
const (
	website = "https://github.com/mcp-bridge/mcp-bridge"
	icon    = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#2a7" ` +
		`stroke-width="2"><path d="M1 16h22M6 4v16M18 4v16M6 6q6 12 12 0"/></svg>`
)

// Output modes: what a result of run_python consists of.
const (
	OutputText       = "text"       // text for a model; never structuredContent, which makes hosts hide the text
	OutputStructured = "structured" // structuredContent for programs, and the text
)

// DefaultOutput is how much of what a run printed its result shows, in bytes, unless the
// configuration says otherwise: about 4,000 tokens.
const DefaultOutput = 16 << 10

// A Runner runs code; *sandbox.Sandbox is one. Run is used concurrently and ends soon after its
// ctx. An error means that the run could not take place, and is shown with what its Hint() string
// returns, if it has that; code that failed is a Result.
type Runner interface {
	Run(ctx context.Context, r sandbox.Request, h sandbox.Host) (sandbox.Result, error)
}

// Upstreams are the configured MCP servers, by name; *upstream.Pool is one. All methods are used
// concurrently and end soon after their ctx.
type Upstreams interface {
	Tools(ctx context.Context, server string) ([]upstream.Tool, error)

	// Call returns the server's CallToolResult as it sent it.
	Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error)

	// List returns all that a server lists of a kind, ReadResource, GetPrompt and Complete its
	// results, as it sent them.
	List(ctx context.Context, server string, kind upstream.Kind) ([]json.RawMessage, error)
	ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error)
	GetPrompt(ctx context.Context, server, name string, args json.RawMessage) (json.RawMessage, error)
	Complete(ctx context.Context, server string, params map[string]any) (json.RawMessage, error)

	// Running reports whether a server need not be started to be asked.
	Running(ctx context.Context, server string) bool

	// Update replaces the servers, and doesn't wait for those that are in use.
	Update(servers []discovery.Server)

	// Pin keeps the servers of this moment for everything that is done under the context that it
	// returns, until release.
	Pin(ctx context.Context) (pinned context.Context, release func())
}

var (
	_ Runner    = (*sandbox.Sandbox)(nil)
	_ Upstreams = (*upstream.Pool)(nil)
)

// Config is what a Bridge is made of.
type Config struct {
	Runner    Runner    // required
	Upstreams Upstreams // required

	Servers  []discovery.Server  // that code may call; names are unique
	Problems []discovery.Problem // why others are not among them: shown to who asks for one, or finds no tool

	Approvals elicit.Approvals // which of Servers may be started without asking the user; nil: all

	// Policy says which tools runs may call; nil allows all. PolicyError is why it can't be read:
	// every run is refused with it then.
	Policy      *policy.Policy
	PolicyError error
	Grants      elicit.Grants // what the user has allowed for good; nil remembers nothing

	Login Login // by pages that the client shows; nil: the user logs in by a command
	// Files keeps what runs hand over in a directory of the user's too; nil keeps it in memory only.
	Files *files.Store

	// Inputs are the directories whose files calls may name; nil allows none, and calls have no
	// argument for it.
	Inputs *files.Inputs

	// Packages chooses the packages that code can import; nil means Python's own modules alone.
	Packages *packages.Chooser

	// Sandboxes are those that last; nil for none, and calls have no argument for it.
	Sandboxes *sandboxes.Registry

	// State says what calls share that name no sandbox: StateNone, or StateSession for one sandbox of
	// each client. Empty means StateNone.
	State string

	// Offer are the names of the tools that clients have, of ToolNames. Nil means those of the set
	// ToolsCode.
	Offer []string

	// Audit records each run and each call; nil records nothing. Nothing is run or called while it
	// can't be written.
	Audit *audit.Log

	// Traces and Metrics are where spans and measurements go; nil for nowhere.
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider

	Timeout    time.Duration // of a run whose caller names none; must be positive and at most MaxTimeout
	MaxTimeout time.Duration // the longest of any run; must be positive

	// ShareRoots lets servers hear of the client's roots, if they ask and it has any. Otherwise they
	// are told that there are none to be had.
	ShareRoots bool

	// Tools has what servers have said of their tools to earlier processes, so that these can be
	// searched before a server is started. Nil: nothing.
	Tools *catalog.Store

	// Output is how many bytes of what a run printed its result shows; read_output gives the rest.
	// Zero means DefaultOutput.
	Output int64

	OutputMode string       // OutputText or OutputStructured; empty means OutputText
	Replica    Replica      // empty for the only one; ids carry it
	Instance   string       // of this process, by which a bridge knows that it is its own client; may be empty
	Version    string       // of the program; empty means "dev"
	Log        *slog.Logger // one Info line per run; nil means silence
}

// Bridge is the MCP server. It is safe for concurrent use and holds nothing that has to be closed:
// only, in memory, what can still be read of the last runs.
type Bridge struct {
	cfg          Config
	structured   bool // the output mode
	limits       catalog.Limits
	starts       *elicit.Starts
	telemetry    *telemetry
	outputs      outputs
	decoder      decoder
	sandboxTools *sandboxtools.Tools // work on sandboxes without code; nil where there are none
	self         mcp.Implementation  // what the server calls itself
	server       *server.MCPServer
	clients      *client.Clients

	// mu guards what follows; latest changes together with the upstreams, and about with the tools of
	// server. Locks of the upstreams, Packages, server, catalogs and of what Config.Held asks
	// are taken under it.
	mu     sync.RWMutex
	latest *catalog.Catalog
	broken error  // why there is no policy to go by
	about  string // what run_python's description says of packages
}

// check returns what is wrong with the configuration.
func (c Config) check() error {
	switch mode := cmp.Or(c.OutputMode, OutputText); {
	case c.Runner == nil:
		return errors.New("bridge: no runner is given")
	case c.Upstreams == nil:
		return errors.New("bridge: no upstreams are given")
	case c.Timeout <= 0 || c.MaxTimeout <= 0:
		return errors.New("bridge: the timeout and the longest timeout must be positive")
	case c.Timeout > c.MaxTimeout:
		return fmt.Errorf("the timeout %v is longer than the longest that is allowed, %v: "+
			"lower MCP_BRIDGE_TIMEOUT or raise MCP_BRIDGE_MAX_TIMEOUT", c.Timeout, c.MaxTimeout)
	case c.Output < 0:
		return errors.New("bridge: the size of the output must not be negative")
	case mode != OutputText && mode != OutputStructured:
		return fmt.Errorf("there is no output mode %q: set MCP_BRIDGE_OUTPUT_MODE to %s or %s",
			mode, OutputText, OutputStructured)
	case c.Sandboxes == nil && slices.ContainsFunc(c.Offer, ofSandboxes):
		return errors.New("the tools of sandboxes need sandboxes: raise MCP_BRIDGE_SANDBOXES, or take them " +
			"out of MCP_BRIDGE_TOOLS")
	case c.State != "" && c.State != StateNone && c.State != StateSession:
		return fmt.Errorf("there is no state %q: set MCP_BRIDGE_STATE to %s or %s", c.State, StateNone,
			StateSession)
	case c.State == StateSession && c.Sandboxes == nil:
		return errors.New("calls can't share a sandbox without sandboxes: raise MCP_BRIDGE_SANDBOXES, or unset " +
			"MCP_BRIDGE_STATE")
	}
	return nil
}

// New checks the configuration. It starts nothing.
func New(cfg Config) (*Bridge, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Offer == nil {
		cfg.Offer = codeTools()
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	signals, err := newTelemetry(cfg.Traces, cfg.Metrics, cfg.Version)
	if err != nil {
		return nil, fmt.Errorf("bridge: making its metrics: %w", err)
	}
	starts := elicit.NewStarts(cfg.Approvals, cfg.Log)
	known := catalog.Config{Policy: cfg.Policy, Store: cfg.Tools, Log: cfg.Log, Held: starts.Held}
	b := &Bridge{
		cfg: cfg, structured: cfg.OutputMode == OutputStructured,
		limits: catalog.Limits{
			Timeout: cfg.Timeout, MaxTimeout: cfg.MaxTimeout,
			Output: cmp.Or(cfg.Output, DefaultOutput), Files: aboutFiles(cfg.Inputs), Kept: kept(cfg),
		},
		starts: starts, telemetry: signals, outputs: outputs{output.NewStore()},
		self:   mcp.Implementation{Name: Name, Title: "MCP Bridge", Version: cmp.Or(cfg.Version, "dev")},
		latest: catalog.New(known, cfg.Servers, cfg.Problems), broken: cfg.PolicyError,
	}
	b.decoder = decoder{inputs: cfg.Inputs, limits: b.limits, sandboxes: cfg.Sandboxes != nil,
		reads: b.offers(output.ReadTool)}
	if cfg.Sandboxes != nil {
		b.sandboxTools = sandboxtools.New(sandboxtools.Config{Registry: cfg.Sandboxes, Templates: cfg.Packages,
			Reads: b.decoder.reads, Limits: cfg.Sandboxes.Limits(),
			MostCommand: cfg.MaxTimeout})
	}
	b.server = b.newServer(cfg.Instance)
	b.clients = client.New(client.Config{
		Server: b.server, Self: b.self, Log: cfg.Log, Connect: b.connect,
		Ordered: append(sandboxtools.Names(), catalog.RunPython), Tools: enumerated(cfg.Offer),
	})
	b.addTools()
	b.addPrompts()
	addConformance(b.server, b.clients)
	b.server.AddResource(catalog.ManualResource(),
		func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{
				URI: catalog.ManualURI, MIMEType: catalog.ManualMIME, Text: b.Catalog().Manual(b.limits),
			}}, nil
		})
	b.server.AddResourceTemplate(output.Template(), b.outputs.readFile)
	return b, nil
}

// newServer returns mcp-go's server, which dispatches what clients ask, without tools.
func (b *Bridge) newServer(instance string) *server.MCPServer {
	hooks := &server.Hooks{}
	hooks.AddBeforeReadResource(manualsOtherName)
	hooks.AddAfterListResources(b.outputs.listFiles)
	src := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon))
	options := []server.ServerOption{
		server.WithTitle(b.self.Title),
		server.WithInstructions(b.instructions()),
		server.WithToolCapabilities(true),
		server.WithExperimental(selfSaid(instance)),
		server.WithResourceCapabilities(false, true),
		server.WithPromptCapabilities(false),
		server.WithCompletions(),
		server.WithPromptCompletionProvider(completions{b}),
		server.WithResourceCompletionProvider(completions{b}),
		server.WithHooks(hooks),
		server.WithWebsiteURL(website),
		server.WithIcons(mcp.Icon{Src: src, MIMEType: "image/svg+xml", Sizes: []string{"any"}}),
	}
	return server.NewMCPServer(b.self.Name, b.self.Version, append(options, conformanceOptions()...)...)
}

// addTool offers a tool that answers its arguments as they came, or takes the place of the one of
// its name.
func (b *Bridge) addTool(t mcp.Tool, answer func(context.Context, json.RawMessage) *mcp.CallToolResult) {
	b.server.AddTool(t, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return answer(carried(ctx, req.Params.Meta), req.Params.RawArguments), nil
	})
}

// manualsOtherName has a request for the manual by its other name, which isn't listed, answered
// too.
func manualsOtherName(_ context.Context, _ any, req *mcp.ReadResourceRequest) {
	if req.Params.URI == catalog.OtherManualURI {
		req.Params.URI = catalog.ManualURI
	}
}

// Serve answers one client, as client.Clients.Serve says. It may be called more than once, for
// several clients.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return b.clients.Serve(ctx, in, out)
}

// Clients returns who is served, for transports other than Serve's.
func (b *Bridge) Clients() *client.Clients { return b.clients }

// selfSaid returns the capability by which other bridges, and this one, know what they have
// reached.
func selfSaid(instance string) map[string]any {
	if instance == "" {
		return nil
	}
	return map[string]any{upstream.SelfCapability: map[string]any{"instance": instance}}
}

// runTool returns run_python as it is listed.
func (b *Bridge) runTool(c *catalog.Catalog) mcp.Tool {
	limits := b.limits
	limits.Packages = b.about
	limits.NoSearch = !b.offers(searchToolsName)
	t := c.RunTool(limits)
	if b.structured {
		mcp.WithOutputSchema[output.Outcome]()(&t)
	}
	return t
}
