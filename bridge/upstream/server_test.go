//go:build unix

package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The test binary is also every server that the tests need. os.Args[2] is its mode; what a tool
// does is its name.

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		URI       string          `json:"uri"`
		RequestID string          `json:"requestId"`
		Meta      json.RawMessage `json:"_meta"`
		Version   string          `json:"protocolVersion"`
		Abilities json.RawMessage `json:"capabilities"`
		Level     string          `json:"level"`
		Ref       struct{ Name string }
		Answers   json.RawMessage `json:"inputResponses"`
		State     json.RawMessage `json:"requestState"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// server is the state of the fake.
type server struct {
	mode string
	in   *bufio.Reader

	mu        sync.Mutex // of out and what follows
	lists     int
	held      []request // calls of "barrier"
	waiting   []string  // ids of the calls of "never"
	child     int       // pid of a grandchild
	cancelled []string
	asked     map[string]chan request
	abilities json.RawMessage // of the client
	level     string          // of the log
	rounds    int             // in which the tool "input" has asked
	listening json.RawMessage // the id of the request that is held open for changes
	listens   int             // such requests
}

func fakeServer(args []string) {
	s := &server{mode: args[0], in: bufio.NewReaderSize(os.Stdin, 1<<20), asked: map[string]chan request{}}
	switch s.mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "\x1b[31mcannot connect\x1b[0m with token", os.Getenv("TOKEN"), "to the database")
		os.Exit(7)
	case "dies once":
		if _, err := os.Stat(args[1]); err != nil {
			_ = os.WriteFile(args[1], nil, 0o600)
			fmt.Fprintln(os.Stderr, "not yet")
			os.Exit(1)
		}
	case "slow": // starts when the test writes to the fifo
		f, err := os.Open(args[1])
		if err == nil {
			_, _ = f.Read(make([]byte, 1))
		}
	case "noise":
		fmt.Print("Welcome to the server!\n\n{\"half\": \n[1,2\n{\"log\":\"x\"}\n\xff\xfe\n")
		fmt.Fprint(os.Stderr, strings.Repeat("log ", 1<<18))
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "grandchild":
		c := exec.Command(os.Args[0], "sleeper")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr // holds the pipes open
		ready, _ := c.StdinPipe()
		_ = ready
		if err := c.Start(); err != nil {
			panic(err)
		}
		s.child = c.Process.Pid
	case "opens":
		s.child = editor()
	case "leaves":
		os.Exit(0)
	case "junk":
		fmt.Print(strings.Repeat("junk\n", 1000))
		park()
	case "silent", "sleeper":
		park()
	}
	s.serve()
	if s.mode == "stubborn" {
		park()
	}
}

// park keeps a process there. An empty select wouldn't: the runtime ends a program of which no
// goroutine can go on.
func park() {
	for {
		time.Sleep(time.Hour)
	}
}

func (s *server) serve() {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		s.handle(r)
		if s.mode == "stops reading" && r.Method == "tools/call" {
			park()
		}
	}
}

func (s *server) send(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(os.Stdout, format+"\n", args...)
}

func (s *server) result(r request, result string) {
	s.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

func textResult(v string) string {
	b, _ := json.Marshal(v)
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

func (s *server) handle(r request) {
	switch r.Method {
	case "initialize":
		s.initialize(r)
	case "server/discover":
		s.discover(r)
	case "subscriptions/listen":
		s.listen(r)
	case "tools/list":
		s.list(r)
	case "tools/call":
		s.call(r)
	case "resources/list":
		s.offer(r)
	case "resources/read":
		s.result(r, fmt.Sprintf(`{"contents":[{"uri":%q,"n":9007199254740993}]}`, r.Params.URI))
	case "prompts/list":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	case "prompts/get":
		s.result(r, fmt.Sprintf(`{"name":%q,"arguments":%s}`, r.Params.Name, orNull(r.Params.Arguments)))
	case "completion/complete":
		s.result(r, fmt.Sprintf(`{"completion":{"values":[%q],"total":9007199254740993}}`, r.Params.Ref.Name))
	case "logging/setLevel":
		s.level = r.Params.Level
		s.result(r, "{}")
	case "ping":
		switch s.mode {
		case "odd ping":
			s.send(`{"jsonrpc":"2.0","id":%s}`, r.ID)
		case "no ping":
		default:
			s.result(r, "{}")
		}
	case "notifications/cancelled":
		s.mu.Lock()
		s.cancelled = append(s.cancelled, r.Params.RequestID)
		s.mu.Unlock()
	case "":
		s.mu.Lock()
		c := s.asked[string(r.ID)]
		s.mu.Unlock()
		if c != nil {
			c <- r
		}
	}
}

func (s *server) initialize(r request) {
	s.abilities = r.Params.Abilities
	const result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake",` +
		`"version":"1"}}`
	switch s.mode {
	case "bridge":
		s.result(r, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},`+
			`"experimental":{"mcp-bridge":{"instance":"`+os.Args[3]+`"}}},"serverInfo":{"name":"mcp-bridge",`+
			`"version":"1"}}`)
	case "modern", "modern tells", "modern floods", "modern hangs up", "modern stale", "modern asks":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, r.ID)
	case "refuses":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":"no license for %s"}`, r.ID, os.Getenv("TOKEN"))
		os.Exit(0)
	case "flood":
		for i := range 1000 {
			s.send(`{"jsonrpc":"2.0","method":"notifications/unknown","params":{"n":%d}}`, i)
			s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.result(r, result)
	case "wrong version":
		s.result(r, strings.Replace(result, "2025-11-25", "1999-01-01", 1))
	case "no result":
		s.result(r, `"hello"`)
	case "logs":
		s.result(r, strings.Replace(result, `"tools"`, `"logging":{},"tools"`, 1))
	default:
		s.result(r, result)
	}
}

