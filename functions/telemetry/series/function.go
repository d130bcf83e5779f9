// Package series answers the course of what an application measures: PromQL, confined to the applications of the caller.
package series

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /telemetry/series", Role: auth.Viewer}},
	Class:  function.Series,
	Needs:  []function.Need{function.Telemetry, function.BusTokens},
}

// Function is the operation with what it asks. Applications are known by their own tokens.
type Function struct {
	bus.Tokens
	db        *store.DB
	telemetry *telemetry.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var config telemetry.Config
	if err := errors.Join(env.Config(&f.Tokens), env.Config(&config)); err != nil {
		return nil, err
	}
	var err error
	f.telemetry, err = telemetry.New(config, env.HTTP)
	return f, err
}

// Answer is the course of each series.
type Answer struct {
	Query  string             `json:"query"` // as it was asked
	Step   float64            `json:"step"`  // seconds
	Series []telemetry.Course `json:"series"`
}

const (
	usual     = time.Hour // how far back an answer reaches
	steps     = 120       // of an answer, unless a step is given
	maxSeries = 1000      // of an answer
)

// question is what the caller wants to know.
type question struct {
	app        *uuid.UUID
	query, use string
	from, to   time.Time
	step       time.Duration
}

func read(r *http.Request, now time.Time) (question, error) {
	q := function.NewQuery(r, "app", "query", "use", "since", "until", "step")
	ask := question{app: q.ID("app"), query: q.Text("query"), use: q.OneOf("use", render.Usages()...), to: now, from: now.Add(-usual)}
	q.Either("query", "use")
	if ask.query == "" && ask.use == "" {
		q.Fault("query", "is missing: PromQL, or use instead of it")
	}
	for name, at := range map[string]*time.Time{"since": &ask.from, "until": &ask.to} {
		if given, known := q.Instant(name, now); known {
			*at = given
		}
	}
	if err := q.Err(); err != nil {
		return ask, err
	}
	ask.step = max(ask.to.Sub(ask.from)/steps, time.Second).Truncate(time.Second)
	if text := q.Text("step"); text != "" {
		step, err := time.ParseDuration(text)
		if ask.step = step; err != nil || step < time.Second {
			q.Fault("step", "%q is no duration of a second or more, such as 15s", text)
		}
	}
	switch {
	case !ask.from.Before(ask.to):
		q.Fault("until", "must be after since")
	case ask.step > 0 && ask.to.Sub(ask.from)/ask.step >= telemetry.MaxPoints:
		q.Fault("step", "gives more than %d points; take a longer step or a shorter time", telemetry.MaxPoints)
	}
	return ask, q.Err()
}

// Handle answers 200 with the series that the caller may see.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	caller := auth.From(r.Context())
	ask, err := read(r, time.Now())
	if err != nil {
		return err
	}
	scope := tenant.Scope{}
	if ask.app != nil {
		scope.Applications = []string{ask.app.String()}
		_, err = tenant.May(r.Context(), f.db, caller, *ask.app)
	} else {
		scope, err = tenant.Of(r.Context(), f.db, caller)
	}
	if err != nil {
		return store.Classify(err)
	}
	expr, err := ask.expr(scope)
	if err != nil {
		return err
	}
	found, err := f.telemetry.QueryRange(r.Context(), expr, ask.from, ask.to, ask.step)
	if err != nil {
		return err
	}
	answer := Answer{Query: expr, Step: ask.step.Seconds(), Series: telemetry.Courses(found, maxSeries)}
	return function.WriteJSON(w, http.StatusOK, answer)
}

// expr is what Prometheus is asked.
func (q question) expr(scope tenant.Scope) (string, error) {
	switch {
	case q.use != "" && scope.All:
		return render.Usage(q.use, nil)
	case q.use != "":
		return render.Usage(q.use, append([]string{}, scope.Applications...))
	case scope.All:
		return render.Valid(q.query)
	}
	return render.Within(q.query, scope.Applications)
}
