package application

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Change is what PUT groups carries: a descriptor, or a JobGroup as the API answered it with changes in it.
type Change struct {
	document []byte
	app      *appmodel.Application // of the document
	group    *group                // instead of the two
	parse    Parser
	id       *uuid.UUID
	restores *int64 // the number of the revision that this goes back to
}

// NewChange returns the change of the application to a descriptor that was parsed.
func NewChange(id uuid.UUID, document []byte, app *appmodel.Application) *Change {
	return &Change{document: document, app: app, id: &id}
}

// ReadChange reads the body of PUT groups, before any transaction. id names the application; if nil, the JobGroup names it,
// or else it is the only application with the descriptor's name. The error is that of parse, which reads a descriptor, or
// Malformed.
func ReadChange(id *uuid.UUID, body []byte, parse Parser) (*Change, error) {
	g, ok, err := parseGroup(body)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return &Change{group: &g, parse: parse, id: id}, nil
	}
	app, err := parse(body)
	return &Change{document: body, app: app, id: id}, err
}

// Put applies the change, which the author hands in, to the version that the caller has seen.
func (c *Change) Put(
	ctx context.Context, tx *store.Tx, author string, seen etag.Match, lostAfter time.Duration,
) (*Application, error) {
	id, by := c.id, authorship{author: author, restores: c.restores}
	switch {
	case id != nil:
	case c.group != nil && c.group.ID == uuid.Nil:
		f := problem.Field{Path: "id", Detail: "is missing"}
		return nil, &problem.Error{Kind: problem.Invalid, Detail: "the JobGroup is not valid", Fields: []problem.Field{f}}
	case c.group != nil:
		id = &c.group.ID
	default:
		named, err := Named(ctx, tx, c.app.Name)
		if err != nil {
			return nil, err
		}
		id = &named
	}
	if err := Expect(ctx, tx, *id, seen); err != nil {
		return nil, err
	}
	if c.group != nil {
		return c.group.put(ctx, tx, *id, lostAfter, c.parse, by)
	}
	return update(ctx, tx, *id, c.document, c.app, by, lostAfter)
}

// group is the form of an update as a JobGroup.
type group struct {
	ID    uuid.UUID  `json:"id"`
	OldID uuid.UUID  `json:"ID"`
	Name  string     `json:"appName"`
	Jobs  []groupJob `json:"jobs"`
}

type groupJob struct {
	ID        uuid.UUID `json:"id"`
	OldID     uuid.UUID `json:"ID"`
	Manifests []struct {
		YAML string `json:"yamlString"`
	} `json:"manifests"`
	Instruction *struct {
		Contents []job.Content `json:"contents"`
	} `json:"instruction"`
}

// parseGroup reads a JobGroup; ok is false for a descriptor, which has no list of jobs.
func parseGroup(body []byte) (g group, ok bool, err error) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return g, false, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil {
		return g, true, problem.Wrap(problem.Malformed, err, "the body is not valid JSON: %v", err)
	}
	if keys["jobs"] == nil {
		return g, false, nil
	}
	if err := decode.JSON(body, &g); err != nil {
		return g, true, err
	}
	if g.ID == uuid.Nil {
		g.ID = g.OldID
	}
	return g, true, nil
}

// put writes the objects that differ from the stored ones into the descriptor and updates the application with that, so
// that there is only one way to update.
func (g *group) put(
	ctx context.Context, tx *store.Tx, id uuid.UUID, lostAfter time.Duration,
	parse Parser, by authorship,
) (*Application, error) {
	if g.ID != uuid.Nil && id != g.ID {
		return nil, problem.New(problem.Conflict, "the JobGroup is %s, the request names %s", g.ID, id)
	}
	a, err := Lock(ctx, tx, id) // so that no change of somebody else in between is undone
	if err != nil {
		return nil, err
	}
	if a.Dialect != appmodel.ICOS {
		return nil, problem.New(problem.Conflict, "application %s is written in %s, which has no JobGroups", a.ID, a.Dialect)
	}
	if g.Name != "" && g.Name != a.Name {
		return nil, nameChanged("appName", g.Name, a.Name)
	}
	before, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	document := []byte(a.Descriptor)
	var edit *descriptor.Edit // nil while nothing differs
	for i, in := range g.Jobs {
		id := in.ID
		if id == uuid.Nil {
			id = in.OldID
		}
		at := slices.IndexFunc(a.Jobs, func(j *job.Job) bool { return j.ID == id })
		if at < 0 {
			continue // a clean-up, perhaps one that has ended since the JobGroup was read
		}
		stored := a.Jobs[at].Instruction.Contents
		contents := in.contents(stored)
		if slices.Equal(contents, stored) {
			continue
		}
		if edit == nil {
			if edit, err = descriptor.Open(document); err != nil {
				return nil, err
			}
		}
		next := append(manifests(contents), otherVariant(before, a.Jobs[at])...)
		if err := edit.Replace(a.Jobs[at].Component, next); err != nil {
			f := problem.Field{Path: fmt.Sprintf("jobs[%d]", i), Detail: err.Error()}
			return nil, &problem.Error{Kind: problem.Invalid, Detail: "the JobGroup is not valid", Fields: []problem.Field{f}}
		}
	}
	if edit != nil {
		if document, err = edit.Document(); err != nil {
			return nil, err
		}
	}
	app, err := parse(document)
	var refused *problem.Error
	if errors.As(err, &refused) && refused.Kind == problem.Invalid {
		refused.Detail = "with the objects of the JobGroup " + refused.Detail
	}
	if err != nil {
		return nil, err
	}
	return update(ctx, tx, id, document, app, by, lostAfter)
}

// contents returns the objects that the client wants. An answer has them in the format of v1.4.1 and in that of D3.2;
// the one that the client has changed counts.
func (in *groupJob) contents(stored []job.Content) []job.Content {
	if in.Instruction != nil && in.Instruction.Contents != nil && !slices.Equal(in.Instruction.Contents, stored) {
		return in.Instruction.Contents
	}
	if in.Manifests == nil {
		return stored
	}
	contents := make([]job.Content, len(in.Manifests))
	for i, m := range in.Manifests {
		contents[i].YAML = m.YAML
		if i < len(stored) {
			contents[i].Name = stored[i].Name
		}
	}
	return contents
}

// otherVariant returns the manifests of the job's component that the job does not carry, since they are for the engine
// that was not chosen.
func otherVariant(app *appmodel.Application, j *job.Job) []appmodel.Manifest {
	c := app.Component(j.Component)
	if c == nil || c.Type != appmodel.TypeMultiple {
		return nil
	}
	for _, engine := range []string{appmodel.TypeKubernetes, appmodel.TypeDocker} {
		if j.Instruction.Type != engine && j.Instruction.Type != appmodel.TypeMultiple {
			return c.Variant(engine)
		}
	}
	return nil
}

func manifests(contents []job.Content) []appmodel.Manifest {
	list := make([]appmodel.Manifest, len(contents))
	for i, c := range contents {
		list[i] = appmodel.Manifest{Name: c.Name, YAML: c.YAML}
	}
	return list
}
