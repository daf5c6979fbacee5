package entrypoint

import "encoding/json"

// Protocol is the version of the frames, which ready tells.
const Protocol = 2

// Frame types. The first six and their fields are the execbox protocol's.
const (
	TypeExecute    = "execute"     // host → guest
	TypeToolResult = "tool_result" // host → guest
	TypeProgress   = "progress"    // host → guest
	TypeCancel     = "cancel"      // host → guest
	TypePing       = "ping"        // host → guest
	TypeFile       = "file"        // host → guest
	TypeExec       = "exec"        // host → guest
	TypeFiles      = "files"       // host → guest
	TypeUndo       = "undo"        // host → guest
	TypeReady      = "ready"       // guest → host
	TypeStarted    = "started"     // guest → host
	TypeToolCall   = "tool_call"   // guest → host
	TypeToolCancel = "tool_cancel" // guest → host
	TypeOutput     = "output"      // guest → host
	TypeArtifact   = "artifact"    // guest → host
	TypeTaken      = "taken"       // guest → host
	TypeDone       = "done"        // guest → host
	TypeData       = "data"        // guest → host
	TypePong       = "pong"        // guest → host
)

// Error codes: execbox's seven and four of ours.
const (
	CodeTimeout       = "timeout"
	CodeMemoryLimit   = "memory_limit"
	CodeValidation    = "validation_error"
	CodeTool          = "tool_error"
	CodeRuntime       = "runtime_error"
	CodeSerialization = "serialization_error"
	CodeInternal      = "internal_error"
	CodeCancelled     = "cancelled"
	CodeOutputLimit   = "output_limit"
	CodeCallLimit     = "call_limit"
	CodeDenied        = "denied"
)

// Execute asks the guest to run code. It is sent once per guest, or, with Keep, once more after
// each done.
type Execute struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Code      string     `json:"code"`
	Keep      bool       `json:"keep,omitempty"` // the variables, for further code
	File      string     `json:"file,omitempty"` // what tracebacks call the code; empty for <run_python>
	Options   Options    `json:"options"`
	Providers []Provider `json:"providers"`
}

// File is a piece of a file that the code is to find. The first one of a name makes the file, and
// each adds to its end. All come before the execute. Those of a run that doesn't come to its
// execute are removed when the files or the execute of another do.
type File struct {
	Type string `json:"type"`
	ID   string `json:"id"`   // of the execute
	Name string `json:"name"` // one part of a path
	Data string `json:"data"` // base64
}

// Exec asks the supervisor of a sandbox to run a shell command. It is answered as an execute is,
// but that there are no tool calls.
type Exec struct {
	Type      string            `json:"type"`
	ID        string            `json:"id"`
	Command   string            `json:"command"`             // for sh -c
	Directory string            `json:"directory,omitempty"` // empty for /workspace
	Variables map[string]string `json:"variables,omitempty"` // beside those of the Options
	Options   Options           `json:"options"`
}

// Files asks the supervisor of a sandbox for something that it does with files. All other processes
// are stopped meanwhile, unless they were to run on, or the code has prepared to have itself
// continued (PROTOCOL.md). It is answered by data frames and a done.
type Files struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	Op    string `json:"op"` // one of those below
	Path  string `json:"path"`
	Limit int64  `json:"limit,omitempty"` // bytes of what is read, zipped or packed

	Offset int64  `json:"offset,omitempty"` // bytes of what is packed that have come already
	Data   string `json:"data,omitempty"`   // base64, of what is written or unpacked
}

// What Files asks for.
const (
	FilesRead  = "read"
	FilesWrite = "write"
	FilesList  = "list"
	FilesZip   = "zip"

	FilesPack   = "pack"   // gives a piece of a tar archive
	FilesUnpack = "unpack" // adds what a tar archive has
)

// Undo asks the supervisor of a sandbox to take back the last execute. It is answered by a done.
type Undo struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Entry is a file in a directory.
type Entry struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"` // "file", "directory", "link", "other"
	Size     int64   `json:"size"`
	Modified float64 `json:"modified"` // seconds since 1970
}

// Environment says which packages of its image a container's code has, beside the standard library.
type Environment struct {
	Path string `json:"path"` // their directory, in which no .pth file is run

	// Imports are the modules that the guest imports before it is ready. It leaves out those that
	// fail. The limits, as in Options, hold while it imports; they are those of the runs to come.
	Imports []string         `json:"imports,omitempty"`
	Rlimits map[string]int64 `json:"rlimits,omitempty"`
	Cores   int              `json:"cores,omitempty"`
	Watch   Watch            `json:"watch,omitzero"`
}

