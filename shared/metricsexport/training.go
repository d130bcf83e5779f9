package metricsexport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Order is the body of train: that of ICOS, and what it does not have: the series, by a query or as values.
type Order struct {
	ModelName string   `json:"model_name"`
	ModelType string   `json:"model_type"` // XGB, ARIMA, or a kind of shared/forecast; "auto" takes the best of all
	TestSize  *float64 `json:"test_size"`
	StepsBack int      `json:"steps_back"`
	MaxModels int      `json:"max_models_count"`
	Params    struct {
		ARIMA *struct {
			P int `json:"p"`
			D int `json:"d"`
			Q int `json:"q"`
		} `json:"arima"`
	} `json:"model_parameters"`
	Federated bool            `json:"use_federated"`
	Together  FederatedParams `json:"federated_params"`
	Dataset   string          `json:"dataset_name"` // a file of ICOS' service: there are none here

	Query   string     `json:"telemetry_metric"`
	Step    int        `json:"step_in_seconds"`
	Window  int        `json:"window_in_seconds"`
	Values  []*float64 `json:"values"` // instead of a query, in ascending time; null is a gap
	Graph   *Graph     `json:"graph"`  // instead of both: the nodes of a network, all at once
	Horizon int        `json:"horizon"`
	Seed    uint64     `json:"seed"`

	Peers int `json:"-"` // other controllers that may take part in a federated training

	until time.Time // of the values of a federated training, which are the same in each round
}

const (
	autoKind    = "auto"
	defaultName = "METRICS"

	defaultTest   = 0.3
	defaultStep   = 60
	defaultModels = 5
	mostModels    = 100
	mostLags      = 1000
	mostHorizon   = 1000
	mostValues    = 100_000
	fewestValues  = 24

	confidence = 0.95 // of intervals, as ICOS' answers call theirs
)

// kinds are the kinds by the names of ICOS and by their own.
func kindOf(name string, o *Order) (forecast.Kind, error) {
	switch name = strings.ToLower(name); name {
	case "xgb":
		return forecast.Trees{}, nil
	case "arima":
		if a := o.Params.ARIMA; a != nil {
			return forecast.ARIMA{P: a.P, D: a.D, Q: a.Q}, nil
		}
	case "pytorch": // ICOS' networks of that name are LSTMs
		return forecast.LSTM{}, nil
	}
	k, err := forecast.KindOf(name)
	if err != nil {
		return nil, fmt.Errorf("is none of auto, XGB, ARIMA, PYTORCH, %s", names())
	}
	return k, nil
}

func names() string {
	var list []string
	for _, k := range forecast.Kinds {
		list = append(list, k.Name())
	}
	return strings.Join(list, ", ")
}

// Check says what is wrong with the order; the error is Invalid.
func (o Order) Check() error { return o.complete() }

// HeldBack returns the errors of another model on the values that a training held back, as telemetry has them now. The error is
// NotFound for a model that is not there, Invalid where the values are too few for it.
func (t Trainer) HeldBack(ctx context.Context, of *Training, tag string) (forecast.Errors, error) {
	if of.order.Graph != nil {
		return t.heldBackGraph(ctx, &of.order, tag)
	}
	m, learnt, err := t.Models.open(ctx, t.DB, tag)
	if err != nil {
		return forecast.Errors{}, err
	}
	s, _, err := t.series(ctx, &of.order)
	if err != nil {
		return forecast.Errors{}, err
	}
	options := of.order.options()
	_, from := options.Split(len(s.Values))
	e, err := forecast.Evaluate(learnt, s.Values, from, len(s.Values), options.Horizon, forecast.Interval{})
	if errors.Is(err, forecast.ErrShort) {
		return e, problem.Wrap(problem.Invalid, err, "%s cannot be judged: %v", m.Tag, err)
	}
	return e, err
}

