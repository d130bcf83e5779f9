package metricsexport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// A federated training has a federation of its model's name (shared/pdlc/federation), in which it takes part with its own series. It is
// woken when a round has ended; after the last it judges the model on what its own series held back in all rounds.

// FederatedParams are those of ICOS, and what its rounds do not have. What is about networks there does not concern a linear model.
type FederatedParams struct {
	Run struct {
		Epochs    int `json:"local-epochs"`
		Rounds    int `json:"num-server-rounds"`
		Available int `json:"min-available-clients"`
		Evaluate  int `json:"min-evaluate-clients"`
		Fit       int `json:"min-fit-clients"`
		TimeStep  int `json:"time-step"` // steps back
	} `json:"run_config"`
	Clip    float64 `json:"clip"`
	Epsilon float64 `json:"epsilon"`
	Round   int     `json:"round_seconds"`
}

const mostRounds = 1000

// asFederated takes over what goes by another name there.
func (o *Order) asFederated() {
	if o.Federated {
		o.StepsBack = cmp.Or(o.Together.Run.TimeStep, o.StepsBack)
		o.Together.Run.Rounds = cmp.Or(o.Together.Run.Rounds, 1)
	}
}

func (o *Order) knownForFederated() error {
	if t := strings.ToLower(o.ModelType); t != "pytorch" && t != (together{}).Name() {
		return fmt.Errorf("is none of auto, PYTORCH, %s: several clusters train a model that is linear in the lags of a series", together{}.Name())
	}
	return nil
}

func (o *Order) checkFederated(faults *problem.Faults, in func(path string, value, low, high int)) {
	const at = "federated_params."
	if o.Peers < 1 {
		faults.Add("use_federated", 0, "needs another controller to train with, and none is set here: CONTROLLER_PEERS")
	}
	if o.Graph != nil {
		faults.Add("graph", 0, "cannot be trained federated")
	}
	in(at+"run_config.num-server-rounds", o.Together.Run.Rounds, 1, mostRounds)
	p := o.plan()
	in(at+"run_config.min-fit-clients", p.Fewest, 2, 1000)
	in(at+"round_seconds", p.Round, 1, 86400)
	if err := p.Check(); err != nil {
		faults.Add(strings.TrimSuffix(at, "."), 0, "%v", err)
	}
}

// plan is what the participants are asked for.
func (o *Order) plan() federation.Plan {
	run := &o.Together.Run
	return federation.Plan{
		Plan: federated.Plan{
			Shape: federated.Shape{Lags: o.StepsBack, Horizon: o.Horizon}, Clip: cmp.Or(o.Together.Clip, 5), Epsilon: o.Together.Epsilon,
			Epochs: cmp.Or(run.Epochs, 1),
		},
		Fewest: cmp.Or(max(run.Fit, run.Available, run.Evaluate), 2), Round: cmp.Or(o.Together.Round, 300), Step: o.Step,
	}
}

// begin begins the rounds. The error is Conflict while there are others under the name.
func (o *Order) begin(ctx context.Context, tx *store.Tx, t *Training) error {
	return federation.Begin(ctx, tx, t.Model, o.plan(), o.Together.Run.Rounds, t.ID, t.CreatedBy)
}

// endRounds ends what begin began.
func (t *Training) endRounds(ctx context.Context, tx *store.Tx) error {
	if !t.order.Federated {
		return nil
	}
	return federation.End(ctx, tx, t.Model, t.ID)
}

// Federation is how several clusters trained a model.
type Federation struct {
	Rounds       int                 `json:"rounds"`
	Participants int                 `json:"participants"` // whose updates counted in the last one, this controller among them
	Refused      []federated.Refused `json:"refused"`
}

// trainTogether takes part in the present round, or takes what the rounds have led to. Without an error it is nil while they go on.
func (t Trainer) trainTogether(ctx context.Context, work *Training, s forecast.Series, from origin) (*trained, error) {
	f, err := federation.Get(ctx, t.DB, work.Model)
	switch {
	case problem.KindOf(err) == problem.NotFound || err == nil && (f.Training == nil || *f.Training != work.ID):
		return nil, problem.New(problem.Invalid, "its federation was ended by somebody")
	case err != nil:
		return nil, err
	case f.Done():
		last := &Federation{Rounds: f.Round - 1, Participants: f.Heard, Refused: f.Refused}
		kind := together{federated.Model{Shape: f.Plan.Shape, W: f.Weights}}
		m, err := trainKinds(ctx, s, &work.order, from, kind.Name(), []forecast.Kind{forecast.LastValue{}, forecast.Yesterday{}, kind})
		if err == nil {
			m.about.Federation = last
		}
		return m, err
	case f.Over():
		return nil, problem.New(problem.Invalid,
			"in round %d of %d only %d took part, %d must: other controllers do if their FEDERATIONS names this one and %s", f.Round, f.Rounds,
			f.Participants, f.Plan.Fewest, f.Name)
	}
	random, err := federated.Random()
	if err != nil {
		return nil, err
	}
	seen, _ := work.order.options().Split(len(s.Values))
	change, windows, err := federated.Train(ctx, f.Plan.Plan, f.Weights, s.Values[:seen], random)
	if errors.Is(err, federated.ErrShort) {
		return nil, problem.Wrap(problem.Invalid, err, "the series cannot be trained on: %v", err)
	}
	if err != nil {
		return nil, err
	}
	err = t.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return federation.Take(ctx, tx, f.Name, "training "+work.ID.String(), federation.Sent{Round: f.Round, Change: change, Windows: windows})
	})
	if k := problem.KindOf(err); k == problem.Conflict || k == problem.NotFound {
		return nil, nil // the round is over by now: the event about that is on its way
	}
	return nil, err
}

// together is the kind of a model that several clusters have trained: a series of one cluster changes it no more.
type together struct{ federated.Model }

// Name is of forecast.Kind.
func (together) Name() string { return "federated" }

// Train is of forecast.Kind.
func (k together) Train(context.Context, forecast.Series, forecast.Options) (forecast.Model, error) {
	return k.Model, nil
}

// Decode is of forecast.Kind.
func (together) Decode(data []byte) (forecast.Model, error) {
	var m federated.Model
	return m, json.Unmarshal(data, &m)
}

// storedKind is the kind of a stored model.
func storedKind(name string) (forecast.Kind, error) {
	if name == (together{}).Name() {
		return together{}, nil
	}
	return forecast.KindOf(name)
}
