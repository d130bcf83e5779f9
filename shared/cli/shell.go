package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/littoral-project/littoral/shared/api"
)

// Exit codes. plan has its own: 0 nothing to do, 1 changes, 255 error.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
	exitPlanFailed  = 255
)

// commands is the command line; kong reads it.
type commands struct {
	Server    string `help:"Base URL of the server (LITTORAL_SERVER; default: see below)." placeholder:"URL"`
	Context   string `help:"Context of the server (LITTORAL_CONTEXT; see: littoral context)." placeholder:"NAME" complete:"context"`
	TokenFile string `help:"File with the access token (LITTORAL_TOKEN_FILE)." placeholder:"FILE"`

	Apply       applyCommand       `cmd:"" group:"Applications:" help:"Create an application, or update that of the name."`
	Submit      submitCommand      `cmd:"" group:"Applications:" help:"Create another application (apply --new)."`
	Plan        planCommand        `cmd:"" group:"Applications:" help:"Show what apply would change."`
	Diff        diffCommand        `cmd:"" group:"Applications:" help:"Show which fields of an application a descriptor changes."`
	Explain     explainCommand     `cmd:"" group:"Applications:" help:"Say why components go where they do."`
	Start       startCommand       `cmd:"" group:"Applications:" help:"Ask a stopped application to run again."`
	Stop        stopCommand        `cmd:"" group:"Applications:" help:"Remove what runs of an application, but keep it."`
	Delete      deleteCommand      `cmd:"" group:"Applications:" help:"Stop an application and forget it."`
	History     historyCommand     `cmd:"" group:"Applications:" help:"List the descriptors that an application was given."`
	Rollback    rollbackCommand    `cmd:"" group:"Applications:" help:"Give an application a descriptor that it had."`
	Edit        editCommand        `cmd:"" group:"Applications:" help:"Change the descriptor of an application in your editor."`
	Scale       scaleCommand       `cmd:"" group:"Applications:" help:"Change how many replicas a component has."`
	Pin         pinCommand         `cmd:"" group:"Applications:" help:"Fix a component to a node."`
	Whatif      whatifCommand      `cmd:"" group:"Nodes:" help:"Say what would happen, and change nothing."`
	Cordon      cordonCommand      `cmd:"" group:"Nodes:" help:"Close a node to new components."`
	Uncordon    uncordonCommand    `cmd:"" group:"Nodes:" help:"Open a node again that was cordoned or drained."`
	Drain       drainCommand       `cmd:"" group:"Nodes:" help:"Close a node and move its components elsewhere."`
	Move        moveCommand        `cmd:"" group:"Applications:" help:"Hand an application over to another controller."`
	Wait        waitCommand        `cmd:"" group:"Applications:" help:"Wait until an application is as you want it."`
	Get         getCommand         `cmd:"" group:"Looking:" help:"List applications, jobs, nodes or clusters."`
	Controllers getControllers     `cmd:"" group:"Looking:" help:"List controllers that the lighthouse knows (get controllers)."`
	Describe    describeCommand    `cmd:"" group:"Looking:" help:"Show all of one application."`
	Top         topCommand         `cmd:"" group:"Looking:" help:"Show what nodes and applications use."`
	Tree        treeCommand        `cmd:"" group:"Looking:" help:"Show an application down to its objects and policies."`
	Violations  violationsCommand  `cmd:"" group:"Looking:" help:"List the policies that are violated."`
	Suggestions suggestionsCommand `cmd:"" group:"Looking:" help:"List remediations that wait for a person."`
	Suggestion  suggestionCommand  `cmd:"" group:"Applications:" help:"Confirm or dismiss a suggested remediation."`
	Policy      policyCommand      `cmd:"" group:"Applications:" help:"Activate, deactivate and change a policy."`
	Events      eventsCommand      `cmd:"" group:"Looking:" help:"Show what happened."`
	Logs        logsCommand        `cmd:"" group:"Looking:" help:"Show what an application writes, wherever it runs."`
	Replay      replayCommand      `cmd:"" group:"Looking:" help:"Send an event again that a function did not take."`
	Fleet       fleetCommand       `cmd:"" group:"Laptop:" help:"Look at a laptop host's simulated fleet; make it fail."`
	Up          upCommand          `cmd:"" group:"Laptop:" passthrough:"" help:"Run Littoral on this machine."`

	Generate generateCommand `cmd:"" group:"Laptop:" help:"Make up clusters, applications and measurements."`

	// as ICOS' shell calls them
	Create createCommand `cmd:"" hidden:"" help:"As submit."`
	Update updateCommand `cmd:"" hidden:"" help:"As apply --app."`
	Add    addCommand    `cmd:"" hidden:"" help:"Tell the lighthouse of a controller."`
	Auth   authCommand   `cmd:"" hidden:"" help:"As login and logout."`

	// "context" is a flag, too.
	Contexts contextCommand `cmd:"" name:"context" group:"Other:" help:"Name controllers, and choose one."`

	Login  loginCommand  `cmd:"" group:"Other:" help:"Sign in at the server's issuer."`
	Logout logoutCommand `cmd:"" group:"Other:" help:"Forget the tokens of login."`
	Whoami whoamiCommand `cmd:"" group:"Other:" help:"Show who the server takes you for."`

	Backup  backupCommand  `cmd:"" group:"Other:" passthrough:"" help:"Write all that Littoral keeps into a file."`
	Restore restoreCommand `cmd:"" group:"Other:" passthrough:"" help:"Make a backup the content of the database."`

	Completion completionCommand `cmd:"" group:"Other:" help:"Print a completion script for bash, zsh or fish."`
	Console    consoleCommand    `cmd:"" group:"Looking:" help:"Open the console in a browser, signed in."`
	Doctor     doctorCommand     `cmd:"" group:"Other:" help:"Say what is wrong with an installation, and what to do."`
	Version    versionCommand    `cmd:"" group:"Other:" help:"Print the version."`
}

