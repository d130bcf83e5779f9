package application

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Change is a change of an application: to a descriptor, or to other objects for its jobs.
type Change struct {
	document []byte
	app      *appmodel.Application // of the document
	objects  *Objects              // instead of the two
	parse    Parser
	id       *uuid.UUID
	restores *int64 // the number of the revision that this goes back to
}

// NewChange returns the change of the application to a descriptor that was parsed.
func NewChange(id uuid.UUID, document []byte, app *appmodel.Application) *Change {
	return &Change{document: document, app: app, id: &id}
}

// ChangeTo is NewChange for the only application with the descriptor's name.
func ChangeTo(document []byte, app *appmodel.Application) *Change {
	return &Change{document: document, app: app}
}

// ChangeObjects returns the change of an application to other objects. If id is nil, the objects name it. parse reads the
// descriptor with them.
func ChangeObjects(id *uuid.UUID, o *Objects, parse Parser) *Change {
	return &Change{objects: o, parse: parse, id: id}
}

// Put applies the change, which the author hands in, to the version that the caller has seen.
func (c *Change) Put(
	ctx context.Context, tx *store.Tx, author string, seen etag.Match, lostAfter time.Duration,
) (*Application, error) {
	id, by := c.id, authorship{author: author, restores: c.restores}
	switch {
	case id != nil:
	case c.objects != nil && c.objects.Application == uuid.Nil:
		f := problem.Field{Path: "id", Detail: "is missing"}
		return nil, &problem.Error{Kind: problem.Invalid, Detail: "the JobGroup is not valid", Fields: []problem.Field{f}}
	case c.objects != nil:
		id = &c.objects.Application
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
	if c.objects != nil {
		return c.objects.put(ctx, tx, *id, lostAfter, c.parse, by)
	}
	return update(ctx, tx, *id, c.document, c.app, by, lostAfter)
}

// Objects are objects for jobs of an application, which a client has changed where it read them.
type Objects struct {
	Application uuid.UUID // the zero id = not said
	Name        string    // of the application; "" = not said
	Jobs        []ObjectsOf
}

// ObjectsOf are the objects for one job, in two forms. The one that the client has changed counts; nil is not given.
type ObjectsOf struct {
	Job      uuid.UUID
	Contents []job.Content
	Texts    []string // the same without names
}

// put writes the objects that differ from the stored ones into the descriptor and updates the application with that, so
// that there is only one way to update.
func (o *Objects) put(
	ctx context.Context, tx *store.Tx, id uuid.UUID, lostAfter time.Duration,
	parse Parser, by authorship,
) (*Application, error) {
	if o.Application != uuid.Nil && id != o.Application {
		return nil, problem.New(problem.Conflict, "the JobGroup is %s, the request names %s", o.Application, id)
	}
	a, err := Lock(ctx, tx, id) // so that no change of somebody else in between is undone
	if err != nil {
		return nil, err
	}
	if a.Dialect != appmodel.ICOS {
		return nil, problem.New(problem.Conflict, "application %s is written in %s, which has no JobGroups", a.ID, a.Dialect)
	}
	if o.Name != "" && o.Name != a.Name {
		return nil, nameChanged("appName", o.Name, a.Name)
	}
	before, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	document := []byte(a.Descriptor)
	var edit *descriptor.Edit // nil while nothing differs
	for i := range o.Jobs {
		in := &o.Jobs[i]
		at := slices.IndexFunc(a.Jobs, func(j *job.Job) bool { return j.ID == in.Job })
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

// contents returns the objects that the client wants.
func (in *ObjectsOf) contents(stored []job.Content) []job.Content {
	if in.Contents != nil && !slices.Equal(in.Contents, stored) {
		return in.Contents
	}
	if in.Texts == nil {
		return stored
	}
	contents := make([]job.Content, len(in.Texts))
	for i, text := range in.Texts {
		contents[i].YAML = text
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
