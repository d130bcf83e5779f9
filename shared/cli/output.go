package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/alecthomas/kong"
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

// outputFlag is that of every command that has something to say; the form that it names is the session's.
type outputFlag struct {
	Output format `short:"o" enum:"${formats}" default:"table" help:"How to show it: ${enum}."`
}

// formOf is the form that the flags of a command name.
func formOf(parsed *kong.Context) format {
	for _, flag := range parsed.Flags() {
		if flag.Name == "output" {
			return format(flag.Target.String())
		}
	}
	return asTable
}

// show has what follows shown in a form. What is said while something happens must not get into a result for programs.
func (s *session) show(f format) {
	s.format = f
	if f.structured() || f == asName {
		s.screen = newScreen(s.err, display{})
	}
}

// said shows what a command found or did as a document, or by the names that other commands take. This is the one place that tells the
// forms apart: done is false where it is people who are to be told, by a table, wide or not.
func (s *session) said(document any, names ...string) (done bool, err error) {
	switch {
	case s.format == asName:
		for _, name := range names {
			if _, err := fmt.Fprintln(s.out, printable(name)); err != nil {
				return true, err
			}
		}
		return true, nil
	case s.format.structured():
		return true, s.print(document)
	}
	return false, nil
}

// wide reports whether everything is to be shown, however long the lines.
func (s *session) wide() bool { return s.format == asWide }

// namesOf are the names of things, each once.
func namesOf[T any](kind string, list []T, key func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = kind + "/" + key(&list[i])
	}
	return once(names)
}

// once leaves out what a list has already.
func once(list []string) []string {
	known := map[string]bool{}
	return slices.DeleteFunc(list, func(text string) bool {
		again := known[text]
		known[text] = true
		return again
	})
}

// result shows an application as it is after a change.
func (s *session) result(id string) error {
	if s.format == asTable {
		return nil // people have seen what happened
	}
	a, err := s.client.Application(s.ctx, id)
	if err != nil {
		return err
	}
	if done, err := s.said(a, "app/"+a.ID); done {
		return err
	}
	l := s.apps()
	return l.printRows(l.table(s), []api.Application{*a})
}

// print writes v as JSON or YAML.
func (s *session) print(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if s.format == asYAML {
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
func (s *session) printOne(v any) error {
	if s.format == asYAML {
		if _, err := fmt.Fprintln(s.out, "---"); err != nil {
			return err
		}
		return s.print(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}

// printEach writes elements of a stream.
func printEach[T any](s *session, list []T) error {
	for i := range list {
		if err := s.printOne(list[i]); err != nil {
			return err
		}
	}
	return nil
}