// MaxImports bounds the modules that an Environment or the guest may name, MaxImport the bytes of
// each name.
const (
	MaxImports = 32
	MaxImport  = 100
)

// Options bound one run inside the guest. The host enforces its own bounds whatever the guest makes
// of these. The first four are execbox's. This guest reads one of them, MemoryLimitBytes, by which
// it knows how large a state it can copy.
type Options struct {
	TimeoutMs        int64 `json:"timeoutMs"`
	MemoryLimitBytes int64 `json:"memoryLimitBytes"`
	MaxLogLines      int   `json:"maxLogLines"`
	MaxLogChars      int   `json:"maxLogChars"`
	MaxArtifactBytes int64 `json:"maxArtifactBytes"`

	// Rlimits are set, hard and soft, in the process that runs the code before any of it runs:
	// "as", "core", "cpu", "data", "fsize", "nofile", "nproc" in setrlimit(2)'s units. "as" counts
	// on top of what the interpreter has mapped while it waited.
	Rlimits map[string]int64 `json:"rlimits,omitempty"`

	// Cores is how many cores the process that runs the code is bound to, with all that it starts.
	// Zero means all there are.
	Cores int `json:"cores,omitempty"`

	// Watch has the supervisor end the run when the processes of the container together pass a
	// bound that the engine doesn't enforce. Zero means that bound isn't watched.
	Watch Watch `json:"watch,omitzero"`

	// Variables are put into the environment of a sandbox, once.
	Variables map[string]string `json:"variables,omitempty"`

	// Running lets the processes of a sandbox run on between runs.
	Running bool `json:"running,omitempty"`

	// Sandboxes says that there is run_python's argument sandbox: for hints.
	Sandboxes bool `json:"sandboxes,omitempty"`

	// Servers are all names that the code may ask for, each with its alias, whether or not its
	// tools are known yet.
	Discovered []Discovered `json:"discovered,omitempty"`
}

// Watch bounds all processes of a container together.
type Watch struct {
	MemoryBytes int64 `json:"memoryBytes,omitempty"` // sum of anonymous and shared resident memory
	Processes   int64 `json:"processes,omitempty"`   // processes and threads
}

// Discovered is a configured server by name, for the guest's helpers.
type Discovered struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Provider is one server that the code may call. Its metadata is data: the guest never pastes it
// into Python text.
type Provider struct {
	Name        string `json:"name"`  // the server's real name
	Alias       string `json:"alias"` // mcp_<alias>; see Alias
	Description string `json:"description,omitempty"`

	// Tools by safe name. Null means not known yet: the guest asks for them at the first touch,
	// with a tool_call of the provider "runtime", tool "load_server", input {"server": name}, whose
	// result is a Provider with Tools.
	Tools map[string]Tool `json:"tools"`

	// Stub begins the Python module of declarations (package stubs) that the tools' own stubs go on
	// with. The guest puts it into /ipc/servers/<alias>.py. It comes with Tools.
	Stub string `json:"stub,omitempty"`

	// Gone are names and safe names of tools that the server had when it was last heard of, and no
	// longer has: searches may have told of them. It comes with Tools.
	Gone []string `json:"gone,omitempty"`

	// Denied are names and safe names of tools that the code may not call, each with what decides
	// so: they are not among Tools. It comes with Tools.
	Denied map[string]string `json:"denied,omitempty"`
}

// Tool is one tool of a Provider. The schemas are as the server sent them.
type Tool struct {
	SafeName     string          `json:"safeName"`
	OriginalName string          `json:"originalName"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`

	// Stub declares the tool as a function of Python (package stubs). The guest parses it, and has
	// the tool's parameters, types, defaults and documentation from it. It is empty when it would
	// be too long: the tool takes any keyword arguments then.
	Stub string `json:"stub,omitempty"`

	// Keys are the JSON keys of parameters whose names in Python differ.
	Keys map[string]string `json:"keys,omitempty"`

	// Wrapped says that a result is sent as {"result": value} or {"content": text}, and that Stub
	// declares the value.
	Wrapped bool `json:"wrapped,omitempty"`
}

// RuntimeProvider is the name of the built-in provider whose tools are the runtime's own helpers.
const RuntimeProvider = "runtime"

