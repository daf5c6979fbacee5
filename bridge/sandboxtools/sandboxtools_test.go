package sandboxtools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// TestAnnotations is the original's table: reads only, destroys, can be repeated.
func TestAnnotations(t *testing.T) {
	want := map[string]string{
		"sandbox_create": "FFF", "sandbox_update": "FTF", "sandbox_list": "TFT", "sandbox_info": "TFT",
		"sandbox_exec": "FFF", "sandbox_files_read": "TFT", "sandbox_files_write": "FFT",
		"sandbox_files_list": "TFT", "sandbox_files_download_dir": "TFT", "sandbox_pause": "FFT",
		"sandbox_resume": "FFT", "sandbox_kill": "FTT", "sandbox_template_list": "TFT",
		"sandbox_template_create": "FFF", "sandbox_undo": "FTF",
	}
	letter := map[bool]string{true: "T", false: "F"}
	for _, d := range Definitions() {
		a := d.Annotations
		got := letter[*a.ReadOnlyHint] + letter[*a.DestructiveHint] + letter[*a.IdempotentHint]
		if got != want[d.Name] || *a.OpenWorldHint != (d.Name == "sandbox_template_create") || d.Title == "" ||
			d.Description == "" {
			t.Errorf("%s: %s, want %s; %+v", d.Name, got, want[d.Name], d)
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		t.Errorf("there are no tools %v", want)
	}
}

// TestSchemas: they are valid JSON, share no parts, and say of each argument whether it must be
// given.
func TestSchemas(t *testing.T) {
	for _, d := range Definitions() {
		for what, raw := range map[string]json.RawMessage{"input": d.RawInputSchema, "output": d.RawOutputSchema} {
			var s struct {
				Type       string
				Properties map[string]map[string]any
				Required   []string
			}
			if err := json.Unmarshal(raw, &s); err != nil || s.Type != "object" || len(s.Properties) == 0 ||
				strings.Contains(string(raw), "$ref") {
				t.Errorf("%s's %s schema: %v %s", d.Name, what, err, raw)
			}
			for name, p := range s.Properties {
				if p["type"] == nil && p["enum"] == nil {
					t.Errorf("%s's %s: %s has no type", d.Name, what, name)
				}
			}
			for _, name := range s.Required {
				if s.Properties[name] == nil {
					t.Errorf("%s's %s: %s is required and isn't there", d.Name, what, name)
				}
			}
		}
	}
}

// TestResults: each tool's result has the names of the original, and what its schema promises.
func TestResults(t *testing.T) {
	for _, tc := range []struct{ tool, args, want string }{
		{"sandbox_create", `{"name":"primes","metadata":{"a":"b"},"from_template":"data"}`,
			`{"id":"*","name":"primes","status":"active","metadata":{"a":"b"}}`},
		{"sandbox_create", `{}`, `{"id":"*","name":"","status":"active","metadata":{}}`},
		{"sandbox_list", `{}`, `{"sandboxes":[{"id":"ID","name":"mine","status":"active",` +
			`"metadata":{"of":"test"}}]}`},
		{"sandbox_list", `{"metadata":{"of":"test"}}`,
			`{"sandboxes":[{"id":"ID","name":"mine","status":"active","metadata":{"of":"test"}}]}`},
		{"sandbox_list", `{"metadata":{"of":"other"}}`, `{"sandboxes":[]}`},
		{"sandbox_update", `{"sandbox_id":"ID","metadata":{}}`, `{"id":"ID"}`},
		{"sandbox_pause", `{"sandbox_id":"ID"}`, `{"id":"ID","status":"paused"}`},
		{"sandbox_resume", `{"sandbox_id":"ID"}`, `{"id":"ID","status":"active"}`},
		{"sandbox_undo", `{"sandbox_id":"ID"}`,
			`{"id":"ID","message":"threads and processes of earlier calls are gone","state":"before"}`},
		{"sandbox_kill", `{"sandbox_id":"ID"}`, `{"deleted":true,"id":"ID"}`},
		{"sandbox_kill", `{"sandbox_id":"gone"}`, `{"deleted":true,"id":"gone"}`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls"}`,
			`{"stdout":"","stderr":"","exit_code":0,"truncated":false}`},
		{"sandbox_files_write", `{"sandbox_id":"ID","path":"/workspace/x","content":"aGk=","encoding":"base64"}`,
			`{"bytes":2,"path":"/workspace/x"}`},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"there"}`,
			`{"path":"there","encoding":"text","bytes":3,"content":"hé"}`},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"binary","encoding":"base64"}`,
			`{"path":"binary","encoding":"base64","bytes":2,"content":"//4="}`},
		{"sandbox_files_list", `{"sandbox_id":"ID","path":"/workspace"}`,
			`{"entries":[{"name":"a.py","type":"file","size":3,"modified":"2026-11-23T12:00:00Z"},` +
				`{"name":"b","type":"directory","size":0}],"path":"/workspace"}`},
		{"sandbox_files_download_dir", `{"sandbox_id":"ID","path":"/workspace"}`,
			`{"path":"/workspace","format":"zip","encoding":"base64","bytes":2,"content":"UEs="}`},
		{"sandbox_template_list", `{}`, `{"templates":[` +
			`{"id":"base","name":"base","status":"ready","vcpu":2,"memoryMib":512,"diskMib":128,"packages":[]},` +
			`{"id":"data","name":"data","status":"ready","vcpu":2,"memoryMib":512,"diskMib":128,` +
			`"packages":["numpy==2.5.5"]}]}`},
		{"sandbox_template_list", `{"name_prefix":"x"}`, `{"templates":[]}`},
		{"sandbox_template_create", `{"name":"web","packages":["flask"],"run_steps":["pip install 'requests>=2' ` +
			`lxml"]}`,
			`{"template":{"id":"web","name":"web","status":"ready","vcpu":2,"memoryMib":512,"diskMib":128,` +
				`"packages":["flask","requests\u003e=2","lxml"]}}`},
	} {
		t.Run(tc.tool+tc.args, func(t *testing.T) {
			b := newBox(t)
			b.call("sandbox_create", `{"name":"mine","metadata":{"of":"test"}}`)
			b.guests[0].files = map[string]string{"there": "hé", "binary": "\xff\xfe"}
			id := b.id()
			got := b.call(tc.tool, tc.args)
			if tc.tool == "sandbox_create" {
				id = b.registry.List("me")[0].ID
				got = strings.Replace(got, id, "*", 1)
			}
			want := strings.ReplaceAll(tc.want, "ID", id)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			promised(t, tc.tool, got)
		})
	}
}

