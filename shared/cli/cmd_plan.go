package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type planCommand struct {
	File   string `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - reads it from standard input."`
	App    string `placeholder:"ID" complete:"app" help:"Application to update; default: the only one of its name, else a new one."`
	Strict bool   `help:"Refuse a descriptor with warnings."`
	outputFlag
}

// marks are the signs of steps, as in a diff.
var marks = map[string]string{
	"create": "+", "remove": "-", "replace": "~", "change": "~", "move": ">", "wait": "?", "none": " ",
}

// ask returns what apply would do; the warnings are printed.
func (c *planCommand) ask(s *session) (*api.Preview, error) {
	document, err := s.document(c.File)
	if err != nil {
		return nil, err
	}
	var id string
	if c.App != "" {
		a, err := s.application(s.ctx, c.App)
		if err != nil {
			return nil, err
		}
		id = a.ID
	}
	p, err := s.client.Plan(s.ctx, document, id, c.Strict)
	if err != nil {
		return nil, err
	}
	s.warn(p.Warnings)
	s.derived(p.Derived)
	return p, nil
}

// Run shows what apply would do. The error is errChanges if there is anything.
func (c *planCommand) Run(s *session) error {
	p, err := c.ask(s)
	if err != nil {
		return err
	}
	done, err := s.said(p, changedBy(p)...)
	if !done {
		err = c.show(s, p)
	}
	if err == nil && p.Changes > 0 {
		return errChanges
	}
	return err
}

// changedBy names what a plan changes.
func changedBy(p *api.Preview) []string {
	var names []string
	for i := range p.Steps {
		if step := &p.Steps[i]; step.Action != "none" {
			names = append(names, componentOf(p, step.Component))
		}
	}
	for i := range p.Fields {
		names = append(names, componentOf(p, p.Fields[i].Component))
	}
	return once(names)
}

// componentOf names a component as "pin" takes it, or the application itself, by its id if it has one already.
func componentOf(p *api.Preview, component string) string {
	if component == "" {
		return "app/" + cmp.Or(p.Application, p.Name)
	}
	return "component/" + p.Name + "/" + component
}

func (c *planCommand) show(s *session, p *api.Preview) error {
	what := "a new application"
	if p.Application != "" {
		what = "application " + p.Application
	}
	fmt.Fprintf(s.out, "%s (%s):\n", printable(or(p.Name)), what)
	t := s.newTable("", "COMPONENT", "ACTION", "FROM", "TO", "+ORCHESTRATOR", "+VARIANT", "WHY")
	t.indent = "  "
	var rows [][]string
	for i := range p.Steps {
		step := &p.Steps[i]
		rows = append(rows, []string{marks[step.Action], cmp.Or(step.Name(), "(application)"), step.Action, at(step.From), target(s, step), by(step.To), or(step.Variant), step.Why})
	}
	if err := t.write(rows...); err != nil {
		return err
	}
	s.differences(p.Fields)
	if p.Changes == 0 {
		_, err := fmt.Fprintln(s.out, "Nothing to do.")
		return err
	}
	apply := "littoral apply -f " + c.File
	if c.Strict {
		apply += " --strict"
	}
	if c.App != "" {
		apply += " --app " + p.Application
	}
	s.text("%d to change; nothing was changed yet. Do it with: %s", p.Changes, apply)
	return nil
}

// target is where a step leads, with the variant of the manifests that run there.
func target(s *session, step *api.Step) string {
	if step.Variant == "" || s.wide() {
		return at(step.To)
	}
	return at(step.To) + " as " + step.Variant
}

// by is the orchestrator of a place.
func by(t *api.Target) string {
	if t == nil {
		return "-"
	}
	return or(strings.ToLower(t.Orchestrator))
}

func at(t *api.Target) string {
	if t == nil {
		return "-"
	}
	return or(t.String())
}

type diffCommand struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"Descriptor; - reads it from standard input."`
	App  string `placeholder:"ID" complete:"app" help:"Application to compare with; default: the only one of its name."`
	outputFlag
}

// Help is the long help of diff.
func (diffCommand) Help() string { return "Example: littoral diff -f shop.yaml" }

// Run shows which fields a descriptor would change. The error is errChanges if there are any.
func (c *diffCommand) Run(s *session) error {
	p, err := (&planCommand{File: c.File, App: c.App}).ask(s)
	if err != nil {
		return err
	}
	if p.Application == "" {
		return advise(fmt.Errorf("there is no application %q to compare with", p.Name), "See what it would become with: littoral plan -f %s", c.File)
	}
	names := make([]string, len(p.Fields))
	for i := range p.Fields {
		names[i] = componentOf(p, p.Fields[i].Component)
	}
	differs := map[string]any{"application": p.Application, "name": p.Name, "fields": append([]api.Field{}, p.Fields...)}
	done, err := s.said(differs, once(names)...)
	if !done {
		s.differences(p.Fields)
	}
	if err == nil && len(p.Fields) > 0 {
		return errChanges
	}
	return err
}