// ToolResult answers one ToolCall. Exactly one of Result and Error is meant, as OK says.
type ToolResult struct {
	Type   string          `json:"type"`
	CallID string          `json:"callId"`
	OK     bool            `json:"ok"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *CallError      `json:"error,omitempty"`
}

// MaxProgressText bounds the message of a Progress, in bytes.
const MaxProgressText = 1000

// Progress tells the code how far one of its ToolCalls is, as the server reports it. It is sent
// only of calls that ask for it, before their ToolResult, and no more often than the code has use
// for: in between the latest report counts.
type Progress struct {
	Type     string   `json:"type"`
	CallID   string   `json:"callId"`
	Progress float64  `json:"progress"`
	Total    *float64 `json:"total,omitempty"`
	Message  string   `json:"message,omitempty"` // at most MaxProgressText bytes
}

// CallError is why a tool call failed, for the code that made it.
type CallError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *CallError) Error() string { return e.Message }

// Cancel asks the guest to stop promptly.
type Cancel struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// Ping is the host's sign of life; the guest answers with a pong of the same n.
type Ping struct {
	Type string `json:"type"`
	N    int64  `json:"n"`
}

// FromGuest is any frame of the guest, decoded in one step. Which fields mean something depends on
// Type. None of it is trusted further than a request for what the run may have anyway, or text to
// be shown.
type FromGuest struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`

	// ready
	Protocol int  `json:"protocol,omitempty"` // Protocol, or the guest isn't ours
	Seccomp  bool `json:"seccomp,omitempty"`  // the guest's own filter is in force
	// Extra names what is in the container and was not asked for: mounts and devices of the host.
	// Such a guest must not be used.
	Extra []string `json:"extra,omitzero"`

	Note string `json:"note,omitempty"` // why it isn't, for a person

	Failed []string `json:"failed,omitzero"` // those of Environment.Imports that could not be imported

	// tool_call; of tool_cancel CallID
	CallID   string          `json:"callId,omitempty"`
	Provider string          `json:"providerName,omitempty"`
	Tool     string          `json:"safeToolName,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Progress bool            `json:"progress,omitempty"` // the code wants to hear of it

	// output
	Stream string `json:"stream,omitempty"` // "stdout", "stderr"
	Text   string `json:"text,omitempty"`

	// artifact; of data Data
	Name  string `json:"name,omitempty"`
	Mime  string `json:"mime,omitempty"`
	Data  string `json:"data,omitempty"` // base64
	Chunk int    `json:"chunk,omitempty"`
	Of    int    `json:"of,omitempty"`

	// done
	OK         bool            `json:"ok,omitempty"`
	DurationMs float64         `json:"durationMs,omitempty"` // execbox's; the host goes by its own clock
	Result     json.RawMessage `json:"result,omitempty"`
	Error      *DoneError      `json:"error,omitempty"`
	Wait       *Wait           `json:"wait,omitempty"`
	Imported   []string        `json:"imported,omitzero"` // modules of the Environment, as the code says
	Sandbox    *Sandbox        `json:"sandbox,omitempty"` // where Execute.Keep was set
	Entries    []Entry         `json:"entries,omitzero"`  // of a list of files
	More       bool            `json:"more,omitempty"`    // there are further Entries

	// taken
	// Bytes counts all tool_result and progress frames so far, line ends included, that the guest need
	// not hold any more.
	Bytes int64 `json:"bytes,omitempty"`

	// pong
	N int64 `json:"n,omitempty"`
}

// DoneError is what the guest says of a failed run. Type, Message, Traceback and Line are the
// code's own word: text.
type DoneError struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Type      string `json:"type,omitempty"`
	Traceback string `json:"traceback,omitempty"`
	Line      int    `json:"line,omitempty"`
}

// Sandbox is what the supervisor says of variables that are kept.
type Sandbox struct {
	State     string `json:"state"`               // one of the states below
	Reason    string `json:"reason,omitempty"`    // of SandboxLost, or why threads are gone
	NoWayBack string `json:"noWayBack,omitempty"` // why the next run could not be taken back
}

// What became of the variables in a run.
const (
	SandboxKept   = "kept"   // they are as the run left them
	SandboxBefore = "before" // as before it
	SandboxLost   = "lost"
)

// Wait is what the supervisor learned about the process that ran the code.
type Wait struct {
	Exited bool `json:"exited"`           // it ended by exit, with Status
	Status int  `json:"status"`           // exit status
	Signal int  `json:"signal,omitempty"` // it was ended by this signal
	// Killed says why the supervisor itself ended it: "cancel", "memory", "processes",
	// or "deaf": it didn't say that it had begun the code, and called no tool. A cancel without a
	// Signal came before the code, which was not begun then.
	Killed string `json:"killed,omitempty"`

	// Told says that the process goes on, as that of a sandbox does, and that Status is its own
	// word.
	Told bool `json:"told,omitempty"`

	// OOM counts the processes of the container that the kernel killed for lack of memory.
	OOM int64 `json:"oom,omitempty"`
}
