package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

type historyCommand struct {
	appArgument
	Revision int64 `placeholder:"N" help:"Show what that revision changed."`
	Against  int64 `placeholder:"N" help:"With --revision: compare with that one instead of the one before."`
	outputFlag
}

// Help is the long help of history.
func (historyCommand) Help() string {
	return "Example: littoral history shop --revision 2\n\nGo back with: littoral rollback shop --to 1"
}

// Run lists the revisions of an application, or shows one.
func (c *historyCommand) Run(s *session) error {
	if c.Against != 0 && c.Revision == 0 {
		return usagef("--against needs --revision")
	}
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	if c.Revision != 0 {
		return c.one(s, a)
	}
	list, err := s.client.Revisions(s.ctx, a.ID)
	if err != nil {
		return err
	}
	names := namesOf("revision", list, func(r *api.Revision) string { return strconv.FormatInt(r.Number, 10) })
	if done, err := s.said(list, names...); done {
		return err
	}
	rows := make([][]string, len(list))
	for i, r := range list {
		number := strconv.FormatInt(r.Number, 10)
		if r.Number == a.Version {
			number += "*"
		}
		rows[i] = []string{number, s.when(r.At), or(r.Author), or(r.Summary)}
	}
	t := s.newCut("REVISION", s.whenHeader(), "AUTHOR", "CHANGE")
	return t.write(rows...)
}

func (c *historyCommand) one(s *session, a *api.Application) error {
	r, err := s.client.Revision(s.ctx, a.ID, c.Revision, c.Against)
	if err != nil {
		return err
	}
	if done, err := s.said(r, "revision/"+strconv.FormatInt(r.Number, 10)); done {
		return err
	}
	against := "the first"
	if r.Against != 0 {
		against = fmt.Sprintf("compared with revision %d", r.Against)
	}
	s.text("Revision %d of %s, by %s %s ago, %s: %s", r.Number, a.Name, cmp.Or(r.Author, "nobody known"), s.age(r.At), against, or(r.Summary))
	s.differences(r.Fields)
	return nil
}

// differences writes fields that differ, each with what it was and what it is, and where it stands below that.
func (s *session) differences(list []api.Field) {
	for i := range list {
		f := &list[i]
		sign := map[string]string{"added": "+", "removed": "-"}[f.Action]
		parent, name := split(f.Path)
		subject, where := cmp.Or(f.Component, "(application)"), f.Object
		switch {
		case f.Path != "":
			subject += ": " + name
			where = strings.TrimSpace(f.Object + " " + parent)
		case f.Object != "":
			subject += ": " + f.Object
			where = ""
		}
		text := fmt.Sprintf("  %s %s", cmp.Or(sign, "~"), subject)
		switch was, is := s.shortValue(f.From), s.shortValue(f.To); {
		case f.Action == "changed":
			text += ": " + was + " → " + is
		case was != "":
			text += ": " + was
		case is != "":
			text += ": " + is
		}
		if f.Restarts {
			text += " (restarts)"
		}
		s.text("%s", text)
		if where != "" {
			s.text("      in %s", where)
		}
	}
}

// split cuts the last name off a path: containers[web].image is image in containers[web], and policies[fast] is itself.
func split(path string) (parent, name string) {
	depth := 0
	for i := len(path) - 1; i >= 0; i-- { // names in brackets may have dots
		switch path[i] {
		case ']':
			depth++
		case '[':
			depth--
		case '.':
			if depth == 0 {
				return path[:i], path[i+1:]
			}
		}
	}
	return "", path
}

const widestValue = 30

// shortValue is a value that is cut, unless everything is to be shown.
func (s *session) shortValue(v any) string {
	if s.wide() {
		return value(v)
	}
	return cut(value(v), widestValue)
}

// value writes a value in one line; "" for none.
func value(v any) string {
	text, ok := v.(string)
	if !ok {
		if v == nil {
			return ""
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) != nil {
			return "?"
		}
		text = strings.TrimSpace(b.String())
	}
	if text == "" {
		return `""`
	}
	return text
}

type rollbackCommand struct {
	appArgument
	To      int64         `placeholder:"N" help:"Revision to go back to; default: the one before the newest."`
	Wait    bool          `short:"w" help:"Show what happens until it is available."`
	Timeout time.Duration `default:"5m" help:"How long --wait waits."`
	outputFlag
}

// Help is the long help of rollback.
func (rollbackCommand) Help() string {
	return "Example: littoral rollback shop --to 1\n\nSee the revisions with: littoral history shop"
}

// Run gives the application a former descriptor.
func (c *rollbackCommand) Run(s *session) error {
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	before, after, err := s.before(c.ID)
	if err != nil {
		return err
	}
	a, err := s.client.RollBack(s.ctx, before.ID, c.To)
	if err != nil {
		return err
	}
	s.warn(a.Warnings)
	if a.Version == before.Version {
		s.screen.line("application %s unchanged: %s", a.Name, a.ID)
	} else {
		s.screen.line("application %s rolled back (revision %d): %s", a.Name, a.Version, a.ID)
	}
	if c.Wait {
		if err := s.followFor(c.Timeout, a.ID, after, available); err != nil {
			return err
		}
	}
	return s.result(a.ID)
}

type editCommand struct {
	appArgument
	Strict bool `help:"Refuse a descriptor with warnings."`
	outputFlag
}

// Help is the long help of edit.
func (editCommand) Help() string {
	return "The editor is $VISUAL, else $EDITOR, else vi. Example: EDITOR=nano littoral edit shop"
}

// Run opens the descriptor in an editor and applies what was saved, unless nothing was changed.
func (c *editCommand) Run(s *session) error {
	a, err := s.application(s.ctx, c.ID)
	if err != nil {
		return err
	}
	r, err := s.client.Revision(s.ctx, a.ID, 0, 0)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "littoral-*.yaml")
	if err != nil {
		return err
	}
	name := file.Name()
	_, err = file.WriteString(r.Descriptor)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := s.edit(s.ctx, name); err != nil {
		return errors.Join(fmt.Errorf("the editor failed: %w", err), os.Remove(name))
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if string(text) == r.Descriptor {
		if err := os.Remove(name); err != nil {
			return err
		}
		s.screen.line("application %s unchanged: %s", a.Name, a.ID)
		return s.result(a.ID)
	}
	now, err := s.client.UpdateApplication(s.ctx, a.ID, text, c.Strict)
	if err != nil {
		return advise(err, "Nothing was changed; your text is kept. Apply it with: littoral apply -f %s --app %s", name, shortID(a.ID))
	}
	s.warn(now.Warnings)
	if err := os.Remove(name); err != nil {
		return err
	}
	s.screen.line("application %s updated (revision %d): %s", now.Name, now.Version, now.ID)
	return s.result(now.ID)
}

// runEditor opens the user's editor on the terminal.
func (sh *Shell) runEditor(ctx context.Context, file string) error {
	words := strings.Fields(cmp.Or(sh.Getenv("VISUAL"), sh.Getenv("EDITOR"), "vi"))
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...) // the user's own editor
	cmd.Stdin, cmd.Stdout, cmd.Stderr = sh.Stdin, sh.Stdout, sh.Stderr
	return cmd.Run()
}