// promised checks a result against what its schema requires.
func promised(t *testing.T, tool, result string) {
	t.Helper()
	defs := Definitions()
	d := defs[slices.IndexFunc(defs, func(d mcp.Tool) bool { return d.Name == tool })]
	var s struct {
		Properties map[string]any
		Required   []string
	}
	var got map[string]any
	if json.Unmarshal(d.RawOutputSchema, &s) != nil || json.Unmarshal([]byte(result), &got) != nil {
		t.Fatalf("%s: %s", tool, result)
	}
	for _, name := range s.Required {
		if _, ok := got[name]; !ok {
			t.Errorf("%s has no %s: %s", tool, name, result)
		}
	}
	for name := range got {
		if s.Properties[name] == nil {
			t.Errorf("%s has %s, which its schema hasn't: %s", tool, name, result)
		}
	}
}

// TestInfo tells all that was chosen.
func TestInfo(t *testing.T) {
	b := newBox(t)
	b.call("sandbox_create", `{"name":"n","from_template":"data","timeout_seconds":3600,`+
		`"auto_delete_seconds":60,`+
		`"env_vars":{"A":"1"},"keep_running":true}`)
	if r := b.guests[0].request; r.Variables["A"] != "1" || !r.Running {
		t.Errorf("the guest has %+v", r)
	}
	b.call("sandbox_pause", `{"sandbox_id":"ID"}`)
	var got struct {
		Status, Template, CreatedAt, AutoDeleteAt string
		CPUs                                      float64 `json:"vcpu_count"`
		Memory                                    int     `json:"memory_mib"`
		Timeout                                   int     `json:"timeout_seconds"`
		Delete                                    int     `json:"auto_delete_seconds"`
		At                                        string  `json:"auto_delete_at"`
		Created                                   string  `json:"created_at"`
	}
	text := b.call("sandbox_info", `{"sandbox_id":"ID"}`)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(text)
	}
	if got.Status != "paused" || got.Template != "data" || got.CPUs != 2 || got.Memory != 1024 ||
		got.Timeout != 3600 ||
		got.Delete != 60 || got.At == "" || got.Created == "" {
		t.Error(text)
	}
	promised(t, "sandbox_info", text)
	if still := b.call("sandbox_info", `{"sandbox_id":"ID"}`); !strings.Contains(still, `"paused"`) {
		t.Error("sandbox_info has resumed it")
	}
	b.call("sandbox_exec", `{"sandbox_id":"ID","command":"true"}`)
	b.call("sandbox_update", `{"sandbox_id":"ID","timeout_seconds":null,"auto_delete_seconds":null}`)
	if text := b.call("sandbox_info", `{"sandbox_id":"ID"}`); !strings.Contains(text, `"active"`) ||
		strings.Contains(text, "timeout") || strings.Contains(text, "auto_delete") {
		t.Errorf("after a command, without times: %s", text)
	}
}

