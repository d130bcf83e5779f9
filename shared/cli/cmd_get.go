package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

type getCommand struct {
	Apps     getApps     `cmd:"" aliases:"app" help:"List applications."`
	Jobs     getJobs     `cmd:"" aliases:"job" help:"List jobs: the work on each component."`
	Nodes    getNodes    `cmd:"" aliases:"node" help:"List nodes."`
	Policies getPolicies `cmd:"" aliases:"policy" help:"List policies."`
	Clusters getClusters `cmd:"" aliases:"cluster" help:"List clusters."`

	Violations violationsCommand `cmd:"" aliases:"violation" help:"List the policies that are violated (violations)."`
	Revisions  historyCommand    `cmd:"" aliases:"revision" help:"List the descriptors that an application was given (history)."`
	Deployment getDeployment     `cmd:"" hidden:"" help:"As ICOS' shell calls it."`
	Resource   getNodes          `cmd:"" hidden:"" aliases:"resources" help:"As ICOS' shell calls it."`

	Controllers getControllers `cmd:"" aliases:"controller" help:"List controllers that the lighthouse knows."`
	Handovers   getHandovers   `cmd:"" aliases:"handover" help:"List applications that move between controllers."`
}

// listFlags are common to all listings.
type listFlags struct {
	outputFlag
	Watch bool `short:"w" help:"Show changes as they happen, until interrupted."`
}

// workFlags narrow listings of jobs and of applications.
type workFlags struct {
	Orchestrator string `enum:",${orchestrators}" default:"" placeholder:"TYPE" help:"Of their places: ${orchestrators}."`
	App          string `placeholder:"ID" complete:"app" help:"Application: id, beginning of its id, or name."`
}

// filter makes a filter from the flags. The server knows names and whole ids; the beginning of an id is looked up.
func (f *workFlags) filter(s *session) (api.Filter, error) {
	filter := api.Filter{Orchestrator: f.Orchestrator, App: f.App}
	id := strings.ToLower(f.App)
	switch {
	case !isIDPrefix(id):
	case len(id) == idLength:
		filter.App = id
	default:
		a, err := s.application(s.ctx, f.App)
		if err == nil {
			filter.App = a.ID
		} else if !missing(err) {
			return filter, err
		}
	}
	return filter, nil
}

// gone is the state of an item that a watch no longer finds.
const gone = "Gone"

type getApps struct {
	ID       string `arg:"" optional:"" help:"Only this application: id, beginning of its id, or name."`
	Output   format `short:"o" enum:"${formats},descriptor" default:"table" help:"How to show it: ${formats}; of one application descriptor, too."`
	Revision int64  `placeholder:"N" help:"With -o descriptor: that revision instead of the newest."`
	Watch    bool   `short:"w" help:"Show changes as they happen, until interrupted."`

	AllControllers bool          `short:"A" help:"Of all controllers that the lighthouse of the server knows."`
	Deadline       time.Duration `default:"5s" help:"How long all controllers together have, with --all-controllers."`

	workFlags
	State  string `enum:",${statuses}" default:"" placeholder:"STATUS" help:"As STATUS shows it: ${statuses}."`
	Health string `enum:",${healths}" default:"" placeholder:"HEALTH" help:"As HEALTH shows it: that of the component that fares worst. ${healths}."`
	Owner  string `placeholder:"NAME" help:"Who handed it in, as OWNER shows it."`
}

// matches reports whether the flags let the application through. They are compared here with what the columns show: the
// server's state and owner are those of jobs, as in ICOS.
func (c *getApps) matches(a *api.Application) bool {
	return (c.State == "" || c.State == a.Status) && (c.Owner == "" || c.Owner == a.Owner)
}

// list returns the applications that the flags let through.
func (c *getApps) list(ctx context.Context, s *session, filter api.Filter) ([]api.Application, error) {
	all, err := s.client.Applications(ctx, filter)
	return slices.DeleteFunc(all, func(a api.Application) bool { return !c.matches(&a) }), err
}

// Run lists applications.
func (c *getApps) Run(s *session) error {
	if c.AllControllers {
		return c.everywhere(s)
	}
	switch {
	case c.ID != "" && c.App != "":
		return usagef("an application is named twice: %s and --app %s", c.ID, c.App)
	case c.ID == "" && s.format == asDescriptor:
		return usagef("-o descriptor needs the name of an application")
	case c.Revision != 0 && s.format != asDescriptor:
		return usagef("--revision needs -o descriptor")
	case s.format == asDescriptor:
		return c.descriptor(s)
	case c.ID != "":
		a, err := s.application(s.ctx, c.ID) // of an unknown one an empty list would be no answer
		if err != nil {
			return err
		}
		c.App = a.ID
	}
	filter, err := c.filter(s)
	if err != nil {
		return err
	}
	filter.Light, filter.Health = !s.format.structured(), c.Health
	l := s.apps()
	l.watch = c.Watch
	l.fetch = func(ctx context.Context) ([]api.Application, error) { return c.list(ctx, s, filter) }
	return l.run(s)
}

