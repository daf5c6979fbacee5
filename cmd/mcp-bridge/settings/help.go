package settings

// Help lists the variables, for people.
const Help = `
  MCP_BRIDGE_RUNTIME                container engine: podman, docker, the URL of an engine's API, or
                                    kubernetes[:CONTEXT[/NAMESPACE]]; default: the best that is found
  MCP_BRIDGE_IMAGE                  container image with python3; default python:3.12-slim, else one
                                    made by mcp-bridge image build
  MCP_BRIDGE_PULL                   when the image is asked for from its registry: missing, never or
                                    always (default missing)
  MCP_BRIDGE_TIMEOUT                time limit of a run whose caller names none (default 30)
  MCP_BRIDGE_MAX_TIMEOUT            longest timeout of a run (default 120)
  MCP_BRIDGE_MEMORY                 memory of a run, swap counted in (default 512m)
  MCP_BRIDGE_PIDS                   processes and threads of a run (default 128)
  MCP_BRIDGE_CPUS                   cores of a run; 0 means all (default 0)
  MCP_BRIDGE_CONTAINER_USER         uid:gid of the code, numbers, neither 0 (default 65534:65534)
  MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT   time without a run until no container is kept ready, and as long
                                    again until a podman machine that the bridge started is stopped;
                                    0 never (default 300)
  MCP_BRIDGE_STANDBY                containers that serve keeps ready for the next runs; 0 for none,
                                    auto for two a core, or what the memory allows (default 1)
  MCP_BRIDGE_MAX_CONCURRENT         runs at a time; auto for as many as the machine's memory holds
                                    when each takes all that it may, from 2 to 32 (default auto)
  MCP_BRIDGE_QUEUE                  calls that may wait for one of those runs to end, in order of
                                    arrival; 0 for none (default 64)
  MCP_BRIDGE_QUEUE_TIMEOUT          longest that a call waits for that (default 30)
  MCP_BRIDGE_TOOLS                  tools that clients have: code for run_python, search_tools and
                                    read_output, single for run_python alone, sandbox for those of
                                    sandboxes, all, or names with commas between them (default code)
  MCP_BRIDGE_STATE                  what calls share that name no sandbox: none, or session for one
                                    sandbox of each client (default none)
  MCP_BRIDGE_SANDBOXES              sandboxes alive at a time, at most 8 of a caller; 0 for none,
                                    auto for half of what memory holds (default auto)
  MCP_BRIDGE_SANDBOX_IDLE           time without a call until a sandbox ends (default 1800)
  MCP_BRIDGE_SANDBOX_MAX_AGE        the most that a sandbox lives (default 28800)
  MCP_BRIDGE_HIBERNATE              directory that sandboxes are saved in before they end for lack of
                                    use; default: they aren't
  MCP_BRIDGE_UPSTREAM_START_TIMEOUT longest that a server may take to start (default 20)
  MCP_BRIDGE_UPSTREAM_IDLE_TIMEOUT  time without use until a server is ended; the next call starts it
                                    again; 0 never (default 900)
  MCP_BRIDGE_UPSTREAM_ROOTS         directories that servers hear of when they ask: none, or client
                                    for those that a client of stdio gives (default none)
  MCP_BRIDGE_ARTIFACTS              directory for the files that runs of serve hand over: a path, or
                                    none; default: mcp-bridge/artifacts in your data directory
  MCP_BRIDGE_INPUTS                 directories whose files calls may name, to be copied to their
                                    code; default: none, and no such argument
  MCP_BRIDGE_CONFIG                 files and directories with server definitions, read before all
                                    others
  MCP_BRIDGE_POLICY                 file that says which tools code may call: see docs/policy.md;
                                    default: all
  MCP_BRIDGE_ENV                    packages of code that asks for none: base for none, data, or
                                    the name of another environment; default: data if it is built
  MCP_BRIDGE_ENVS                   directory with the settings of environments: see
                                    docs/environments.md; default: mcp-bridge/environments in your
                                    configuration directory
  MCP_BRIDGE_AUDIT                  file that takes a line of JSON for each run and each call of a
                                    tool; nothing is run while it can't be written
  MCP_BRIDGE_AUDIT_ARGUMENTS        have those lines hold the arguments too, not only their size and
                                    hash (default false)
  MCP_BRIDGE_OUTPUT                 how much of what a run prints its result shows; read_output gives
                                    the rest (default 16k)
  MCP_BRIDGE_OUTPUT_MODE            text for models, structured for programs (default text)
  MCP_BRIDGE_LOG_LEVEL              debug, info, warn or error; default info for serve, warn for the
                                    rest
  MCP_BRIDGE_LOG_FORMAT             text or json, on stderr (default text)
  MCP_BRIDGE_SECCOMP                system call filter that the engine sets: strict, engine for its
                                    default, or the path of a profile; in a cluster localhost/NAME is
                                    one of the nodes' (default strict)
  MCP_BRIDGE_OCI_RUNTIME            what the engine starts containers with, such as runc, crun, runsc
                                    or krun; default: its choice
  MCP_BRIDGE_ALLOW_ROOTFUL          use an engine that runs as root (default false)
  MCP_BRIDGE_REPLICA                name of this bridge where there are others behind the same URL: ids
                                    of what it alone has carry it; default: none
  MCP_BRIDGE_HTTP_TOKENS            file with the hashes of the tokens by which clients over HTTP say
                                    who they are; default: http-tokens in your state directory
  MCP_BRIDGE_HTTP_ISSUER            authorization server whose JWTs clients over HTTP may send
                                    instead; default: none
  MCP_BRIDGE_HTTP_AUDIENCE          URL by which clients reach the bridge, which those JWTs name
`
