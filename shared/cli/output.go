package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/api"
)

// format is how a command shows what it found.
type format string

const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name" // kind and name, as other commands take it

	asDescriptor format = "descriptor" // of one application: the document as it was handed in
)

// structured reports whether the output is for programs.
func (f format) structured() bool { return f == asJSON || f == asYAML }

// waitFlags are those of commands after which something happens.
type waitFlags struct {
	Wait    bool          `short:"w" help:"Show what happens until it is as asked for."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits."`
}

// defaultWait is the default of --timeout.
const defaultWait = 5 * time.Minute

// resultFlags are those of commands that change an application.
type resultFlags struct {
	Output format `short:"o" enum:"${formats}" default:"table" help:"How to show the application: ${enum}."`
}

// progress has what happens written where it does not get into a result for programs.
func (f *resultFlags) progress(s *session) {
	if f.Output.structured() || f.Output == asName {
		s.screen = newScreen(s.err, display{})
	}
}

// result prints the application as it is now.
func (f *resultFlags) result(s *session, id string) error {
	if !f.Output.structured() {
		return f.show(s, &api.Application{ID: id})
	}
	a, err := s.client.Application(s.ctx, id)
	if err != nil {
		return err
	}
	return f.show(s, a)
}

// show prints an application in the form that programs read; people have seen what happened.
func (f *resultFlags) show(s *session, a *api.Application) error {
	switch {
	case f.Output == asName:
		_, err := fmt.Fprintln(s.out, "app/"+a.ID)
		return err
	case !f.Output.structured():
		return nil
	}
	return s.print(f.Output, a)
}

// said prints a thing in the form that programs read, or its name as other commands take it; done is false where people are to be told.
func (s *session) said(f format, kind, key string, v any) (done bool, err error) {
	switch {
	case f == asName:
		_, err = fmt.Fprintln(s.out, kind+"/"+key)
		return true, err
	case f.structured():
		return true, s.print(f, v)
	}
	return false, nil
}

// printNames prints the names of things.
func printNames[T any](s *session, kind string, list []T, key func(T) string) error {
	for _, v := range list {
		if _, err := fmt.Fprintln(s.out, kind+"/"+key(v)); err != nil {
			return err
		}
	}
	return nil
}

// print writes v as JSON or YAML.
func (s *session) print(f format, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if f == asYAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = s.out.Write(text)
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}

// printOne writes one element of a stream: a line of JSON, or a YAML document.
func (s *session) printOne(f format, v any) error {
	if f == asYAML {
		if _, err := fmt.Fprintln(s.out, "---"); err != nil {
			return err
		}
		return s.print(f, v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}
