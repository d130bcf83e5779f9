package icoswire

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
)

// The contracts know each enumeration as numbers (v1.4.1) and as names (D3.2 and later). Both are accepted, in any case;
// names are emitted.

type state job.State

// UnmarshalJSON accepts a name or a number.
func (s *state) UnmarshalJSON(b []byte) error {
	return unmarshalEnum(b, s, "state", map[string]state{
		"1": state(job.Created), "2": state(job.Progressing), "3": state(job.Finished), "4": state(job.Degraded),
		"jobcreated": state(job.Created), "jobprogressing": state(job.Progressing), "jobfinished": state(job.Finished),
		"jobdegraded": state(job.Degraded),
	}, state(job.Created), state(job.Progressing), state(job.Finished), state(job.Degraded))
}

type typ job.Type

// UnmarshalJSON accepts a name or a number.
func (t *typ) UnmarshalJSON(b []byte) error {
	return unmarshalEnum(b, t, "type", map[string]typ{
		"5": typ(job.Create), "6": typ(job.Delete), "7": typ(job.Update), "8": typ(job.Replace),
	}, typ(job.Create), typ(job.Delete), typ(job.Update), typ(job.Replace))
}

func unmarshalEnum[T ~string](b []byte, into *T, what string, aliases map[string]T, names ...T) error {
	text := strings.Trim(string(b), `"`)
	if text == "null" || text == "" {
		return nil
	}
	low := strings.ToLower(text)
	if v, ok := aliases[low]; ok {
		*into = v
		return nil
	}
	listed := make([]string, len(names))
	for i, n := range names {
		if listed[i] = string(n); strings.ToLower(listed[i]) == low {
			*into = n
			return nil
		}
	}
	f := problem.Field{Path: what, Detail: `"` + text + `" is not one of ` + strings.Join(listed, ", ")}
	return &problem.Error{Kind: problem.Invalid, Detail: "an unknown " + what, Fields: []problem.Field{f}}
}

// target is a place as an object, as a list (the first counts) or as an empty list.
type target job.Target

// UnmarshalJSON reads each of the forms.
func (t *target) UnmarshalJSON(b []byte) error {
	if trimmed := strings.TrimSpace(string(b)); strings.HasPrefix(trimmed, "[") {
		var list []job.Target
		if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
			return err
		}
		*t = target(list[0])
		return nil
	}
	return json.Unmarshal(b, (*job.Target)(t))
}

// ID is a UUID that ICOS agents write as "" when they do not know it. Both that and the zero ID mean none.
type ID struct{ uuid.UUID }

// UnmarshalText reads an empty text as none.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	if id.UUID.UnmarshalText(text) != nil {
		return errors.New("is not a UUID") // the parser's error speaks of lengths
	}
	return nil
}

// given reports whether there is an id.
func (id ID) given() bool { return id.UUID != uuid.Nil }
