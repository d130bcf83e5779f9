// Package pipeline trains models of metricsexport again and again, promotes one only when it is better than the one in use and than
// the naive kinds, and goes back when the one in use gets worse than these. The tag name:champion is the one in use.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Pipeline is one.
type Pipeline struct {
	Name  string `json:"name"`
	Query string `json:"telemetry_metric"`
	Model string `json:"model_name"`
	Settings
	Champion  *int       `json:"champion"` // version; nil: the naive kinds are better, or nothing was trained yet
	Former    *int       `json:"former"`
	Training  *uuid.UUID `json:"training,omitempty"` // that goes on
	Why       string     `json:"why,omitempty"`      // of what was decided last
	DueAt     time.Time  `json:"due_at"`
	CreatedBy string     `json:"created_by"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// Settings of a pipeline.
type Settings struct {
	Type    string `json:"model_type,omitempty"` // a kind, or auto
	Step    int    `json:"step_in_seconds"`
	Window  int    `json:"window_in_seconds"`
	Lags    int    `json:"steps_back"`
	Horizon int    `json:"horizon"`
	Every   int    `json:"every_seconds"` // between two trainings
	Seed    uint64 `json:"seed"`

	Graph *metricsexport.Graph `json:"graph,omitempty"` // instead of a query: the nodes of a network, all at once
}

const (
	columns = `select name, query, model, settings, champion, former, training, why, due_at, created_by, updated_at from pdlc_pipelines`

	upsert = `insert into pdlc_pipelines (name, query, model, settings, created_by) values ($1, $2, $3, $4, $5)
on conflict (name) do update set query = excluded.query, settings = excluded.settings, due_at = now(), updated_at = now()`

	remove = `delete from pdlc_pipelines where name = $1`

	// One that was forgotten by its training (which was removed) is due again after a day.
	selectDue = columns + ` where due_at <= now() and (training is null or due_at < now() - interval '1 day') order by name for update skip locked limit 50`

	selectEnded = `select t.id from pdlc_pipelines p join trainings t on t.id = p.training where t.state <> $1 order by p.name`

	begin = `update pdlc_pipelines set training = $2, due_at = now() + make_interval(secs => $3), updated_at = now() where name = $1`

	settle = `update pdlc_pipelines set champion = $3, former = $4, why = $5, training = null, updated_at = now() where name = $1 and training = $2`

	back = `update pdlc_pipelines set champion = $2, former = $3, why = $4, updated_at = now() where name = $1`
)

func scan(row pgx.CollectableRow) (p Pipeline, err error) {
	err = row.Scan(&p.Name, &p.Query, &p.Model, &p.Settings, &p.Champion, &p.Former, &p.Training, &p.Why, &p.DueAt, &p.CreatedBy, &p.UpdatedAt)
	return p, err
}

var pipelineName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// Save adds a pipeline, or changes one; it is due at once. The error is Invalid.
func Save(ctx context.Context, tx *store.Tx, p Pipeline, by string) (Pipeline, error) {
	p.Type, p.Step, p.Lags, p.Horizon = cmp.Or(p.Type, "auto"), cmp.Or(p.Step, 300), cmp.Or(p.Lags, 12), cmp.Or(p.Horizon, 12)
	p.Window, p.Every = cmp.Or(p.Window, 7*86400), cmp.Or(p.Every, 86400)
	p.Model = "pipeline-" + p.Name
	var faults problem.Faults
	if !pipelineName.MatchString(p.Name) {
		faults.Add("name", 0, "is no name: small letters, digits and -, at most 63, a letter first")
	}
	if p.Every < 60 || p.Every > 30*86400 {
		faults.Add("every_seconds", 0, "must be 60 to %d", 30*86400)
	}
	o := p.order()
	if err := o.Check(); err != nil {
		var wrong *problem.Error
		if errors.As(err, &wrong) {
			faults.Append(wrong.Fields...)
		}
	}
	if err := faults.Err("the pipeline is not understood"); err != nil {
		return p, err
	}
	if _, err := tx.Exec(ctx, upsert, p.Name, p.Query, p.Model, p.Settings, by); err != nil {
		return p, store.Classify(err)
	}
	return Get(ctx, tx, p.Name)
}

// order is what a training of the pipeline is asked for with.
func (p *Pipeline) order() metricsexport.Order {
	return metricsexport.Order{
		ModelName: p.Model, ModelType: p.Type, StepsBack: p.Lags, Horizon: p.Horizon, Query: p.Query, Step: p.Step, Window: p.Window,
		Seed: p.Seed, MaxModels: kept, Graph: p.Graph,
	}
}

// kept is how many versions there are: the one in use is among them, since a training that is not promoted is followed by others.
const kept = 100

// Get returns a pipeline. The error is NotFound.
func Get(ctx context.Context, q store.Querier, name string) (Pipeline, error) {
	p, err := store.One(ctx, q, "read the pipeline", scan, columns+` where name = $1`, name)
	if errors.Is(err, pgx.ErrNoRows) {
		err = problem.New(problem.NotFound, "there is no pipeline %s", problem.Brief(name, 60))
	}
	return p, err
}

// List returns all pipelines.
func List(ctx context.Context, q store.Querier) ([]Pipeline, error) {
	return store.Collect(ctx, q, "read pipelines", scan, columns+` order by name`)
}

// Delete ends a pipeline; its models stay. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, name string) error {
	tag, err := tx.Exec(ctx, remove, name)
	if err == nil && tag.RowsAffected() == 0 {
		return problem.New(problem.NotFound, "there is no pipeline %s", problem.Brief(name, 60))
	}
	return store.Classify(err)
}

// Due asks for the trainings that are due.
func Due(ctx context.Context, tx *store.Tx) error {
	due, err := store.Collect(ctx, tx, "read what is due", scan, selectDue)
	if err != nil {
		return err
	}
	for i := range due {
		p := &due[i]
		t, err := metricsexport.Request(ctx, tx, p.order(), "pipeline "+p.Name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, begin, p.Name, t.ID, p.Every); err != nil {
			return store.Classify(err)
		}
	}
	return nil
}

// JudgeEnded judges all trainings of pipelines that have ended. What one fails with keeps no other.
func JudgeEnded(ctx context.Context, trainer metricsexport.Trainer) error {
	ended, err := store.Collect(ctx, trainer.DB, "read trainings", pgx.RowTo[uuid.UUID], selectEnded, metricsexport.Waiting)
	errs := []error{err}
	for _, id := range ended {
		errs = append(errs, Judge(ctx, trainer, id))
	}
	return errors.Join(errs...)
}

// Judge decides what becomes of a training that has ended: it is promoted if it beats both naive kinds and the model in use on the
// values that were held back. If it does not, and the model in use does not beat the naive kinds there any more, the former one is
// taken again if it does, or none. What is no training of a pipeline is left alone.
func Judge(ctx context.Context, trainer metricsexport.Trainer, id uuid.UUID) error {
	p, err := store.One(ctx, trainer.DB, "read the pipeline", scan, columns+` where training = $1`, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := metricsexport.GetTraining(ctx, trainer.DB, id)
	if err != nil {
		return err
	}
	champion, former, why, err := p.decide(ctx, trainer, t)
	if err != nil {
		return err
	}
	return trainer.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, settle, p.Name, id, champion, former, why)
		return store.Classify(err)
	})
}

// decide returns what is in use then, what was before, and why.
func (p *Pipeline) decide(ctx context.Context, trainer metricsexport.Trainer, t *metricsexport.Training) (champion, former *int, why string, err error) {
	switch {
	case t.State == metricsexport.Failed:
		return p.Champion, p.Former, "version " + fmt.Sprint(t.Version) + " was not trained: " + t.Why, nil
	case t.State != metricsexport.Finished:
		return nil, nil, "", problem.New(problem.Unavailable, "training %s goes on", t.ID)
	case t.Result == nil:
		return p.Champion, p.Former, "version " + fmt.Sprint(t.Version) + " was removed", nil
	}
	naive := math.Inf(1)
	for _, e := range t.Result.Naive {
		naive = min(naive, e.MAE)
	}
	mae := t.Result.Test.MAE
	inUse, err := p.errorOf(ctx, trainer, t, p.Champion)
	if err != nil {
		return nil, nil, "", err
	}
	switch {
	case t.Result.Better && mae < inUse:
		return &t.Version, p.Champion, fmt.Sprintf("promoted version %d: its error is %.4g, that of the one before %s, of the better naive kind %.4g", t.Version, mae, shown(inUse), naive), nil
	case inUse < naive || p.Champion == nil:
		return p.Champion, p.Former, fmt.Sprintf("version %d is not promoted: its error is %.4g, that of the one in use %s, of the better naive kind %.4g", t.Version, mae, shown(inUse), naive), nil
	}
	before, err := p.errorOf(ctx, trainer, t, p.Former)
	if err != nil {
		return nil, nil, "", err
	}
	if before < naive {
		return p.Former, p.Champion, fmt.Sprintf("back to version %d: its error is %.4g, that of version %d %s, of the better naive kind %.4g", *p.Former, before, *p.Champion, shown(inUse), naive), nil
	}
	return nil, p.Champion, fmt.Sprintf("version %d is not used any more: its error is %s, of the better naive kind %.4g", *p.Champion, shown(inUse), naive), nil
}

// errorOf is the error of a version on the values that a training held back; none has an infinite one.
func (p *Pipeline) errorOf(ctx context.Context, trainer metricsexport.Trainer, t *metricsexport.Training, version *int) (float64, error) {
	if version == nil {
		return math.Inf(1), nil
	}
	e, err := trainer.HeldBack(ctx, t, fmt.Sprintf("%s:%d", p.Model, *version))
	if problem.KindOf(err) == problem.NotFound || problem.KindOf(err) == problem.Invalid { // removed, or too short for it now
		return math.Inf(1), nil
	}
	return e.MAE, err
}

func shown(mae float64) string {
	if math.IsInf(mae, 1) {
		return "none"
	}
	return fmt.Sprintf("%.4g", mae)
}

// Rollback takes the former version into use again, by hand. The error is NotFound, or Conflict when there is no former one.
func Rollback(ctx context.Context, tx *store.Tx, name, by string) (Pipeline, error) {
	p, err := store.One(ctx, tx, "read the pipeline", scan, columns+` where name = $1 for update`, name)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, problem.New(problem.NotFound, "there is no pipeline %s", problem.Brief(name, 60))
	}
	if err != nil {
		return p, err
	}
	if p.Former == nil {
		return p, problem.New(problem.Conflict, "the pipeline %s has no former model", p.Name)
	}
	if _, err := tx.Exec(ctx, back, p.Name, p.Former, p.Champion, fmt.Sprintf("back to version %d: %s asked for it", *p.Former, by)); err != nil {
		return p, store.Classify(err)
	}
	return Get(ctx, tx, name)
}