func (s *server) list(r request) {
	s.lists++
	switch s.mode {
	case "odd":
		s.result(r, `{"tools":[{"name":"a","inputSchema":true},7,{"name":"b","inputSchema":{"type":["object",`+
			`"null"]},"description":5},{"inputSchema":{}},{"name":"c"},{"name":"c","title":"again"},{"name":"d",`+
			`"title":"D\u202e","description":"a\u200b\rb","inputSchema":{"description":"\ud83d\ude00\u3164"},`+
			`"outputSchema":{"n":9007199254740993}}],"nextCursor":null}`)
	case "pages for ever":
		s.result(r, `{"tools":[{"name":"t`+strconv.Itoa(s.lists)+`"}],"nextCursor":"same"}`)
	case "new pages for ever":
		s.result(r, `{"tools":[],"nextCursor":"`+strconv.Itoa(s.lists)+`"}`)
	case "pages":
		n, _ := strconv.Atoi(r.Params.Cursor)
		next := `,"nextCursor":"` + strconv.Itoa(n+1) + `"`
		if n == 4 {
			next = ""
		}
		s.result(r, fmt.Sprintf(`{"tools":[{"name":"t%d"}]%s}`, n, next))
	case "no list":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.ID)
	case "bad list":
		s.result(r, `{"tools":"none"}`)
	case "huge list":
		s.result(r, `{"tools":[{"name":"t`+strconv.Itoa(s.lists)+`","description":"`+strings.Repeat("x",
			200<<10)+`"}],"nextCursor":"`+strconv.Itoa(s.lists)+`"}`)
	case "countless tools":
		var b strings.Builder
		for i := range 11_000 {
			fmt.Fprintf(&b, `{"name":"t%d"},`, i)
		}
		s.result(r, `{"tools":[`+b.String()+`{"name":"last"}]}`)
	case "changing list":
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.result(r, fmt.Sprintf(`{"tools":[{"name":"list%d"}]}`, s.lists))
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case "modern stale":
		s.result(r, fmt.Sprintf(`{"tools":[{"name":"list%d"}],"ttlMs":0,"cacheScope":"public"}`, s.lists))
	case "modern asks":
		s.result(r, `{"resultType":"input_required","requestState":"s"}`)
	case "silent tools":
	default:
		s.result(r, fmt.Sprintf(`{"tools":[{"name":"list%d","inputSchema":{"type":"object"}}]}`, s.lists))
	}
}

// offer is two pages of resources.
func (s *server) offer(r request) {
	switch {
	case s.mode == "bad list":
		s.result(r, `{"resources":{}}`)
	case s.mode == "silent list":
	case r.Params.Cursor == "":
		s.result(r, `{"resources":[{"uri":"a:1"},{"uri":"a:2","size":9007199254740993}],"nextCursor":"two"}`)
	default:
		s.result(r, `{"resources":[{"uri":"a:3"}]}`)
	}
}