const about = `Littoral places applications on a continuum of clusters and devices and keeps them there.

An ID names an application by its id, by an unambiguous beginning of it (4 digits or more) or by its name, when only one
has it.

The server is that of --server or --context, else LITTORAL_SERVER, else that of LITTORAL_CONTEXT, else of the context in use,
else the one that "littoral up" runs with the home LITTORAL_HOME (default ./.littoral), else ` + DefaultServer + `.

The access token is that of --token-file, else LITTORAL_TOKEN, else the file LITTORAL_TOKEN_FILE, else that of "littoral
login" for the server, else, for a server on this machine, what "littoral up" wrote: token-admin in LITTORAL_HOME.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; plan: 0 nothing to do, 1 changes, 255 error;
diff: 0 no difference, 1 some, 2 error.`

// Shell is where commands run.
type Shell struct {
	Name           string // of the program in its help; "" = littoral
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	HTTP           *http.Client     // nil = a client without timeout, since the user can press Ctrl-C
	Now            func() time.Time // nil = time.Now
	Poll           time.Duration    // between two requests while waiting; 0 = DefaultPoll

	// Exec replaces the process; nil = become.
	Exec func(path string, args, env []string) error
	// Edit opens a file in the user's editor and waits for it; nil = $VISUAL, $EDITOR or vi.
	Edit func(ctx context.Context, file string) error
	// Open opens an address in the desktop's browser; nil = by the desktop's own command.
	Open func(ctx context.Context, address string) error
}

// DefaultPoll is the time between two requests while waiting or watching.
const DefaultPoll = 300 * time.Millisecond

// Main runs the command of this process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sh := Shell{Name: calledAs(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	return sh.Run(ctx, os.Args[1:])
}

// calledAs is the name by which the user has called the program: "kn littoral" as a plugin of kn, which runs kn-littoral.
func calledAs(program string) string {
	if base := strings.TrimSuffix(filepath.Base(program), ".exe"); base == "kn-littoral" {
		return "kn littoral"
	}
	return "littoral"
}

// exited is what our kong.Exit panics with; kong calls it after --help.
type exited int

// Run parses the arguments, runs the command and returns the exit code. It writes every error to Stderr, with advice.
func (sh *Shell) Run(ctx context.Context, args []string) (code int) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(exited)
			if !ok {
				panic(p)
			}
			code = int(e)
		}
	}()
	var cli commands
	name := cmp.Or(sh.Name, "littoral")
	parser, err := newParser(sh, &cli, name)
	if err != nil {
		panic(err) // the commands struct is wrong; every test would find that
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help": // also accept the form: littoral help fleet set
		args = append(slices.Clone(args[1:]), "--help")
	}
	if args[0] == completeWord {
		return sh.complete(ctx, parser.Model, args[1:])
	}
	parsed, err := parser.Parse(apart(args))
	if err != nil {
		return sh.misused(err)
	}
	s, err := sh.session(ctx, cli.Server, cli.TokenFile, cli.Context)
	s.show(formOf(parsed))
	if err == nil {
		err = parsed.Run(s)
	}
	switch command := parsed.Command(); {
	case strings.HasPrefix(command, "plan"):
		return s.planExit(err)
	case strings.HasPrefix(command, "diff"):
		return s.diffExit(err)
	}
	return s.exit(err)
}

