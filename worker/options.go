package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"stint/api"
	"stint/worker/agent"
	"stint/worker/places"
	"stint/worker/proc"
)

// Options says what a worker process serves and how. URL, Token and StateDir have no defaults;
// for everything else the zero value means what its comment says.
type Options struct {
	URL   string // the coordinator's, as for [api.ClientConfig]
	Token string // of the user whose sessions this process runs
	// Credentials returns that token for each call, in place of Token, as for
	// [api.ClientConfig].
	Credentials func(context.Context) (string, error)
	Workspace   string // id or slug; empty = default

	// StateDir is this process's own folder: its lock, its journal, its outbox. One process at
	// a time uses it. It is created with mode 0700 if it doesn't exist.
	StateDir string
	// MachineFile keeps the random name of this machine that folder keys are made with; empty
	// = one file per user, shared by all worker processes, so that they keep out of each
	// other's folders.
	MachineFile string

	// Agents are the ids or slugs to serve; none = every local agent of a type that this
	// process runs and that runs as this user, including those created later.
	Agents []string
	// Register allows this process to create a deleted worker record again, and to take over a
	// state directory from another account or server.
	Register bool
	// Embedded says that this process is part of a larger one, which a signal to a worker must
	// not end: a stopped record waits to be started again, a restarted one is registered
	// again.
	Embedded bool
	// Name distinguishes this worker from the user's others; empty = a name made from the
	// machine's random name, never the host's own.
	Name string
	// Slots is how many commands may run at once; 0 = 4.
	Slots  int
	Labels api.Labels
	// Env names more of this process's variables that every command gets.
	Env []string
	// FolderShared says that several sessions may use one work folder at once.
	FolderShared bool
	Version      string

	// MaxRetryAttempts is how often a failed command is run again under the same
	// claim; 0 = never. MaxRetryBackoff bounds the pause before that; 0 = 5 minutes.
	MaxRetryAttempts int
	MaxRetryBackoff  time.Duration

	// Stages are the graces when a command is ended; zero = those of contract 10.7.
	Stages proc.Stages
	// DrainGrace is the time that a command has between the interrupt and KILL when this
	// process shuts down, in place of the one in Stages, with TERM in between; 0 = 1.5 s.
	DrainGrace time.Duration
	// Goodbye bounds the reports at a shutdown; what is unsent then stays in the
	// outbox for the next start. 0 = 10 s.
	Goodbye time.Duration
	// OutboxBytes is how much unsent output of one session is kept before the command
	// has to wait; 0 = 64 MiB.
	OutboxBytes int64
	// MinFreeBytes is the floor of free space on the disks of the state directory and of the
	// workspaces: below it nothing new is taken; 0 = none. FreeBytes asks a disk, nil = not.
	MinFreeBytes int64
	FreeBytes    func(path string) (int64, error)
	// CleanUp are the limits by which this process removes workspaces that nobody needs, by
	// itself; zero = it removes none.
	CleanUp CleanUp

	// PromptHold is how long an agent that has asked people waits with its claim kept;
	// then its session is parked and the slot freed. 0 = 10 min. contract 6.5
	PromptHold time.Duration
	// Hidden are absolute paths that agents must not read, besides those of Stint's that this
	// process knows by itself: its own, those that every installation has, and those in
	// Places.
	Hidden []string
	// Places has the directories of other processes; empty = the user's own, or the folder
	// beside MachineFile where that is named.
	Places places.Books

	Clocks Clocks
	Log    *slog.Logger // nil = slog.Default()

	adapters  map[api.AgentType]adapter // nil = those that this program has
	transport http.RoundTripper         // nil = a client's own
	environ   []string                  // nil = os.Environ()
	boot      func() proc.BootTime      // nil = proc.BootNow
	at        func(p string)            // called at each step that a crash may come at; nil = nothing
}

