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
	outputFlag
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
		what: "contexts", kind: "context",
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
	if s.wide() {
		l.header = append(l.header, "TOKENFILE", "HOME")
		narrow := l.row
		l.row = func(i contextItem) []string { return append(narrow(i), or(i.tokens()), or(i.Home)) }
	}
	return l.run(s)
}

type contextUse struct {
	Name string `arg:"" complete:"context" help:"Context."`
	outputFlag
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
	found, err := all.find(bare("context", c.Name))
	if err != nil {
		return err
	}
	all.Current = found.Name
	if err := all.save(); err != nil {
		return err
	}
	used := *found
	used.Current = true
	if done, err := s.said(used, "context/"+used.Name); done {
		return err
	}
	s.screen.line("context %s: %s", used.Name, used.address())
	return nil
}

type contextAdd struct {
	Name string `arg:"" optional:"" help:"Context."`
	// The flags of the command line itself are called --server and --token-file already, and mean the same.
	Lighthouse string `placeholder:"URL" help:"Add all controllers that this lighthouse knows, by their names."`
	outputFlag
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
		return all.add(s, contextItem{Name: c.Name, Server: s.server, TokenFile: s.tokenFile})
	}
	light := api.Client{Base: c.Lighthouse, HTTP: s.client.HTTP} // it asks nobody for a token, and gets none of ours
	found, err := light.Controllers(s.ctx)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("the lighthouse at %s knows no controllers", c.Lighthouse)
	}
	items := make([]contextItem, len(found))
	for i, f := range found {
		items[i] = contextItem{Name: f.Name, Server: f.Address}
		if !strings.Contains(f.Address, "://") {
			items[i].Server = "http://" + f.Address // as ICOS writes it
		}
	}
	return all.add(s, items...)
}

// add keeps contexts, and says so.
func (c *contexts) add(s *session, items ...contextItem) error {
	for _, i := range items {
		c.set(i)
	}
	if err := c.save(); err != nil {
		return err
	}
	if done, err := s.said(items, namesOf("context", items, func(i *contextItem) string { return i.Name })...); done {
		return err
	}
	for _, i := range items {
		s.screen.line("context %s added: %s", i.Name, i.Server)
	}
	return nil
}

type contextRemove struct {
	Name string `arg:"" complete:"context" help:"Context."`
	outputFlag
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
	found, err := all.find(bare("context", c.Name))
	if err != nil {
		return err
	}
	removed := *found
	all.List = slices.DeleteFunc(all.List, func(i contextItem) bool { return i.Name == removed.Name })
	if all.Current == removed.Name {
		all.Current = ""
	}
	if err := all.save(); err != nil {
		return err
	}
	if done, err := s.said(removed, "context/"+removed.Name); done {
		return err
	}
	s.screen.line("context %s removed", removed.Name)
	return nil
}