func newParser(sh *Shell, cli *commands, name string) (*kong.Kong, error) {
	return kong.New(cli, kong.Name(name), kong.Description(about),
		kong.Writers(sh.Stdout, sh.Stderr), kong.Exit(func(code int) { panic(exited(code)) }),
		kong.Vars{
			"states":        "Created,Progressing,Finished,Degraded",
			"healths":       "Healthy,Progressing,Unknown,Degraded",
			"statuses":      "Pending,Deploying,Available,Degraded,Unknown,Stopping,Stopped,Deleting,Away",
			"orchestrators": "ocm,nuvla,kubernetes", "formats": "table,wide,json,yaml,name", "goals": "available,finished,stopped,deleted",
		}, kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}), kong.Help(helpWithExample))
}

// misused reports arguments that kong could not parse.
func (sh *Shell) misused(err error) int {
	fmt.Fprintf(sh.Stderr, "littoral: %v\n", err)
	var parse *kong.ParseError
	name := "littoral"
	if errors.As(err, &parse) && parse.Context.Command() != "" {
		name += " " + words(parse.Context.Command())
	}
	fmt.Fprintf(sh.Stderr, "See: %s --help\n", name)
	return exitUsage
}

// words keeps the words of a command and drops its arguments: "start app <id>" becomes "start app".
func words(command string) string {
	var kept []string
	for word := range strings.FieldsSeq(command) {
		if !strings.HasPrefix(word, "<") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}

// exit reports the error, if any, and returns the code that it means.
func (s *session) exit(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errQuiet):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(s.err, "littoral: %s\n", usage)
		return exitUsage
	case errors.Is(err, context.Canceled) && s.ctx.Err() != nil:
		fmt.Fprintln(s.err, "littoral: interrupted; what was asked for goes on")
		return exitInterrupted
	}
	fmt.Fprintf(s.err, "littoral: %s\n", s.explain(err))
	return exitFailed
}

// errChanges makes plan exit with 1.
var errChanges = errors.New("there are changes")

// errQuiet fails without printing anything, since everything was said before.
var errQuiet = errors.New("failed")

// diffExit is as that of diff(1): 0 no difference, 1 some, 2 trouble.
func (s *session) diffExit(err error) int {
	if errors.Is(err, errChanges) {
		return exitFailed
	}
	if code := s.exit(err); code != exitFailed {
		return code
	}
	return exitUsage
}

func (s *session) planExit(err error) int {
	if errors.Is(err, errChanges) {
		return exitFailed
	}
	code := s.exit(err)
	if code == exitFailed || code == exitInterrupted {
		return exitPlanFailed
	}
	return code
}

// usageError is a fault in the arguments that kong cannot find.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// session is what a command works with.
type session struct {
	ctx               context.Context
	client            *api.Client
	in                io.Reader
	out               io.Writer
	err               io.Writer
	display                   // of out
	format            format  // how the result is shown
	screen            *screen // progress on out
	now               func() time.Time
	poll              time.Duration
	getenv            func(string) string
	exec              func(path string, args, env []string) error
	open              func(ctx context.Context, address string) error
	edit              func(ctx context.Context, file string) error
	server, tokenFile string // of the flags, as given
	named             string // the context that says which server; "" when something else does

	token string // where the access token comes from, for people

	warned []string // warnings of the taxonomy that were printed
	away   string   // why the server cannot be reached during a watch; "" when it can
}

// apart takes a name with its kind apart, as kubectl writes it: "describe app/shop" is "describe app shop".
func apart(args []string) []string {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		kind, name, both := strings.Cut(arg, "/")
		if i > 0 && both && name != "" && slices.Contains(kindsOfThings, kind) && slices.Contains(verbsOfThings, args[i-1]) {
			return slices.Concat(args[:i], []string{kind, name}, args[i+1:])
		}
	}
	return args
}

var (
	kindsOfThings = []string{"app", "apps", "job", "jobs", "node", "nodes", "cluster", "clusters", "policy", "policies", "controller", "controllers"}
	verbsOfThings = []string{"get", "describe", "start", "stop", "delete", "wait"}
)