// TestExec: what a command is given, and what is left of what it printed.
func TestExec(t *testing.T) {
	for _, tc := range []struct {
		name, args string
		out        sandbox.Output
		want       func(c sandbox.Command, r executed, failed bool) bool
	}{
		{"usual time", `"command":"ls"`, sandbox.Output{Status: sandbox.StatusExit},
			func(c sandbox.Command, _ executed, failed bool) bool { return c.Timeout == usualCommand && !failed }},
		{"clamped time", `"command":"ls","timeout_ms":999999999`, sandbox.Output{Status: sandbox.StatusOK},
			func(c sandbox.Command, _ executed, _ bool) bool { return c.Timeout == mostCommand }},
		{"all arguments", `"command":"ls","cwd":"/tmp","env":{"A":"b"},"timeout_ms":1500`,
			sandbox.Output{Status: sandbox.StatusExit},
			func(c sandbox.Command, _ executed, _ bool) bool {
				return c.Dir == "/tmp" && c.Variables["A"] == "b" && c.Timeout.Milliseconds() == 1500 && c.Line == "ls"
			}},
		{"exit code", `"command":"false"`, sandbox.Output{Status: sandbox.StatusExit, ExitCode: 1,
			Message: "It exited."}, func(_ sandbox.Command, r executed, failed bool) bool {
			return r.ExitCode == 1 && !failed && r.Message == ""
		}},
		{"signal", `"command":"x"`, sandbox.Output{Status: sandbox.StatusExit, ExitCode: 139, Signal: 11,
			Message: "It crashed."},
			func(_ sandbox.Command, r executed, failed bool) bool { return !failed && r.Message == "It crashed." }},
		{"it ends the sandbox", `"command":"x"`, sandbox.Output{Status: sandbox.StatusExit, ExitCode: 0,
			Kept: sandbox.KeptState{State: sandbox.StateLost}},
			func(_ sandbox.Command, r executed, failed bool) bool {
				return failed && r.Message == "The sandbox has ended with it."
			}},
		{"an older state took over", `"command":"x"`, sandbox.Output{Status: sandbox.StatusExit, ExitCode: 137,
			Signal:  9,
			Message: "It was killed.", Kept: sandbox.KeptState{State: sandbox.StateKept, Note: "threads are gone"}},
			func(_ sandbox.Command, r executed, failed bool) bool {
				return !failed && r.Message == "It was killed. The sandbox: threads are gone."
			}},
		{"both streams", `"command":"x"`, sandbox.Output{Status: sandbox.StatusExit, Output: []sandbox.Chunk{
			{Stream: "stdout", Text: "a"}, {Stream: "stderr", Text: "b"}, {Stream: "stdout", Text: "c"}}},
			func(_ sandbox.Command, r executed, _ bool) bool { return r.Stdout == "ac" && r.Stderr == "b" }},
		{"timeout", `"command":"x"`, sandbox.Output{Status: sandbox.StatusTimeout, ExitCode: -1,
			Message: "It was stopped after 60 s.", Output: []sandbox.Chunk{{Stream: "stdout", Text: "part"}}},
			func(_ sandbox.Command, r executed, failed bool) bool {
				return r.Stdout == "part" && failed && r.Message == "It was stopped after 60 s."
			}},
		{"as much as is shown", `"command":"x"`, printedBy(strings.Repeat("x", mostShown)),
			func(_ sandbox.Command, r executed, _ bool) bool { return !r.Truncated && len(r.Stdout) == mostShown }},
		{"more", `"command":"x"`, printedBy(strings.Repeat("é", mostShown)),
			func(_ sandbox.Command, r executed, _ bool) bool {
				return r.Truncated && r.Run == "c0ffee" && len(r.Stdout) < mostShown &&
					strings.Contains(r.Stdout, "é\n... [34408 bytes truncated] ...\né")
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBox(t)
			b.call("sandbox_create", `{}`)
			b.guests[0].out = tc.out
			res, _ := b.by("me", "sandbox_exec", `{"sandbox_id":"`+b.id()+`",`+tc.args+`}`)
			var r executed
			if err := json.Unmarshal(res.RawStructuredContent, &r); err != nil {
				t.Fatal(res)
			}
			if c := b.guests[0].commands[0]; !tc.want(c, r, res.IsError) {
				t.Errorf("%+v, %.200v, failed %v", c, r, res.IsError)
			}
			if r.Run != "" {
				all, err := b.output.Of("me").Read(json.RawMessage(`{"run":"c0ffee","limit":200000}`))
				if err != nil || !strings.HasPrefix(all, strings.Repeat("é", mostShown)) {
					t.Errorf("the rest can't be read: %v", err)
				}
			}
		})
	}
}