// complete sets defaults and checks. The error is Invalid.
func (o *Order) complete() error {
	var faults problem.Faults
	o.ModelType = cmp.Or(o.ModelType, autoKind)
	o.ModelName = cmp.Or(o.ModelName, defaultName)
	if o.ModelName == defaultName { // the names of ICOS' models
		o.ModelName = "metrics_utilization_model_" + strings.ToLower(o.ModelType)
	}
	if !modelName.MatchString(o.ModelName) {
		faults.Add("model_name", 0, "is no name: letters, digits, _, - and ., at most 100, and a letter or digit first")
	}
	if !strings.EqualFold(o.ModelType, autoKind) {
		known := o.known
		if o.Federated {
			known = o.knownForFederated
		} else if o.Graph != nil {
			known = o.knownForGraphs
		}
		if err := known(); err != nil {
			faults.Add("model_type", 0, "%v", err)
		}
	}
	o.asFederated()
	o.MaxModels, o.Step = cmp.Or(o.MaxModels, defaultModels), cmp.Or(o.Step, defaultStep)
	options := forecast.Options{Lags: o.StepsBack, Horizon: o.Horizon}.WithDefaults()
	o.StepsBack, o.Horizon = options.Lags, options.Horizon
	in := func(path string, value, low, high int) {
		if value < low || value > high {
			faults.Add(path, 0, "must be %d to %d", low, high)
		}
	}
	in("max_models_count", o.MaxModels, 1, mostModels)
	in("steps_back", o.StepsBack, 2, mostLags)
	in("horizon", o.Horizon, 1, mostHorizon)
	in("step_in_seconds", o.Step, 1, 86400)
	if o.TestSize == nil {
		o.TestSize = new(float64)
		*o.TestSize = defaultTest
	}
	if !(*o.TestSize >= 0.05 && *o.TestSize <= 0.6) {
		faults.Add("test_size", 0, "must be 0.05 to 0.6")
	}
	if o.Federated {
		o.checkFederated(&faults, in)
	}
	if o.Dataset != "" {
		faults.Add("dataset_name", 0, "names a file of another service: give telemetry_metric or values")
	}
	switch {
	case o.Graph != nil:
		o.Graph.complete(&faults)
		if o.Query != "" || o.Values != nil {
			faults.Add("graph", 0, "does not go together with telemetry_metric or values")
		}
		o.completeWindow(in)
	case o.Query == "" && o.Values == nil:
		faults.Add("telemetry_metric", 0, "is missing: a query, values or a graph")
	case o.Query != "" && o.Values != nil:
		faults.Add("values", 0, "do not go together with telemetry_metric")
	case o.Values != nil:
		in("values", len(o.Values), fewestValues, mostValues)
	default:
		checkQuery("telemetry_metric", o.Query, &faults)
		o.completeWindow(in)
	}
	return faults.Err("the training is not understood")
}

func (o *Order) completeWindow(in func(path string, value, low, high int)) {
	o.Window = cmp.Or(o.Window, min(7*86400, telemetry.MaxPoints*o.Step))
	in("window_in_seconds", o.Window, fewestValues*o.Step, telemetry.MaxPoints*o.Step)
}

func (o *Order) known() error {
	_, err := kindOf(o.ModelType, o)
	return err
}

func (o *Order) options() forecast.Options {
	return forecast.Options{Lags: o.StepsBack, Horizon: o.Horizon, Seed: o.Seed, Test: *o.TestSize}
}

// Training is the state of one.
type Training struct {
	ID        uuid.UUID     `json:"training_id"`
	Model     string        `json:"model_name"`
	Version   int           `json:"version"`
	State     TrainingState `json:"state"`
	Why       string        `json:"why,omitempty"`
	CreatedBy string        `json:"created_by"`
	CreatedAt time.Time     `json:"created_at"`
	EndedAt   *time.Time    `json:"ended_at,omitempty"`

	// As ICOS answers, when it has finished.
	Tag     string           `json:"Trained Model,omitempty"`
	Splits  *Splits          `json:"Dataset Splits,omitempty"`
	Results *forecast.Errors `json:"Results with test dataset,omitempty"`
	Result  *Model           `json:"model,omitempty"` // nil too when it was removed since

	order Order
}

