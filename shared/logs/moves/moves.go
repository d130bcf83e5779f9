// Package moves puts what an application wrote beside where its components ran.
package moves

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/store"
)

// Most bounds the moves of one answer.
const Most = 500

// Move is a decision where a component runs.
type Move struct {
	At        time.Time `json:"at"`
	Component string    `json:"component"`
	Message   string    `json:"message"`
}

// Answer is the lines of a time, and the places of the components that wrote them.
type Answer struct {
	Lines []logs.Entry `json:"lines"`
	Moves []Move       `json:"moves"`
	Cut   bool         `json:"cut,omitempty"` // there are older ones than the limit lets through

	Missing []string `json:"missing,omitempty"` // whose lines could not be read, and why
}

// Read answers the query about the application.
func Read(ctx context.Context, q store.Querier, from logs.Store, app uuid.UUID, query logs.Query) (*Answer, error) {
	lines, err := from.Read(ctx, query)
	if err != nil {
		return nil, err
	}
	return Beside(ctx, q, app, query, lines)
}

// Beside puts lines that the query found beside the moves of their time.
func Beside(ctx context.Context, q store.Querier, app uuid.UUID, query logs.Query, lines []logs.Entry) (*Answer, error) {
	entries, _, err := history.Before(ctx, q, &app, math.MaxInt64, Most, recorded.JobPlaced)
	if err != nil {
		return nil, store.Classify(err)
	}
	answer := &Answer{Lines: append([]logs.Entry{}, lines...), Moves: []Move{}, Cut: len(lines) == query.Limit}
	begin := query.From
	if answer.Cut {
		begin = lines[0].At
	}
	for _, e := range entries {
		if About(app, query.Component, e) && !e.At.Before(begin) && (query.To.IsZero() || e.At.Before(query.To)) {
			answer.Moves = append(answer.Moves, Of(e))
		}
	}
	return answer, nil
}

// About reports whether the entry is a move of the component of the application; "" = of any of its components.
func About(app uuid.UUID, component string, e history.Entry) bool {
	return e.Event == recorded.JobPlaced && e.ApplicationID != nil && *e.ApplicationID == app && (component == "" || component == e.Component)
}

// Of is the move that an entry records.
func Of(e history.Entry) Move { return Move{At: e.At, Component: e.Component, Message: e.Message} }
