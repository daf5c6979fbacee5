// Package environments makes images in which code finds the packages that it imports. An
// environment is a base image and one layer of unpacked wheels below /opt/env, which package wheels
// chooses and checks. An engine keeps it as an image with our labels, so that its labels alone tell
// what it is: nothing on this machine has to be remembered.
//
// Nothing of a package runs outside a container, and none runs while its environment is built. The
// image's own Python compiles the sources in a locked-down container of the base image, where they
// are text that comes in on standard input; it imports nothing of them.
//
// The package has no policy: its caller decides which environment code gets, and whether one may be
// built.
package environments

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/trust"
	"github.com/mcp-bridge/mcp-bridge/runtime/wheels"
)

// Data is the environment that comes with the program.
const Data = "data"

// Environment is one that is built. All but Imports, Limits and Outdated stands in its image's
// labels.
type Environment struct {
	Name  string
	Image runtime.Image // containers are made by its ID
	Base  string        // id of the image below the packages

	Interpreter   wheels.Interpreter
	Distributions []wheels.Distribution // what it has, and by which names code imports it
	Lock          string                // digest of the lock that it was built from
	Layer         string                // digest of the layer: equal for equal locks and interpreters
	Size          int64                 // bytes of the layer
	Bytecode      Bytecode              // zero for an image of a bridge that didn't count
	Built         time.Time

	// Imports are the modules that NAME.toml wants imported ahead in guests that wait.
	Imports []string
	// Limits are those of NAME.toml. A field that is zero is the bridge's own.
	Limits runtime.Limits
	// Outdated says why it should be built again, as a clause such as "its lock has changed", or is
	// empty. An outdated environment can still be used.
	Outdated string
}

func (e Environment) String() string {
	var have []string
	for _, d := range e.Distributions {
		have = append(have, d.Name+" "+d.Version)
	}
	return e.Name + " (" + strings.Join(have, ", ") + ")"
}

// Path is the directory with the packages in a container of an environment. Code has it on
// sys.path, not as a site directory.
const Path = "/" + wheels.Root

// Step is how far a build is.
type Step struct {
	Text    string // what is being done, for a person: "downloading 12 of 58 MB"
	Percent int    // 0 to 100; never less than before
}

// Progress takes the steps of a build, from one goroutine at a time. It must not block.
type Progress func(Step)

// Config has what New needs. Driver, Images, User and Owner are required.
type Config struct {
	Driver   runtime.Driver
	Images   []string // base images: the first that the engine has is used. They aren't pulled here
	User     string   // "uid:gid" of the runs that ask for the interpreter and compile
	Owner    runtime.Owner
	Dir      string // has the files NAME.toml; empty for none
	CacheDir string // of wheels and of builds under way; without it nothing can be built

	Trust  trust.Owners                      // of whose files settings and locks are taken
	Index  string                            // as in wheels.Cache; empty for that of uv and pip
	Limit  int64                             // bytes of all environments together; 0 for no bound
	MinAge time.Duration                     // of releases that are locked; 0 for a week
	File   func(path string) (forget func()) // told of what must not outlive us; may be nil
	Log    *slog.Logger                      // nil means silence
}

// Environments finds and builds environments. It is safe for concurrent use.
type Environments struct {
	settings

	driver runtime.Driver
	images []string // base images
	owner  runtime.Owner
	limit  int64 // bytes of all together; 0 for no bound
	log    *slog.Logger

	python   pythons
	resolver resolver
	cache    cacheDir

	mu     sync.Mutex
	listed []Environment // what List returned last
	at     time.Time     // when it did; zero for never
}

// New returns the environments of an engine, which it asks nothing yet.
func New(cfg Config) *Environments {
	return &Environments{
		settings: settings{dir: cfg.Dir, trust: cfg.Trust},
		driver:   cfg.Driver, images: cfg.Images, owner: cfg.Owner, limit: cfg.Limit,
		log:      cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)),
		python:   pythons{driver: cfg.Driver, user: cfg.User, owner: cfg.Owner},
		resolver: resolver{trust: cfg.Trust, index: cfg.Index, minAge: cfg.MinAge},
		cache:    cacheDir{path: cfg.CacheDir, file: cfg.File},
	}
}

// Follow replaces Config.Index and Config.MinAge for what is locked and built from now on.
func (e *Environments) Follow(index string, minAge time.Duration) {
	e.resolver.mu.Lock()
	defer e.resolver.mu.Unlock()
	e.resolver.index, e.resolver.minAge = index, minAge
}

// NotBuiltError says that an environment is known and that the engine has no image of it. Build
// makes it.
type NotBuiltError struct{ Name string }

func (e *NotBuiltError) Error() string { return fmt.Sprintf("the environment %s is not built", e.Name) }

// Hint names the next step for a person.
func (e *NotBuiltError) Hint() string { return "build it: mcp-bridge env build " + e.Name }

// UnknownError says that no environment has that name.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no environment %q; there are: %s", e.Name, strings.Join(e.Known, ", "))
}

// Hint names the next step for a person.
func (e *UnknownError) Hint() string {
	return "make one: mcp-bridge env add " + text.ShellWord(e.Name) + " PACKAGE…"
}

// MissingError says that no environment that is built has all that a block asks for.
type MissingError struct {
	Missing []string      // what the nearest of them lacks, as the block has it
	Asked   []string      // all that the block asks for
	Python  string        // what it asks of Python's version, where none that is built has that
	Built   []Environment // all that are built
	Cluster bool          // the engine is one, which builds none
	// Buildable are names of environments that aren't built, and whose locks have all of it; the ones
	// with the fewest packages first.
	Buildable []string
	// Meant are packages of environments, built or not, whose names are like the missing ones.
	Meant []string
}

func (e *MissingError) Error() string {
	if e.Python != "" {
		return fmt.Sprintf("the code needs Python %s (requires-python), there is %s", e.Python,
			e.Built[0].Interpreter.Version)
	}
	var have []string
	for _, env := range e.Built {
		have = append(have, env.String())
	}
	if have == nil {
		have = []string{"none"}
	}
	meant := ""
	if len(e.Meant) > 0 {
		meant = " (did you mean " + strings.Join(text.Quote(e.Meant), ", ") + "?)"
	}
	return fmt.Sprintf("no environment has %s%s; built are: %s", strings.Join(e.Missing, ", "), meant,
		strings.Join(have, "; "))
}

// Hint names the next step for a person.
func (e *MissingError) Hint() string {
	if e.Cluster && e.Python == "" {
		return elsewhere(append(e.Buildable, "NAME")[0])
	}
	if len(e.Buildable) > 0 {
		return "build the one that has it: mcp-bridge env build " + e.Buildable[0]
	}
	if i := slices.IndexFunc(e.Missing, wheels.IsStandard); i >= 0 {
		return e.Missing[i] + " comes with Python: leave it out of the code's dependencies"
	}
	if e.Python != "" {
		return "change requires-python in the code, or name an image with that Python: docs/environments.md"
	}
	add := "make one: mcp-bridge env add NAME"
	if len(e.Meant) > 0 { // a misspelt name may be another's package
		add = "mend the name in the code; or, if it is right, make one: mcp-bridge env add NAME"
	}
	for _, word := range e.Asked { // code wrote them
		add += " " + text.ShellWord(word)
	}
	return add
}
