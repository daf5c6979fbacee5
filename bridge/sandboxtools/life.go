package sandboxtools

import (
	"errors"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/output"
	"github.com/mcp-bridge/mcp-bridge/bridge/sandboxes"
	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/sandbox"
)

// Bounds of times that a caller chooses, in seconds.
const (
	mostTimeout = 7 * 24 * 60 * 60
	mostDelete  = 30 * 24 * 60 * 60
)

func lifeTools() []tool {
	id := field{"sandbox_id", "string", "", true}
	timeout := "ends it after that much time not paused"
	remove := "ends it after that long a pause"
	state := []field{{"id", "string", "", true}, {"status", "string", "active, paused or hibernated", true}}
	return []tool{
		{"sandbox_create", "Create a sandbox",
			"Create a sandbox: Linux with Python, files in /workspace and /tmp, no network. It is ready at once; " +
				"run_python takes its id too. All is stopped between calls; keep_running lets processes run on, not " +
				"threads.",
			[]field{{"name", "string", "", false}, {"from_template", "string", "see sandbox_template_list", false},
				{"timeout_seconds", "integer", timeout, false}, {"auto_delete_seconds", "integer", remove, false},
				{"metadata", "map", "", false}, {"env_vars", "map", "no secrets", false},
				{"keep_running", "boolean", "", false}},
			[]field{{"id", "string", "", true}, {"name", "string", "", true}, {"status", "string", "", true},
				{"metadata", "map", "", true}},
			hints(false, false, false), (*call).create},
		{"sandbox_update", "Change a sandbox", "Change a sandbox's metadata or times; null takes a time away.",
			[]field{id, {"metadata", "map", "replaces all", false}, {"timeout_seconds", "limit", timeout, false},
				{"auto_delete_seconds", "limit", remove, false}},
			[]field{{"id", "string", "", true}}, hints(false, true, false), (*call).update},
		{"sandbox_list", "List sandboxes", "List your sandboxes, the last used first.",
			[]field{{"metadata", "map", "only those that have all of it", false}},
			[]field{{"sandboxes", "objects", "", true}}, hints(true, false, true), (*call).list},
		{"sandbox_info", "Describe a sandbox", "Get a sandbox's status, resources and metadata.",
			[]field{id},
			[]field{{"id", "string", "", true}, {"name", "string", "", true}, {"status", "string", "", true},
				{"template", "string", "", true}, {"vcpu_count", "number", "", true},
				{"memory_mib", "integer", "", true}, {"created_at", "string", "", true},
				{"metadata", "map", "", true}, {"calls", "integer", "runs of run_python", true},
				{"timeout_seconds", "integer", "", false}, {"auto_delete_seconds", "integer", "", false},
				{"auto_delete_at", "string", "", false}},
			hints(true, false, true), (*call).info},
		{"sandbox_undo", "Undo a run", "Give the variables of a sandbox the values of before the last run of " +
			"run_python. Files stay.",
			[]field{id}, []field{{"id", "string", "", true}, {"state", "string", "", true},
				{"message", "string", "", false}},
			hints(false, true, false), (*call).undo},
		{"sandbox_pause", "Pause a sandbox", "Pause a sandbox: it doesn't end while idle; all is kept.",
			[]field{id}, state, hints(false, false, true), (*call).pause},
		{"sandbox_resume", "Resume a sandbox", "Resume a paused sandbox. Other tools do so by themselves.",
			[]field{id}, state, hints(false, false, true), (*call).resume},
		{"sandbox_kill", "End a sandbox", "End a sandbox and delete its files, for good.",
			[]field{id}, []field{{"id", "string", "", true}, {"deleted", "boolean", "", true}},
			hints(false, true, true), (*call).kill},
	}
}

// listed is a sandbox in results.
type listed struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
}

func listedOf(i sandboxes.Info) listed {
	l := listed{ID: i.ID, Name: i.Settings.Name, Status: i.Status(), Metadata: i.Settings.Metadata}
	if l.Metadata == nil {
		l.Metadata = map[string]string{}
	}
	return l
}

func (c *call) create() (any, error) {
	s := sandboxes.Settings{
		Name: c.text("name"), Metadata: c.texts("metadata", maxMetadata), Variables: c.variables("env_vars"),
		Running: c.yes("keep_running"), Principal: c.caller.Principal,
		Timeout:    seconds(c.number("timeout_seconds", 0, 1, mostTimeout)),
		AutoDelete: seconds(c.number("auto_delete_seconds", 0, 0, mostDelete)),
	}
	template := c.text("from_template")
	if len(s.Name) > maxName {
		c.fail(`argument "name" is longer than %d bytes`, maxName)
	}
	if c.wrong != nil {
		return nil, c.wrong
	}
	box, err := c.cfg.Registry.Begin(c.caller.Owner, s)
	if err != nil {
		return nil, err
	}
	defer box.Leave()
	env, err := c.cfg.Templates.Named(c.ctx, template, c.pass, c.caller.Progress)
	if err == nil {
		err = c.caller.Wait(c.ctx)
	}
	if err == nil {
		_, err = box.Guest(c.ctx, env, c.caller.Pass, c.caller.Progress)
	}
	if err != nil {
		return nil, err
	}
	c.report.Sandbox = box.ID()
	created := struct {
		listed
		Ended string `json:"ended,omitempty"` // to make room for it
	}{listedOf(sandboxes.Info{ID: box.ID(), Settings: s}), box.Ended}
	return created, nil
}

