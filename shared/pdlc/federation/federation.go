// Package federation keeps models that several clusters train together, as their coordinator. Package participant takes part in those of others.
// Package federated has the mathematics.
package federation

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Plan is what is asked of participants, and of how many.
type Plan struct {
	federated.Plan
	Fewest int `json:"fewest"`        // participants without which a round does not end
	Round  int `json:"round_seconds"` // how long stragglers are waited for
	Step   int `json:"step_in_seconds"`
}

// Federation is a model that is trained together.
type Federation struct {
	Name         string              `json:"name"`
	Plan         Plan                `json:"plan"`
	Round        int                 `json:"round"`
	Weights      []float64           `json:"weights"`
	Refused      []federated.Refused `json:"refused"`      // updates of the last round that did not count
	Heard        int                 `json:"heard"`        // updates of the last round that counted
	Participants int                 `json:"participants"` // that have sent theirs in this round
	EndsAt       time.Time           `json:"ends_at"`
	CreatedBy    string              `json:"created_by"`
	Rounds       int                 `json:"rounds,omitempty"`   // after which it is over; 0: it goes on
	Waited       int                 `json:"waited,omitempty"`   // how often the time of the present round was extended
	Training     *uuid.UUID          `json:"training,omitempty"` // of metrics export, that asked for it and ends it
}

// patience is how often the time of a round is extended before a training gives up.
const patience = 12

// Over says that no further round will be: there were as many as were asked for, or too few took part for too long.
func (f *Federation) Over() bool { return f.Rounds > 0 && (f.Round > f.Rounds || f.Waited > patience) }

// Done says that there were as many rounds as were asked for.
func (f *Federation) Done() bool { return f.Rounds > 0 && f.Round > f.Rounds }

const (
	columns = `select f.name, f.plan, f.round, f.weights, f.refused, f.heard,
	(select count(*) from pdlc_updates u where u.federation = f.name and u.round = f.round)::int, f.ends_at, f.created_by, f.rounds, f.waited, f.training
from pdlc_federations f`

	// one that a training asked for is not begun anew, and a training takes over none
	insert = `insert into pdlc_federations (name, plan, weights, ends_at, created_by, rounds, training) values ($1, $2, $3, now() + make_interval(secs => $4), $5, $6, $7)
on conflict (name) do update set plan = excluded.plan, weights = excluded.weights, round = pdlc_federations.round + 1, ends_at = excluded.ends_at, refused = '[]', heard = 0
where pdlc_federations.training is null and excluded.training is null`

	remove = `delete from pdlc_federations where name = $1 returning training`

	removeOf = `delete from pdlc_federations where name = $1 and training = $2`

	insertUpdate = `insert into pdlc_updates (federation, round, participant, change, windows) values ($1, $2, $3, $4, $5)
on conflict (federation, round, participant) do update set change = excluded.change, windows = excluded.windows, at = now()`

	selectEnded = columns + ` where f.ends_at <= now() and (f.rounds = 0 or f.round <= f.rounds and f.waited <= $1) order by f.name for update skip locked limit 20`

	selectUpdates = `select participant, change, windows from pdlc_updates where federation = $1 and round = $2 order by participant`

	advance = `update pdlc_federations set weights = $2, round = round + 1, waited = 0, refused = $3, heard = $4, ends_at = now() + make_interval(secs => $5) where name = $1`

	extend = `update pdlc_federations set waited = waited + 1, ends_at = now() + make_interval(secs => $2) where name = $1`

	forget = `delete from pdlc_updates where federation = $1 and round <= $2`
)

var federationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`) // as of models

// Save begins a federation, or begins it anew with another plan. The error is Invalid, or Conflict where a training goes on.
func Save(ctx context.Context, tx *store.Tx, name string, p Plan, by string) (Federation, error) {
	return save(ctx, tx, name, p, 0, nil, by)
}

// Begin begins the federation of a training, which is told of the end of each of so many rounds. The errors are as of Save; Conflict also
// where there is one of that name.
func Begin(ctx context.Context, tx *store.Tx, name string, p Plan, rounds int, training uuid.UUID, by string) error {
	_, err := save(ctx, tx, name, p, rounds, &training, by)
	return err
}

func save(ctx context.Context, tx *store.Tx, name string, p Plan, rounds int, training *uuid.UUID, by string) (Federation, error) {
	p.Lags, p.Horizon, p.Clip, p.Epochs = cmp.Or(p.Lags, 12), cmp.Or(p.Horizon, 12), cmp.Or(p.Clip, 5), cmp.Or(p.Epochs, 3)
	p.Fewest, p.Round, p.Step = cmp.Or(p.Fewest, 2), cmp.Or(p.Round, 300), cmp.Or(p.Step, 300)
	var faults problem.Faults
	if !federationName.MatchString(name) {
		faults.Add("name", 0, "is no name: letters, digits, _, - and ., at most 100, and a letter or digit first")
	}
	if err := p.Check(); err != nil {
		faults.Add("plan", 0, "%v", err)
	}
	if p.Fewest < 2 || p.Fewest > 1000 || p.Round < 1 || p.Round > 86400 || p.Step < 1 || p.Step > 86400 {
		faults.Add("fewest", 0, "is 2 to 1000, round_seconds and step_in_seconds 1 to 86400")
	}
	if err := faults.Err("the federation is not understood"); err != nil {
		return Federation{}, err
	}
	tag, err := tx.Exec(ctx, insert, name, p, make([]float64, p.Weights()), p.Round, by, rounds, training)
	if err != nil {
		return Federation{}, store.Classify(err)
	}
	if tag.RowsAffected() == 0 {
		return Federation{}, problem.New(problem.Conflict, "the federation %s goes on: await its end, or end it", name)
	}
	return Get(ctx, tx, name)
}

// Get returns a federation. The error is NotFound.
func Get(ctx context.Context, q store.Querier, name string) (Federation, error) {
	f, err := store.One(ctx, q, "read the federation", pgx.RowToStructByPos[Federation], columns+` where f.name = $1`, name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = problem.New(problem.NotFound, "there is no federation %s", problem.Brief(name, 60))
	}
	return f, err
}

// Delete ends a federation; a training that asked for it is told. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	var training *uuid.UUID
	err := tx.QueryRow(ctx, remove, name).Scan(&training)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, "there is no federation %s", problem.Brief(name, 60))
	}
	if err != nil {
		return store.Classify(err)
	}
	return tell(ctx, tx, training)
}

// End removes the federation of a training that is over.
func End(ctx context.Context, tx *store.Tx, name string, training uuid.UUID) error {
	_, err := tx.Exec(ctx, removeOf, name, training)
	return store.Classify(err)
}

// tell wakes a training, which looks how far its federation is.
func tell(ctx context.Context, tx *store.Tx, training *uuid.UUID) error {
	if training == nil {
		return nil
	}
	return tx.Emit(ctx, events.TrainingRequested, training.String(), events.Training{ID: *training})
}

// Sent is what a participant sends: how it wants the weights of a round changed. It has no field for a sample.
type Sent struct {
	Round   int       `json:"round"`
	Change  []float64 `json:"change"`
	Windows int       `json:"windows"`
}

// Take takes an update in; a repeat replaces it. The error is Conflict for another round than the present one: a straggler begins anew.
func Take(ctx context.Context, tx *store.Tx, name, participant string, in Sent) error {
	f, err := store.One(ctx, tx, "read the federation", pgx.RowToStructByPos[Federation], columns+` where f.name = $1 for update`, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return problem.New(problem.NotFound, "there is no federation %s", problem.Brief(name, 60))
	}
	switch {
	case err != nil:
		return err
	case f.Over():
		return problem.New(problem.Conflict, "the federation is over")
	case in.Round != f.Round:
		return problem.New(problem.Conflict, "round %d is over or not begun: the present one is %d", in.Round, f.Round)
	case len(in.Change) != len(f.Weights):
		var faults problem.Faults
		faults.Add("change", 0, "has %d values, not %d", len(in.Change), len(f.Weights))
		return faults.Err("the update is not understood")
	}
	_, err = tx.Exec(ctx, insertUpdate, name, in.Round, participant, in.Change, in.Windows)
	return store.Classify(err)
}

// EndRounds ends the rounds whose time is over and that enough participants were heard in; the others get more time. Trainings are told.
func EndRounds(ctx context.Context, tx *store.Tx) error {
	ended, err := store.Collect(ctx, tx, "read rounds", pgx.RowToStructByPos[Federation], selectEnded, patience)
	if err != nil {
		return err
	}
	for i := range ended {
		f := &ended[i]
		if f.Participants < f.Plan.Fewest {
			if _, err := tx.Exec(ctx, extend, f.Name, f.Plan.Round); err != nil {
				return store.Classify(err)
			}
			if f.Waited == patience { // and now once more
				if err := tell(ctx, tx, f.Training); err != nil {
					return err
				}
			}
			continue
		}
		updates, err := store.Collect(ctx, tx, "read updates", pgx.RowToStructByPos[federated.Update], selectUpdates, f.Name, f.Round)
		if err != nil {
			return err
		}
		next, refused := federated.Aggregate(f.Plan.Plan, f.Weights, updates)
		if refused == nil {
			refused = []federated.Refused{}
		}
		if _, err := tx.Exec(ctx, advance, f.Name, next, refused, len(updates)-len(refused), f.Plan.Round); err != nil {
			return store.Classify(err)
		}
		if _, err := tx.Exec(ctx, forget, f.Name, f.Round); err != nil {
			return store.Classify(err)
		}
		if err := tell(ctx, tx, f.Training); err != nil {
			return err
		}
	}
	return nil
}
