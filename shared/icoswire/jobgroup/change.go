package jobgroup

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
)

// sent is the form of an update as a JobGroup: as the API answered it, with changes in it. An answer has the objects in the
// format of v1.4.1 and in that of D3.2.
type sent struct {
	ID    uuid.UUID `json:"id"`
	OldID uuid.UUID `json:"ID"`
	Name  string    `json:"appName"`
	Jobs  []sentJob `json:"jobs"`
}

type sentJob struct {
	ID        uuid.UUID `json:"id"`
	OldID     uuid.UUID `json:"ID"`
	Manifests []struct {
		YAML string `json:"yamlString"`
	} `json:"manifests"`
	Instruction *struct {
		Contents []job.Content `json:"contents"`
	} `json:"instruction"`
}

// ReadChange reads the body of PUT groups, a descriptor or a JobGroup, before any transaction. id names the application; if
// nil, the JobGroup names it, or else it is the only application with the descriptor's name. The error is that of parse,
// which reads a descriptor, or Malformed.
func ReadChange(id *uuid.UUID, body []byte, parse application.Parser) (*application.Change, error) {
	g, ok, err := parseGroup(body)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return application.ChangeObjects(id, g.objects(), parse), nil
	}
	app, err := parse(body)
	if id == nil {
		return application.ChangeTo(body, app), err
	}
	return application.NewChange(*id, body, app), err
}

// parseGroup reads a JobGroup; ok is false for a descriptor, which has no list of jobs.
func parseGroup(body []byte) (g sent, ok bool, err error) {
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
	return g, true, decode.JSON(body, &g)
}

func (g *sent) objects() *application.Objects {
	o := &application.Objects{Application: cmp.Or(g.ID, g.OldID), Name: g.Name}
	for _, in := range g.Jobs {
		of := application.ObjectsOf{Job: cmp.Or(in.ID, in.OldID)}
		if in.Instruction != nil {
			of.Contents = in.Instruction.Contents
		}
		if in.Manifests != nil {
			of.Texts = make([]string, len(in.Manifests))
			for i, m := range in.Manifests {
				of.Texts[i] = m.YAML
			}
		}
		o.Jobs = append(o.Jobs, of)
	}
	return o
}