// apps shows applications.
func (s *session) apps() *listing[api.Application] {
	l := &listing[api.Application]{
		what: "applications", kind: "app",
		key:    func(a api.Application) string { return a.ID },
		header: []string{"NAME", "ID", "STATUS", "HEALTH", "READY", "AGE"},
		row: func(a api.Application) []string {
			return []string{a.Name, shortID(a.ID), a.Status, or(a.Health), ready(&a), s.age(a.CreatedAt)}
		},
		steady: []int{2, 3, 4},
		again: func(ctx context.Context, a api.Application) (*api.Application, error) {
			return s.client.Application(ctx, a.ID)
		},
		gone: func(a *api.Application) { a.Status, a.Health, a.Message = gone, "", "" },
	}
	if s.wide() {
		l.header = append(l.header, "WANTED", "VERSION", "OWNER", "NAMESPACE", "PLACES", "MESSAGE")
		l.steady = []int{2, 3, 4, 6, 7, 10} // not the message, which counts the seconds of a silence
		l.row = func(a api.Application) []string {
			return []string{
				a.Name, a.ID, a.Status, or(a.Health), ready(&a), s.age(a.CreatedAt), a.Desired, strconv.FormatInt(a.Version, 10),
				or(a.Owner), a.Namespace, or(places(&a)), or(a.Message),
			}
		}
	}
	return l
}

// descriptor prints the document as it was handed in, so that it can be edited and applied again.
func (c *getApps) descriptor(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	r, err := s.client.Revision(s.ctx, a.ID, c.Revision, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, strings.TrimRight(r.Descriptor, "\n"))
	return err
}

// ready says how many components run, of how many.
func ready(a *api.Application) string {
	list := a.Components()
	running := 0
	for i := range list {
		if list[i].Available() {
			running++
		}
	}
	return fmt.Sprintf("%d/%d", running, len(list))
}

// places lists where the components are, each place once.
func places(a *api.Application) string {
	var list []string
	for _, j := range a.Components() {
		if at := j.Targets.String(); at != "" && !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	return strings.Join(list, ",")
}

type getJobs struct {
	listFlags
	workFlags
	State string `enum:",${states}" default:"" placeholder:"STATE" help:"${states}."`
	Owner string `placeholder:"AGENT" help:"Agent that has taken it, as AGENT shows it."`
}

// Run lists jobs.
func (c *getJobs) Run(s *session) error {
	filter, err := c.filter(s)
	if err != nil {
		return err
	}
	filter.State, filter.Owner, filter.Light = c.State, c.Owner, !s.format.structured()
	l := listing[api.Job]{
		watch: c.Watch, what: "jobs", kind: "job",
		fetch:  func(ctx context.Context) ([]api.Job, error) { return s.client.Jobs(ctx, filter) },
		key:    func(j api.Job) string { return j.ID },
		header: []string{"ID", "APP", "COMPONENT", "TYPE", "STATE", "TARGET", "AGENT", "AGE"},
		row: func(j api.Job) []string {
			return []string{
				shortEnd(j.ID), j.GroupName, j.Component(), kind(&j), j.State, or(j.Targets.String()), or(j.OwnerID), s.age(j.CreatedAt),
			}
		},
		steady: []int{3, 4, 5, 6},
		again:  func(ctx context.Context, j api.Job) (*api.Job, error) { return s.client.Job(ctx, j.ID) },
		gone:   func(j *api.Job) { j.State = gone },
	}
	if s.wide() {
		l.header = append(l.header, "ORCHESTRATOR", "EPOCH", "LEASE", "CONDITION", "RESOURCE")
		l.steady = append(l.steady, 8, 9, 11, 12)
		narrow := l.row
		l.row = func(j api.Job) []string {
			row := narrow(j)
			row[0] = j.ID
			return append(row, or(j.Orchestrator), strconv.FormatInt(j.Epoch, 10), s.lease(&j), or(condition(&j)),
				or(j.Resource.UUID))
		}
	}
	return l.run(s)
}

// kind is the type of a job in one word, with its sub type: create, delete, update scale-up, update replace.
func kind(j *api.Job) string {
	word := strings.ToLower(strings.TrimSuffix(j.Type, "Deployment"))
	if j.SubType != "" {
		word += " " + j.SubType
	}
	return word
}

func (s *session) lease(j *api.Job) string {
	if j.LeaseUntil == nil {
		return "-"
	}
	if left := j.LeaseUntil.Sub(s.now()); left > 0 {
		return span(left)
	}
	return "lapsed"
}

// condition is the newest condition that is true, with its message.
func condition(j *api.Job) string {
	text, newest := "", time.Time{}
	for _, c := range j.Resource.Conditions {
		if c.Status == "True" && !c.LastTransitionTime.Before(newest) {
			text, newest = c.Type, c.LastTransitionTime
			if c.Reason == "AwaitingForTarget" || c.Reason == "AwaitingForExecution" {
				text = c.Reason
			}
		}
	}
	return text
}
