package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type describeCommand struct {
	App describeApp `cmd:"" default:"withargs" aliases:"apps" help:"Show one application."`

	Job        describeJob        `cmd:"" aliases:"jobs" help:"Show one job."`
	Node       describeNode       `cmd:"" aliases:"nodes" help:"Show one node and what runs there."`
	Cluster    describeCluster    `cmd:"" aliases:"clusters" help:"Show one cluster and its nodes."`
	Policy     describePolicy     `cmd:"" aliases:"policies,violation,violations" help:"Show one policy and what it watches."`
	Controller describeController `cmd:"" aliases:"controllers" help:"Show one controller that the lighthouse knows."`
	Revision   historyCommand     `cmd:"" aliases:"revisions" help:"Show a descriptor that an application was given (history)."`
}

// Help is the long help of describe.
func (describeCommand) Help() string {
	return "Examples: littoral describe shop; littoral describe app/shop; littoral describe node edge-1"
}

type describeApp struct {
	appArgument
	outputFlag
	History int `default:"20" help:"How many of the last events to show; -o wide shows all."`
}

// description is the answer of "describe app -o json".
type description struct {
	Application *api.Application `json:"application"`
	Decisions   []decision       `json:"decisions"` // those that hold, oldest first
	History     []api.Entry      `json:"history"`
}

// maxHistory is how many entries "describe app -o json" has.
const maxHistory = 1000

// Run shows the application.
func (c *describeApp) Run(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	entries, err := s.client.History(s.ctx, api.HistoryQuery{App: a.ID, After: -1, Limit: maxHistory})
	if err != nil {
		return err
	}
	decisions, err := s.decisions(a)
	if err != nil {
		return err
	}
	if done, err := s.said(description{a, decisions, entries}, "app/"+a.ID); done {
		return err
	}
	s.describe(a)
	for _, j := range a.Jobs {
		if err := s.job(a, &j, decisions); err != nil {
			return err
		}
	}
	if err := s.describeDecisions(a, decisions); err != nil {
		return err
	}
	return s.describeHistory(a, entries, c.History)
}

func (s *session) describe(a *api.Application) {
	status := a.Status
	if a.Message != "" {
		status += " (" + a.Message + ")"
	}
	s.fields("", [][2]string{
		{"Name", a.Name},
		{"ID", a.ID},
		{"Description", a.Description},
		{"Namespace", a.Namespace},
		{"Status", status},
		{"Wanted", a.Desired},
		{"Version", fmt.Sprint(a.Version)},
		{"Owner", a.Owner},
		{"Age", s.age(a.CreatedAt)},
	})
	for _, c := range a.Conditions {
		s.fields("", [][2]string{{c.Type, fmt.Sprintf("%s (%s for %s): %s", c.Status, c.Reason, s.age(c.LastTransitionTime), c.Message)}})
	}
	fmt.Fprintln(s.out, "\nComponents:")
}

// fields writes names and values, those without a value left out.
func (s *session) fields(indent string, list [][2]string) {
	for _, f := range list {
		if f[1] != "" {
			s.field(indent, f[0], printable(f[1]))
		}
	}
}

func (s *session) job(a *api.Application, j *api.Job, decisions []decision) error {
	title := j.Component()
	switch {
	case j.Cleans != "":
		title += " (removal of a copy left behind)"
	case a.Removed(j):
		title += " (taken out)"
	}
	fmt.Fprintf(s.out, "  %s\n", printable(title))
	where := "none yet"
	if at := j.Targets.String(); at != "" {
		where = at + " (" + j.Orchestrator + ")"
	}
	s.fields("    ", [][2]string{
		{"Job", j.ID},
		{"Work", fmt.Sprintf("%s, epoch %d", kind(j), j.Epoch)},
		{"State", j.State},
		{"Place", where},
		{"Type", j.Instruction.Type},
	})
	s.describeReasons(j, decisions)
	s.fields("    ", [][2]string{
		{"Agent", j.OwnerID},
		{"Needs", needs(&j.Instruction.Requirements)},
		{"Objects", objects(j.Instruction.Contents)},
		{"Resource", j.Resource.UUID},
		{"Remedies", remedies(j.Resource.Remediations)},
	})
	if len(j.Resource.Conditions) == 0 {
		return nil
	}
	fmt.Fprintln(s.out, "    Conditions:")
	t := s.newTable("TYPE", "STATUS", "REASON", s.whenHeader(), "MESSAGE")
	t.indent = "      "
	var rows [][]string
	for _, c := range j.Resource.Conditions {
		rows = append(rows, []string{c.Type, c.Status, or(c.Reason), s.when(c.LastTransitionTime), c.Message})
	}
	return t.write(rows...)
}

func needs(r *api.Requirements) string {
	var list []string
	memory := r.Memory
	if n, err := strconv.ParseFloat(memory, 64); err == nil {
		memory = bytesText(&n) // the API writes plain bytes
	}
	for _, n := range [][2]string{
		{"cpu", r.CPU}, {"memory", memory}, {"architecture", r.Architecture}, {"devices", r.Devices},
	} {
		if n[1] != "" {
			list = append(list, n[0]+" "+n[1])
		}
	}
	return strings.Join(list, ", ")
}

func objects(list []api.Content) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

func remedies(list []api.Remedy) string {
	texts := make([]string, len(list))
	for i, r := range list {
		texts[i] = r.Type + " (" + r.Status + ")"
	}
	return strings.Join(texts, ", ")
}

func (s *session) describeHistory(a *api.Application, entries []api.Entry, last int) error {
	fmt.Fprintln(s.out, "\nHistory:")
	shown := entries[max(0, len(entries)-max(last, 0)):]
	if s.wide() {
		shown = entries
	}
	t := s.newTable(s.whenHeader(), "EVENT", "COMPONENT", "+CAUSE", "+TRACE", "MESSAGE")
	t.indent = "  "
	var rows [][]string
	for i := range shown {
		e := &shown[i]
		rows = append(rows, []string{s.when(e.At), e.Event, or(e.Component), or(e.Cause), or(e.TraceID), e.Message})
	}
	if err := t.write(rows...); err != nil {
		return err
	}
	if len(shown) < len(entries) {
		s.text("  (%d earlier: littoral events --app %s)", len(entries)-len(shown), a.ID)
	}
	return nil
}
