package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

type suggestionsCommand struct {
	App string `placeholder:"ID" complete:"app" help:"Application: id, beginning of its id, or name."`
	outputFlag
}

// Help is the long help of suggestions.
func (suggestionsCommand) Help() string {
	return `A policy with "confirm: true" only suggests its remediation, which waits for a person's word while the policy is violated.

Example: littoral suggestions --app shop`
}

// Run lists what waits for a person.
func (c *suggestionsCommand) Run(s *session) error {
	app := ""
	if c.App != "" {
		a, err := s.application(s.ctx, c.App)
		if err != nil {
			return err
		}
		app = a.ID
	}
	list, err := s.client.Suggestions(s.ctx, app)
	if err != nil {
		return err
	}
	if done, err := s.said(list, namesOf("suggestion", list, func(w *api.Suggestion) string { return w.ID })...); done {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.out, "Nothing waits for a person.")
		return err
	}
	rows := make([][]string, len(list))
	for i := range list {
		w := &list[i]
		limit := ""
		if w.Threshold != nil {
			limit = *w.Threshold
		}
		rows[i] = []string{
			s.id(w.ID), or(w.AppName), or(strings.Trim(w.Component, "*")), w.Remediation, or(rounded(w.Value)), s.when(w.Since),
			or(limit), or(w.App), w.PolicyID,
			or(strings.TrimPrefix(w.PolicyName, w.AppName+"-"+w.App+"-")), // as its descriptor calls it
		}
	}
	t := s.newCut("ID", "APP", "COMPONENT", "REMEDY", "VALUE", "SINCE", "+LIMIT", "+APP-ID", "+POLICY-ID", "POLICY")
	if err := t.write(rows...); err != nil {
		return err
	}
	s.screen.line("Confirm one with: littoral suggestion confirm %s", shortID(list[0].ID))
	return nil
}

// rounded shortens a number; another text stays as it is.
func rounded(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return number(&v)
}

type suggestionCommand struct {
	Confirm suggestionConfirm `cmd:"" help:"Have a suggested remediation carried out."`
	Dismiss suggestionDismiss `cmd:"" help:"End a suggested remediation without doing it."`
}

type suggestionArgument struct {
	Suggestion string `arg:"" help:"Suggestion: its id, or the beginning of that."`
	outputFlag
}

type suggestionConfirm struct{ suggestionArgument }

// Help is the long help of suggestion confirm.
func (suggestionConfirm) Help() string { return "Example: littoral suggestion confirm 5b0c8a0e" }

// Run has the suggestion carried out.
func (c *suggestionConfirm) Run(s *session) error { return s.decide(c.Suggestion, true, "confirmed") }

type suggestionDismiss struct{ suggestionArgument }

// Help is the long help of suggestion dismiss.
func (suggestionDismiss) Help() string { return "Example: littoral suggestion dismiss 5b0c8a0e" }

// Run ends the suggestion.
func (c *suggestionDismiss) Run(s *session) error { return s.decide(c.Suggestion, false, "dismissed") }

func (s *session) decide(named string, confirmed bool, done string) error {
	w, err := s.suggestion(named)
	if err != nil {
		return err
	}
	if err := s.client.ConfirmSuggestion(s.ctx, w.ID, confirmed); err != nil {
		return err
	}
	decided := struct {
		*api.Suggestion
		Confirmed bool `json:"confirmed"`
	}{w, confirmed}
	if done, err := s.said(decided, "suggestion/"+w.ID); done {
		return err
	}
	s.screen.line("%s of %s %s", w.Remediation, strings.TrimSuffix(w.AppName+"/"+w.Component, "/"), done)
	return nil
}

// suggestion finds a suggestion by its id or the beginning of that.
func (s *session) suggestion(named string) (*api.Suggestion, error) {
	list, err := s.client.Suggestions(s.ctx, "")
	if err != nil {
		return nil, err
	}
	named = bare("suggestion", named)
	var found []*api.Suggestion
	for i := range list {
		if list[i].ID == named || isIDPrefix(named) && strings.HasPrefix(list[i].ID, named) {
			found = append(found, &list[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, advise(fmt.Errorf("there is no suggestion %q", named), "See what waits with: littoral suggestions")
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%q means %d suggestions; name one by more of its id", named, len(found))
}