// TestNote: what happened to the variables before a call stands in its result.
func TestNote(t *testing.T) {
	b := newBox(t)
	b.call("sandbox_create", `{}`)
	b.guests[0].note, b.guests[0].files["/workspace/a"] = "an older copy took over", "hello"
	want := "[sandbox " + b.id() + ": an older copy took over]"
	for _, tc := range []struct {
		tool, args string
		failed     bool
	}{
		{"sandbox_files_read", `"path":"/workspace/a"`, false},
		{"sandbox_files_read", `"path":"/workspace/none"`, true},
		{"sandbox_files_write", `"path":"/workspace/b","content":""`, false},
		{"sandbox_files_list", `"path":"/workspace"`, false},
		{"sandbox_files_download_dir", `"path":"/workspace"`, false},
	} {
		res, _ := b.by("me", tc.tool, `{"sandbox_id":"`+b.id()+`",`+tc.args+`}`)
		last, _ := res.Content[len(res.Content)-1].(mcp.TextContent)
		if last.Text != want || len(res.Content) != 2 || res.IsError != tc.failed {
			t.Errorf("%s: got %+v, want %q at the end", tc.tool, res.Content, want)
		}
	}
	got := b.call("sandbox_undo", `{"sandbox_id":"ID"}`)
	if !strings.Contains(got, `"message":"threads and processes of earlier calls are gone; an older copy `+
		`took over"`) {
		t.Errorf("undo: %s", got)
	}
}

func printedBy(text string) sandbox.Output {
	return sandbox.Output{Status: sandbox.StatusExit, Output: []sandbox.Chunk{{Stream: "stdout", Text: text}}}
}