// Splits are the sizes of a series' parts.
type Splits struct {
	Train int `json:"train_data"`
	Test  int `json:"test_data"`
}

// TrainingState of a training.
type TrainingState string

// The states; the latter two are final.
const (
	Waiting  TrainingState = "Waiting"
	Finished TrainingState = "Finished"
	Failed   TrainingState = "Failed"
)

const (
	insertTraining = `insert into trainings (id, model, version, request, state, created_by) select $1, $2,
1 + coalesce((select max(version) from trainings where model = $2), 0), $3, $4, $5 returning version`

	selectTraining = `select t.id, t.model, t.version, t.state, t.why, t.created_by, t.created_at, t.ended_at, t.request
from trainings t where t.id = $1`

	endTraining = `update trainings set state = $2, why = $3, ended_at = now() where id = $1 and state = $4`

	insertModel = `insert into models (name, version, kind, about) values ($1, $2, $3, $4) on conflict do nothing`

	pruneModels = `delete from models where name = $1 and version not in
(select version from models where name = $1 order by version desc limit $2)`

	// of a name, versions go on counting from the last one
	pruneTrainings = `delete from trainings where model = $1 and state <> $2 and version < $3 - 100`
)

// Request stores a training to be done.
func Request(ctx context.Context, tx *store.Tx, o Order, by string) (*Training, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	t := &Training{ID: uuid.Must(uuid.NewV7()), Model: o.ModelName, State: Waiting, CreatedBy: by, CreatedAt: time.Now().UTC()}
	if err := tx.AwaitTurn(ctx, store.TurnModel, o.ModelName); err != nil {
		return nil, err
	}
	err := tx.QueryRow(ctx, insertTraining, t.ID, o.ModelName, o, Waiting, by).Scan(&t.Version)
	if err != nil {
		return nil, store.Classify(err)
	}
	if o.Federated {
		if err := o.begin(ctx, tx, t); err != nil {
			return nil, err
		}
	}
	return t, tx.Emit(ctx, events.TrainingRequested, t.ID.String(), events.Training{ID: t.ID})
}

// GetTraining returns a training. The error is NotFound.
func GetTraining(ctx context.Context, q store.Querier, id uuid.UUID) (*Training, error) {
	t, err := store.One(ctx, q, "read the training", func(row pgx.CollectableRow) (*Training, error) {
		t := &Training{}
		return t, row.Scan(&t.ID, &t.Model, &t.Version, &t.State, &t.Why, &t.CreatedBy, &t.CreatedAt, &t.EndedAt, &t.order)
	}, selectTraining, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no training %s", id)
	}
	if err != nil {
		return nil, err
	}
	if t.order.Federated {
		t.order.until = t.CreatedAt
	}
	if t.State != Finished {
		return t, nil
	}
	t.Tag = tagOf(t.Model, t.Version)
	m, err := GetModel(ctx, q, t.Tag)
	if problem.KindOf(err) == problem.NotFound {
		return t, nil // removed since
	}
	if err != nil {
		return nil, err
	}
	t.Result, t.Splits, t.Results = m, &Splits{m.Train, m.TestData}, &m.Test
	return t, nil
}

// Trainer trains what was asked for.
type Trainer struct {
	DB        *store.DB
	Telemetry *telemetry.Client
	Models    Models
}

// claimed is how long one training may take.
const claimed = 5 * time.Minute

