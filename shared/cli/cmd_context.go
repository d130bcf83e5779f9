package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type contextCommand struct {
	List   contextList   `cmd:"" help:"List contexts; * marks the one in use."`
	Use    contextUse    `cmd:"" help:"Use a context from now on."`
	Add    contextAdd    `cmd:"" help:"Add or change a context, or all controllers of a lighthouse."`
	Remove contextRemove `cmd:"" help:"Remove a context."`
}

type contextList struct {
	Output format `short:"o" enum:"${formats}" default:"table" help:"How to show it: ${enum}."`
}

// Help is the long help of context list.
func (contextList) Help() string { return "Example: littoral context list" }

// Run lists contexts.
func (c *contextList) Run(s *session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	l := listing[contextItem]{
		format: c.Output, what: "contexts", kind: "context",
		fetch: func(context.Context) ([]contextItem, error) {
			list := slices.Clone(all.List)
			for i := range list {
				list[i].Current = list[i].Name == all.Current
			}
			return list, nil
		},
		key:    func(i contextItem) string { return i.Name },
		header: []string{"CURRENT", "NAME", "SERVER"},
		row: func(i contextItem) []string {
			mark := ""
			if i.Current {
				mark = "*"
			}
			return []string{mark, i.Name, i.address()}
		},
	}
	return l.run(s)
}

type contextUse struct {
	Name string `arg:"" complete:"context" help:"Context."`
}

// Help is the long help of context use.
func (contextUse) Help() string {
	return "A server that is named otherwise (--server, --context, LITTORAL_SERVER, LITTORAL_CONTEXT) goes before it.\n\n" +
		"Example: littoral context use harbour"
}

// Run makes a context the one in use.
func (c *contextUse) Run(s *session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	found, err := all.find(c.Name)
	if err != nil {
		return err
	}
	all.Current = c.Name
	if err := all.save(); err != nil {
		return err
	}
	s.screen.line("context %s: %s", found.Name, found.address())
	return nil
}

type contextAdd struct {
	Name string `arg:"" optional:"" help:"Context."`
	// The flags of the command line itself are called --server and --token-file already, and mean the same.
	Lighthouse string `placeholder:"URL" help:"Add all controllers that this lighthouse knows, by their names."`
}

// Help is the long help of context add.
func (contextAdd) Help() string {
	return "Sign in at it with littoral login; the tokens of each server are kept apart.\n\n" +
		"Examples: littoral --server https://harbour.example context add harbour; littoral context add --lighthouse https://shore.example"
}

// Run adds one context, or those of a lighthouse.
func (c *contextAdd) Run(s *session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	switch {
	case (c.Name == "") == (c.Lighthouse == ""):
		return usagef("say a name and --server, or --lighthouse")
	case c.Name != "" && s.server == "":
		return usagef("--server says where %s is", c.Name)
	case c.Name != "":
		all.set(contextItem{Name: c.Name, Server: s.server, TokenFile: s.tokenFile})
		if err := all.save(); err != nil {
			return err
		}
		s.screen.line("context %s added: %s", c.Name, s.server)
		return nil
	}
	light := api.Client{Base: c.Lighthouse, HTTP: s.client.HTTP} // it asks nobody for a token, and gets none of ours
	found, err := light.Controllers(s.ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		server := f.Address
		if !strings.Contains(server, "://") {
			server = "http://" + server // as ICOS writes it
		}
		all.set(contextItem{Name: f.Name, Server: server})
		s.screen.line("context %s added: %s", printable(f.Name), printable(server))
	}
	if len(found) == 0 {
		return fmt.Errorf("the lighthouse at %s knows no controllers", c.Lighthouse)
	}
	return all.save()
}

type contextRemove struct {
	Name string `arg:"" complete:"context" help:"Context."`
}

// Help is the long help of context remove.
func (contextRemove) Help() string {
	return "The tokens of its server stay until littoral logout. Example: littoral context remove harbour"
}

// Run removes a context.
func (c *contextRemove) Run(s *session) error {
	all, err := s.contexts()
	if err != nil {
		return err
	}
	if _, err := all.find(c.Name); err != nil {
		return err
	}
	all.List = slices.DeleteFunc(all.List, func(i contextItem) bool { return i.Name == c.Name })
	if all.Current == c.Name {
		all.Current = ""
	}
	if err := all.save(); err != nil {
		return err
	}
	s.screen.line("context %s removed", c.Name)
	return nil
}