// TestErrors: each says what is wrong and one next step.
func TestErrors(t *testing.T) {
	file := func(code string) error { return &sandbox.FileError{Path: "/x", Err: "it can't", Code: code} }
	for _, tc := range []struct {
		tool, args string
		err        error
		want       string
	}{
		{"sandbox_exec", `{"command":"ls"}`, nil, `Invalid request: argument "sandbox_id" is missing`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":" "}`, nil, `Invalid request: argument "command" is empty`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls","cmd":"ls"}`, nil, `has no argument "cmd"`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls","timeout_ms":0}`, nil, `"timeout_ms" must be from 1`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls","env":{"A=B":"c"}}`, nil, `"A=B" can't be a variable`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":["ls"]}`, nil, `"command" must be a string, not a list`},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls"}`, errors.New("the engine is away"),
			"the engine is away"},
		{"sandbox_undo", `{"sandbox_id":"ID"}`, sandbox.ErrNoUndo, "there is no call that could be undone: "},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls"}`, &sandbox.QueueError{},
			"Retry after a short backoff"},
		{"sandbox_exec", `{"sandbox_id":"ID","command":"ls"}`, &sandbox.EndedError{Reason: "it ran out of memory"},
			`has ended: it ran out of memory. Use sandbox_list to see ids or sandbox_create for a new one; you have ` +
				`no live`},
		{"sandbox_info", `{"sandbox_id":"nope"}`, nil, `Not found: you have no sandbox "nope"`},
		{"sandbox_create", `{"from_snapshot":"s"}`, nil, "sandboxes have no snapshots"},
		{"sandbox_create", `{"secrets":{"A":"b"}}`, nil, "no way out"},
		{"sandbox_create", `{"allow_out":["x"]}`, nil, "no network"},
		{"sandbox_create", `{"deny_out":["0.0.0.0/0"]}`, nil, "no network"},
		{"sandbox_create", `{"keep_running":"yes"}`, nil, "must be true or false, not a string"},
		{"sandbox_create", `{"preview_access":"public"}`, nil, "no previews"},
		{"sandbox_update", `{"sandbox_id":"ID","allow_out":["x"]}`, nil, "no network"},
		{"sandbox_create", `{"from_template":"x"}`, nil, `there is no template "x"`},
		{"sandbox_create", `{"timeout_seconds":604801}`, nil, "must be from 1 to 604800"},
		{"sandbox_create", `{"auto_delete_seconds":2592001}`, nil, "must be from 0 to 2592000"},
		{"sandbox_create", `{"metadata":{"a":1}}`, nil, "values are strings"},
		{"sandbox_create", `{"metadata":{"a":"` + strings.Repeat("x", maxMetadata) + `"}}`, nil, "at most 16384"},
		{"sandbox_create", `{"name":"` + strings.Repeat("x", 101) + `"}`, nil, "longer than 100 bytes"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"/x"}`, nil, "/x: there is no such file. Use " +
			"sandbox_files_list"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"/x"}`, file("too_large"),
			"Use sandbox_exec with head -c"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"/x"}`, file("not_a_file"),
			"sandbox_files_list for a directory"},
		{"sandbox_files_list", `{"sandbox_id":"ID","path":"/x"}`, file("not_a_directory"),
			"sandbox_files_read for a file"},
		{"sandbox_files_write", `{"sandbox_id":"ID","path":"/x","content":"y"}`, file("denied"),
			"below /workspace or /tmp"},
		{"sandbox_files_download_dir", `{"sandbox_id":"ID","path":"/x"}`, file("failed"), "safe to retry"},
		{"sandbox_files_download_dir", `{"sandbox_id":"ID","path":"/x"}`, file("too_large"),
			"Use it for a directory below"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"/x"}`,
			&sandbox.FileError{Path: "/x", Err: "It was stopped.", Code: "failed"},
			"/x: It was stopped. It may be safe"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"binary"}`, nil, `pass encoding "base64"`},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"large"}`, nil, "too large"},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":"x","encoding":"latin1"}`, nil,
			`must be "text" or "base64"`},
		{"sandbox_files_read", `{"sandbox_id":"ID","path":""}`, nil, `"path" is empty`},
		{"sandbox_files_write", `{"sandbox_id":"ID","path":"x","content":"§","encoding":"base64"}`, nil,
			"is no base64"},
		{"sandbox_files_write", `{"sandbox_id":"ID","path":"x","content":"` + strings.Repeat("x", 8<<20+1) + `"}`,
			nil, "at most 8388608 can be written"},
		{"sandbox_template_create", `{"name":"x","packages":["a"],"vcpu":4}`, nil, "MCP_BRIDGE_CPUS"},
		{"sandbox_template_create", `{"name":"x","run_steps":["apt-get install gcc"]}`, nil,
			`the only step is "pip install`},
		{"sandbox_template_create", `{"name":"x","run_steps":["pip install -r x.txt"]}`, nil, `option "-r"`},
		{"sandbox_template_create", `{"name":"x"}`, nil, `"packages" is missing`},
		{"sandbox_template_create", `{"name":"x","from":"ubuntu","packages":["a"]}`, nil, `"from" must be "base"`},
		{"sandbox_kill", `{"sandbox_id":""}`, nil, `"sandbox_id" is empty`},
	} {
		t.Run(fmt.Sprintf("%s%.60s", tc.tool, tc.args), func(t *testing.T) {
			b := newBox(t)
			b.call("sandbox_create", `{}`)
			b.guests[0].err = tc.err
			b.guests[0].files = map[string]string{"binary": "\xff", "large": strings.Repeat("x", 1<<20+1)}
			if got := b.call(tc.tool, tc.args); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, tc.want) {
				t.Errorf("got  %.300s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestForeign: no tool works on another caller's sandbox, or tells that there is one.
func TestForeign(t *testing.T) {
	b := newBox(t)
	b.call("sandbox_create", `{"name":"mine"}`)
	id := b.id()
	for _, d := range Definitions() {
		if !strings.Contains(string(d.RawInputSchema), `"sandbox_id"`) {
			continue
		}
		args := func(id string) string {
			return `{"sandbox_id":"` + id + `"` + map[string]string{
				"sandbox_exec": `,"command":"ls"`, "sandbox_files_read": `,"path":"x"`,
				"sandbox_files_list":  `,"path":"x"`,
				"sandbox_files_write": `,"path":"x","content":"x"`, "sandbox_files_download_dir": `,"path":"x"`,
			}[d.Name] + "}"
		}
		theirs, report := b.by("other", d.Name, args(id))
		never, _ := b.by("other", d.Name, args("zzzz"))
		got, want := theirs.Content[0].(mcp.TextContent).Text, never.Content[0].(mcp.TextContent).Text
		if strings.ReplaceAll(got, id, "zzzz") != want || theirs.IsError != (d.Name != "sandbox_kill") {
			t.Errorf("%s tells another's sandbox from none: %s", d.Name, got)
		}
		if d.Name != "sandbox_kill" && report.Code != codeNotFound {
			t.Errorf("%s: %+v", d.Name, report)
		}
	}
	list, _ := b.by("other", "sandbox_list", `{}`)
	if text := string(list.RawStructuredContent); text != `{"sandboxes":[]}` {
		t.Errorf("another sees %s", text)
	}
	if g := b.guests[0]; len(g.commands) > 0 || len(g.files) > 0 || b.id() != id {
		t.Errorf("another has worked in it: %+v", g)
	}
}

// TestQuota: the ninth sandbox takes the place of the one that was not used for the longest time;
// one that can't be made leaves nothing.
func TestQuota(t *testing.T) {
	b := newBox(t)
	for i := range 9 {
		if got := b.call("sandbox_create", fmt.Sprintf(`{"name":"n%d"}`, i)); strings.Contains(got,
			`"ended"`) != (i == 8) {
			t.Errorf("the %d.: %s", i+1, got)
		}
	}
	list := b.registry.List("me")
	if len(list) != 8 || slices.ContainsFunc(list,
		func(i sandboxes.Info) bool { return i.Settings.Name == "n0" }) {
		t.Errorf("%d sandboxes", len(list))
	}
	for _, i := range list {
		c, err := b.registry.Enter(t.Context(), "me", i.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Leave()
	}
	if got := b.call("sandbox_create", `{}`); !strings.Contains(got, "Sandbox quota reached: you have 8 "+
		"sandboxes, which is the limit, and calls are under way in all of them. Kill one by sandbox_kill") {
		t.Error(got)
	}
	if got := b.call("sandbox_pause", `{"sandbox_id":"`+list[0].ID+`"}`); !strings.Contains(got,
		"is in a conflicting state: a call is under way in it. Re-check with sandbox_info") {
		t.Error(got)
	}
	other := newBox(t)
	other.fail = errors.New("there is no engine")
	if got := other.call("sandbox_create", `{}`); got != "error: there is no engine" ||
		len(other.registry.List("me")) > 0 {
		t.Errorf("%s; %v", got, other.registry.List("me"))
	}
}