// pass lets the next call go on once it is this one's turn.
func (c *call) pass() {
	if c.caller.Wait(c.ctx) == nil {
		c.caller.Pass()
	}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (c *call) update() (any, error) {
	id, metadata := c.id(), c.texts("metadata", maxMetadata)
	timeout := seconds(c.number("timeout_seconds", 0, 1, mostTimeout))
	remove := seconds(c.number("auto_delete_seconds", 0, 0, mostDelete))
	if c.wrong != nil {
		return nil, c.wrong
	}
	i, err := c.cfg.Registry.Update(c.caller.Owner, id, func(s *sandboxes.Settings) {
		if metadata != nil {
			s.Metadata = metadata
		}
		if c.has("timeout_seconds") || c.nulls["timeout_seconds"] {
			s.Timeout = timeout
		}
		if c.has("auto_delete_seconds") || c.nulls["auto_delete_seconds"] {
			s.AutoDelete = remove
		}
	})
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": i.ID}, nil
}

func (c *call) list() (any, error) {
	filter := c.texts("metadata", maxMetadata)
	all := []listed{}
each:
	for _, i := range c.cfg.Registry.List(c.caller.Owner) {
		for k, v := range filter {
			if has, ok := i.Settings.Metadata[k]; !ok || has != v {
				continue each
			}
		}
		all = append(all, listedOf(i))
	}
	return map[string]any{"sandboxes": all}, nil
}

// described is the result of sandbox_info.
type described struct {
	listed
	Template   string  `json:"template"`
	CPUs       float64 `json:"vcpu_count"`
	Memory     int64   `json:"memory_mib"`
	Created    string  `json:"created_at"`
	Calls      int     `json:"calls"`
	Timeout    int64   `json:"timeout_seconds,omitempty"`
	AutoDelete int64   `json:"auto_delete_seconds,omitempty"`
	DeletedAt  string  `json:"auto_delete_at,omitempty"`
}

func (c *call) info() (any, error) {
	i, err := c.cfg.Registry.Info(c.caller.Owner, c.id())
	if err != nil {
		return nil, err
	}
	d := described{listed: listedOf(i), Template: templateName(i.Environment), CPUs: i.Limits.CPUs,
		Memory: i.Limits.Memory >> 20, Created: i.Created.UTC().Format(time.RFC3339), Calls: i.Calls,
		Timeout: int64(i.Settings.Timeout.Seconds()), AutoDelete: int64(i.Settings.AutoDelete.Seconds())}
	if d.CPUs == 0 {
		d.CPUs = float64(goruntime.NumCPU())
	}
	if !i.DeletedAt.IsZero() {
		d.DeletedAt = i.DeletedAt.UTC().Format(time.RFC3339)
	}
	return d, nil
}

func (c *call) undo() (any, error) {
	var state sandbox.KeptState
	err := c.within(func(g sandboxes.Guest) (err error) {
		state, err = g.Undo(c.ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var said []string
	if state.State == sandbox.StateBefore {
		i, err := c.cfg.Registry.Info(c.caller.Owner, c.report.Sandbox)
		said = append(said, output.Gone(err == nil && i.Settings.Running))
	}
	if state.Note != "" {
		said = append(said, text.Safe(state.Note))
	}
	done := map[string]any{"id": c.report.Sandbox, "state": state.State}
	if said != nil {
		done["message"] = strings.Join(said, "; ")
	}
	return done, nil
}

func (c *call) pause() (any, error) {
	i, err := c.cfg.Registry.Pause(c.caller.Owner, c.id())
	return stateOf(i, err)
}

func (c *call) resume() (any, error) {
	id := c.id()
	i, err := c.cfg.Registry.Resume(c.caller.Owner, id)
	if errors.As(err, new(*sandboxes.AsleepError)) {
		if err = c.within(func(sandboxes.Guest) error { return nil }); err == nil {
			i, err = c.cfg.Registry.Info(c.caller.Owner, id)
		}
	}
	return stateOf(i, err)
}

func stateOf(i sandboxes.Info, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": i.ID, "status": i.Status()}, nil
}

// kill succeeds for a sandbox that isn't there, too.
func (c *call) kill() (any, error) {
	id := c.id()
	if id == "" {
		c.fail(`argument "sandbox_id" is empty`)
	}
	if c.wrong != nil {
		return nil, c.wrong
	}
	by := "it was ended by sandbox_kill" // over HTTP also in another session
	if c.caller.User {
		by = "the user has ended it by mcp-bridge sandbox kill"
	}
	c.cfg.Registry.End(c.caller.Owner, id, by)
	return map[string]any{"id": id, "deleted": true}, nil
}