func (s *server) call(r request) {
	switch r.Params.Name {
	case "echo":
		s.result(r, string(r.Params.Arguments))
	case "raw":
		s.result(r, "  { \"n\" : 9007199254740993, \"f\":1.0,  \"u\":\"\\u00e9é\" }  ")
	case "die":
		fmt.Fprintln(os.Stderr, "panic: token is", os.Getenv("TOKEN"))
		os.Exit(3)
	case "answer and die":
		s.result(r, `{"last":true}`)
		os.Exit(0)
	case "close output":
		_ = os.Stdout.Close()
	case "never":
		s.mu.Lock()
		s.waiting = append(s.waiting, strings.Trim(string(r.ID), `"`))
		s.mu.Unlock()
	case "seen":
		s.mu.Lock()
		b, _ := json.Marshal(map[string]any{"waiting": s.waiting, "cancelled": s.cancelled, "pid": os.Getpid(),
			"child": s.child, "lists": s.lists, "listens": s.listens})
		s.mu.Unlock()
		s.result(r, string(b))
	case "barrier":
		s.barrier(r)
	case "huge":
		_, _ = os.Stdout.WriteString(strings.Repeat("x", 3<<20))
	case "big":
		s.result(r, textResult(strings.Repeat("0123456789abcdef", 10<<16)))
	case "twice":
		s.result(r, `{"n":1}`)
		s.result(r, `{"n":2}`)
		s.send(`{"jsonrpc":"2.0","id":"b-999999","result":{}}`)
	case "batch":
		s.send(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":%s,"result":{"b":1}}]`, r.ID)
	case "error":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, r.ID,
			r.Params.Arguments[len(`{"e":`):len(r.Params.Arguments)-1])
	case "nothing":
		s.send(`{"jsonrpc":"2.0","id":%s}`, r.ID)
	case "deep":
		s.result(r, strings.Repeat("[", 20000)+strings.Repeat("]", 20000))
	case "bad utf-8":
		s.result(r, "{\"t\":\"a\xff\xfeb\"}")
	case "environment":
		b, _ := json.Marshal(os.Environ())
		dir, _ := os.Getwd()
		s.result(r, `{"env":`+string(b)+`,"dir":"`+dir+`"}`)
	case "change":
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed",`+
			`"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, orNull(s.listening))
		s.result(r, `{}`)
	case "ask without end": // and never read the answers
		for i := 0; ; i++ {
			s.send(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
	case "ask":
		go s.ask(r)
	case "log": // and die
		for _, params := range []string{`{"level":"info","logger":"db","data":"at s3cr3t-value"}`,
			`{"level":"error","data":{"n": 1}}`, `{"data":null}`, `[]`, `7`} {
			s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":%s}`, params)
		}
		s.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"level %s"}}`,
			s.level)
		os.Exit(4)
	case "question":
		go s.question(r)
	case "abilities":
		s.result(r, string(s.abilities))
	case "progress":
		s.progress(r)
	case "input":
		s.input(r)
	default:
		s.misbehave(r)
	}
}

// progress sends what the arguments say before its answer, with the token that it was given, and
// once more after it.
func (s *server) progress(r request) {
	var a struct {
		Said  []string // params without the token, as JSON text
		Times int
	}
	_ = json.Unmarshal(r.Params.Arguments, &a)
	var meta struct {
		Token json.RawMessage `json:"progressToken"`
	}
	_ = json.Unmarshal(r.Params.Meta, &meta)
	say := func(params string) {
		s.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s%s}}`,
			orNull(meta.Token), params)
	}
	for range max(1, a.Times) {
		for _, params := range a.Said {
			say(params)
		}
	}
	s.result(r, string(orNull(r.Params.Meta)))
	say(`,"progress":99`)
}

// barrier answers once as many calls wait as the arguments say, the last one first.
func (s *server) barrier(r request) {
	var a struct{ N int }
	_ = json.Unmarshal(r.Params.Arguments, &a)
	s.held = append(s.held, r)
	if len(s.held) < a.N {
		return
	}
	for i := len(s.held) - 1; i >= 0; i-- {
		s.result(s.held[i], string(s.held[i].Params.Arguments))
	}
	s.held = nil
}
