package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/problem"
)

// minPrefix is the least number of digits that may stand for an id.
const minPrefix = 4

// idLength is the length of a whole id with its dashes.
const idLength = 36

// isIDPrefix reports whether text may be the beginning of an id, as lower case hex digits with dashes where ids have
// them.
func isIDPrefix(text string) bool {
	if len(text) < minPrefix || len(text) > idLength {
		return false
	}
	for i, r := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		switch {
		case dash && r != '-':
			return false
		case !dash && !strings.ContainsRune("0123456789abcdef", r):
			return false
		}
	}
	return true
}

// bare is a name without its kind: what -o name prints is taken wherever a thing is named.
func bare(kind, named string) string { return strings.TrimPrefix(named, kind+"/") }

// application finds the application that the user named: by whole id, by name, or by the beginning of its id. A name
// wins over an id that begins like it.
func (s *session) application(ctx context.Context, named string) (*api.Application, error) {
	named = bare("app", named)
	id := strings.ToLower(named)
	if len(id) == idLength && isIDPrefix(id) {
		return s.client.Application(ctx, id)
	}
	found, err := s.client.Applications(ctx, api.Filter{App: named})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && isIDPrefix(id) {
		all, err := s.client.Applications(ctx, api.Filter{Light: true})
		if err != nil {
			return nil, err
		}
		for i := range all {
			if strings.HasPrefix(all[i].ID, id) {
				found = append(found, all[i])
			}
		}
		if len(found) == 1 {
			return s.client.Application(ctx, found[0].ID)
		}
	}
	switch len(found) {
	case 0:
		return nil, &problem.Error{Kind: problem.NotFound, Detail: fmt.Sprintf("there is no application %q", named)}
	case 1:
		return &found[0], nil
	}
	return nil, advise(fmt.Errorf("%q means %d applications", named, len(found)), "Name one by its id:\n  %s", choice(found))
}

// choice lists the applications to choose from.
func choice(found []api.Application) string {
	ids := make([]string, len(found))
	for i := range found {
		ids[i] = found[i].ID + " (" + found[i].Status + ")"
	}
	return strings.Join(ids, "\n  ")
}

// missing reports whether the error is NotFound.
func missing(err error) bool { return problem.KindOf(err) == problem.NotFound }
