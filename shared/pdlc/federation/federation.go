// Package federation keeps models that several clusters train together, as their coordinator. Package participant takes part in those of others.
// Package federated has the mathematics.
package federation

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

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
}

const (
	columns = `select f.name, f.plan, f.round, f.weights, f.refused, f.heard,
	(select count(*) from pdlc_updates u where u.federation = f.name and u.round = f.round)::int, f.ends_at, f.created_by from pdlc_federations f`

	insert = `insert into pdlc_federations (name, plan, weights, ends_at, created_by) values ($1, $2, $3, now() + make_interval(secs => $4), $5)
on conflict (name) do update set plan = excluded.plan, weights = excluded.weights, round = pdlc_federations.round + 1, ends_at = excluded.ends_at, refused = '[]', heard = 0`

	remove = `delete from pdlc_federations where name = $1`

	insertUpdate = `insert into pdlc_updates (federation, round, participant, change, windows) values ($1, $2, $3, $4, $5)
on conflict (federation, round, participant) do update set change = excluded.change, windows = excluded.windows, at = now()`

	selectEnded = columns + ` where f.ends_at <= now() order by f.name for update skip locked limit 20`

	selectUpdates = `select participant, change, windows from pdlc_updates where federation = $1 and round = $2 order by participant`

	advance = `update pdlc_federations set weights = $2, round = round + 1, refused = $3, heard = $4, ends_at = now() + make_interval(secs => $5) where name = $1`

	extend = `update pdlc_federations set ends_at = now() + make_interval(secs => $2) where name = $1`

	forget = `delete from pdlc_updates where federation = $1 and round <= $2`
)

var federationName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// Save begins a federation, or begins it anew with another plan. The error is Invalid.
func Save(ctx context.Context, tx *store.Tx, name string, p Plan, by string) (Federation, error) {
	p.Lags, p.Horizon, p.Clip, p.Epochs = cmp.Or(p.Lags, 12), cmp.Or(p.Horizon, 12), cmp.Or(p.Clip, 5), cmp.Or(p.Epochs, 3)
	p.Fewest, p.Round, p.Step = cmp.Or(p.Fewest, 2), cmp.Or(p.Round, 300), cmp.Or(p.Step, 300)
	var faults problem.Faults
	if !federationName.MatchString(name) {
		faults.Add("name", 0, "is no name: small letters, digits and -, at most 63, a letter first")
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
	if _, err := tx.Exec(ctx, insert, name, p, make([]float64, p.Weights()), p.Round, by); err != nil {
		return Federation{}, store.Classify(err)
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

// Delete ends a federation. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	tag, err := tx.Exec(ctx, remove, name)
	if err == nil && tag.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "there is no federation %s", problem.Brief(name, 60))
	}
	return store.Classify(err)
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

// EndRounds ends the rounds whose time is over and that enough participants were heard in; the others get more time.
func EndRounds(ctx context.Context, tx *store.Tx) error {
	ended, err := store.Collect(ctx, tx, "read rounds", pgx.RowToStructByPos[Federation], selectEnded)
	if err != nil {
		return err
	}
	for i := range ended {
		f := &ended[i]
		if f.Participants < f.Plan.Fewest {
			if _, err := tx.Exec(ctx, extend, f.Name, f.Plan.Round); err != nil {
				return store.Classify(err)
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
	}
	return nil
}