// Train does a training that waits. A failure that may pass is returned; one that will not ends the training. The object
// has the name of the model's version, so that a repeat replaces it.
func (t Trainer) Train(ctx context.Context, id uuid.UUID) error {
	if err := t.Models.Check(); err != nil {
		return err
	}
	var work *Training
	var claim *store.Claim
	err := t.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		work, claim = nil, nil
		if work, err = GetTraining(ctx, tx, id); err != nil || work.State != Waiting {
			return err
		}
		claim, err = tx.Claim(ctx, "training "+id.String(), claimed)
		return err
	})
	if problem.KindOf(err) == problem.NotFound { // pruned long ago
		return nil
	}
	if err != nil || claim == nil {
		return err
	}
	var about *About
	var kind string
	err = claim.Do(ctx, func(ctx context.Context) error {
		m, err := t.trainFor(ctx, work)
		if err != nil || m == nil {
			return err
		}
		kind, about = m.kind, &m.about
		return t.Models.save(ctx, work.Model, work.Version, m.model)
	})
	if err == nil && about == nil || err != nil && problem.KindOf(err) != problem.Invalid { // rounds go on, or it may yet be done
		return t.DB.Release(ctx, claim, err)
	}
	held := false
	failed := err
	err = t.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		if held, err = tx.Complete(ctx, claim); err != nil || !held {
			return err
		}
		if failed != nil {
			if _, err := tx.Exec(ctx, endTraining, id, Failed, failed.Error(), Waiting); err != nil {
				return err
			}
			return work.endRounds(ctx, tx)
		}
		if tag, err := tx.Exec(ctx, endTraining, id, Finished, "", Waiting); err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, pruneTrainings, work.Model, Waiting, work.Version); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertModel, work.Model, work.Version, kind, about); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, pruneModels, work.Model, work.order.MaxModels); err != nil {
			return err
		}
		return work.endRounds(ctx, tx)
	})
	if err != nil || !held || failed != nil {
		return store.Classify(err)
	}
	return t.Models.prune(ctx, t.DB, work.Model)
}

// origin says where a series is from.
type origin struct {
	labels map[string]string
	others int
}

// series are the values to train on. Of several series of a query it is the longest; of equally long ones the first by its
// labels.
func (t Trainer) series(ctx context.Context, o *Order) (forecast.Series, origin, error) {
	step := time.Duration(o.Step) * time.Second
	end := time.Now().UTC().Truncate(step)
	if !o.until.IsZero() {
		end = o.until.UTC().Truncate(step)
	}
	if o.Values != nil {
		s := forecast.Series{Step: step, Values: make([]float64, len(o.Values))}
		s.Start = end.Add(-time.Duration(len(o.Values)-1) * step)
		for i, v := range o.Values {
			s.Values[i] = math.NaN()
			if v != nil {
				s.Values[i] = *v
			}
		}
		return s, origin{}, nil
	}
	found, err := t.Telemetry.QueryRange(ctx, o.Query, end.Add(-time.Duration(o.Window)*time.Second), end, step)
	if err != nil {
		return forecast.Series{}, origin{}, err
	}
	if len(found) == 0 {
		return forecast.Series{}, origin{}, problem.New(problem.Invalid, "telemetry has no series for %s", problem.Brief(o.Query, 200))
	}
	longest := slices.MaxFunc(found, func(a, b telemetry.Series) int {
		return cmp.Or(cmp.Compare(len(a.Points), len(b.Points)), strings.Compare(text(b.Labels), text(a.Labels)))
	})
	s, err := regular(longest, step)
	if err != nil {
		err = problem.Wrap(problem.Invalid, err, "the series cannot be trained on: %v", err)
	}
	return s, origin{longest.Labels, len(found) - 1}, err
}

// text is labels in their order.
func text(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(k + "\x00" + labels[k] + "\x00")
	}
	return b.String()
}

func regular(s telemetry.Series, step time.Duration) (forecast.Series, error) {
	points := make([]forecast.Point, len(s.Points))
	for i, p := range s.Points {
		points[i] = forecast.Point{At: p.At, Value: p.Value}
	}
	return forecast.Regular(points, step)
}

// trained is a model and how it came to be.
type trained struct {
	model any // of one series, or of a graph
	kind  string
	about About
}