// Clocks are the paces of a worker process. The zero value of each means its default.
type Clocks struct {
	Beat   time.Duration // 30 s; shorter if the coordinator wants that
	Signal time.Duration // 5 s: the pace of beats while a command runs
	Poll   time.Duration // 30 s
	Agents time.Duration // 30 s: how often the list of agents is read again
	Hold   time.Duration // 50 s, at most 60 s: how long a request for work is held
	Look   time.Duration // 1 s: how often a command's silence and folder are looked at
	Answer time.Duration // 10 s: how long a beat or renewal waits for its answer
	Tidy   time.Duration // 1 h: how often workspaces are cleaned up
}

// adapter is how agents of a type are run, and the name of their program.
type adapter struct {
	agent      agent.Agent
	executable string
}

// complete checks the options and fills in what was left out.
func (o Options) complete() (Options, error) {
	var bad error
	check := func(fine bool, format string, args ...any) {
		if !fine {
			bad = errors.Join(bad, fmt.Errorf(format, args...))
		}
	}
	check(o.StateDir != "", "a worker needs a state directory")
	check(o.Slots >= 0 && o.Slots <= 1000, "%d worker slots are not 1 to 1000", o.Slots)
	check(o.MaxRetryAttempts >= 0, "max retry attempts is negative")
	check(o.MaxRetryBackoff >= 0, "max retry backoff is negative")
	check(o.CleanUp.OlderThan >= 0 && o.CleanUp.KeepSize >= 0, "a limit of the clean-up is negative")
	check(o.Stages.Interrupt >= 0 && o.Stages.Term >= 0 && o.Stages.Kill >= 0, "a stage is negative")
	check(utf8.RuneCountInString(o.Name) <= 64, "the worker name %q is longer than 64 characters", o.Name)
	if bad != nil {
		return o, bad
	}
	dir, err := filepath.Abs(o.StateDir)
	if err != nil {
		return o, fmt.Errorf("find the state directory: %w", err)
	}
	o.StateDir = dir
	switch {
	case len(o.Places) > 0:
	case o.MachineFile == "":
		o.Places = places.Own()
	default:
		o.Places = places.Books{places.Book(filepath.Join(filepath.Dir(o.MachineFile), "places"))}
	}
	o.MachineFile = cmp.Or(o.MachineFile, filepath.Join(places.State(), "machine-id"))
	o.Slots = cmp.Or(o.Slots, 4)
	o.MaxRetryBackoff = cmp.Or(o.MaxRetryBackoff, 5*time.Minute)
	o.Stages = cmp.Or(o.Stages, proc.DefaultStages())
	o.Stages.Kill = cmp.Or(o.Stages.Kill, proc.DefaultStages().Kill)
	o.DrainGrace = cmp.Or(o.DrainGrace, 1500*time.Millisecond)
	o.PromptHold = cmp.Or(o.PromptHold, 10*time.Minute)
	o.Goodbye = cmp.Or(o.Goodbye, 10*time.Second)
	o.OutboxBytes = cmp.Or(o.OutboxBytes, 64<<20)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Clocks = Clocks{
		Beat: cmp.Or(o.Clocks.Beat, 30*time.Second), Signal: cmp.Or(o.Clocks.Signal, 5*time.Second), Poll: cmp.Or(o.Clocks.Poll, 30*time.Second),
		Agents: cmp.Or(o.Clocks.Agents, 30*time.Second), Hold: min(cmp.Or(o.Clocks.Hold, 50*time.Second), time.Minute),
		Look: cmp.Or(o.Clocks.Look, time.Second), Answer: cmp.Or(o.Clocks.Answer, 10*time.Second), Tidy: cmp.Or(o.Clocks.Tidy, time.Hour),
	}
	if o.adapters == nil {
		o.adapters = ownAdapters()
	}
	if o.environ == nil {
		o.environ = os.Environ()
	}
	if o.boot == nil {
		o.boot = proc.BootNow
	}
	if o.at == nil {
		o.at = func(string) {}
	}
	return o, nil
}