// trainFor gets what an order names from telemetry, and trains on it. Without an error it is nil while rounds go on.
func (t Trainer) trainFor(ctx context.Context, work *Training) (*trained, error) {
	o := &work.order
	if o.Graph != nil {
		g, err := t.graph(ctx, o)
		if err != nil {
			return nil, err
		}
		return trainGraph(ctx, g, o)
	}
	s, from, err := t.series(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Federated {
		return t.trainTogether(ctx, work, s, from)
	}
	return train(ctx, s, o, from)
}

// train judges on held-back time what was asked for beside the naive kinds, and trains it anew on all values. The error is
// Invalid when the series cannot be learnt from.
func train(ctx context.Context, s forecast.Series, o *Order, from origin) (*trained, error) {
	kinds := forecast.Kinds
	wanted := autoKind
	if !strings.EqualFold(o.ModelType, autoKind) {
		k, err := kindOf(o.ModelType, o)
		if err != nil {
			return nil, problem.New(problem.Invalid, "%v", err)
		}
		kinds, wanted = []forecast.Kind{forecast.LastValue{}, forecast.Yesterday{}}, k.Name()
		if !forecast.IsNaive(wanted) {
			kinds = append(kinds, k)
		}
	}
	return trainKinds(ctx, s, o, from, wanted, kinds)
}

// trainKinds takes the kind that is wanted, or the best one.
func trainKinds(ctx context.Context, s forecast.Series, o *Order, from origin, wanted string, kinds []forecast.Kind) (*trained, error) {
	options := o.options()
	verdicts, err := forecast.Compare(ctx, s, options, confidence, kinds...)
	if err != nil {
		return nil, err
	}
	best, about, err := choose(verdicts, wanted, len(s.Values))
	if err != nil {
		return nil, err
	}
	kind := kinds[slices.IndexFunc(kinds, func(k forecast.Kind) bool { return k.Name() == best.Kind })]
	m, err := kind.Train(ctx, s, options)
	if err != nil {
		return nil, untrained(ctx, best.Kind, err)
	}
	about.complete(o, s.Start, len(s.Values))
	about.Query, about.Series, about.Others = o.Query, from.labels, from.others
	return &trained{m, best.Kind, about}, nil
}

// choose takes the kind that was wanted, or the best one, of so many values, and says how it did. The error is Invalid.
func choose(verdicts []forecast.Verdict, wanted string, n int) (best *forecast.Verdict, about About, err error) {
	best = forecast.Best(verdicts)
	about = About{Naive: map[string]forecast.Errors{}, Tried: map[string]any{}}
	for i, v := range verdicts {
		if wanted == v.Kind {
			best = &verdicts[i]
		}
		switch {
		case v.Err != nil:
			about.Tried[v.Kind] = v.Err.Error()
		default:
			about.Tried[v.Kind] = v.Test.MAE
			if forecast.IsNaive(v.Kind) {
				about.Naive[v.Kind] = v.Test
			}
		}
	}
	switch {
	case best == nil:
		return nil, about, problem.New(problem.Invalid, "no kind can be trained on %d values: %v", n, verdicts[0].Err)
	case best.Err != nil:
		return nil, about, problem.New(problem.Invalid, "%s cannot be trained on %d values: %v", best.Kind, n, best.Err)
	}
	about.Test, about.Interval, about.Better = best.Test, best.Interval, !forecast.IsNaive(best.Kind)
	for _, e := range about.Naive {
		about.Better = about.Better && best.Test.MAE < e.MAE
	}
	return best, about, nil
}

// untrained is what a training failed with.
func untrained(ctx context.Context, kind string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return problem.Wrap(problem.Invalid, err, "%s cannot be trained: %v", kind, err)
}

// complete says on which values it was trained.
func (a *About) complete(o *Order, from time.Time, n int) {
	seen, test := o.options().Split(n)
	a.From, a.Step, a.Values, a.Train, a.TestData, a.Options = from, o.Step, n, seen, n-test, o.options()
}
