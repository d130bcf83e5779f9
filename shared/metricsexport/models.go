package metricsexport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/forecast"
	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Model is a trained model without what it has learnt, which is in the object store.
type Model struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Tag       string    `json:"model_tag"`
	Kind      string    `json:"kind"`
	CreatedAt time.Time `json:"created_at"`
	About
}

// About says how a model came to be, and how far it can be trusted.
type About struct {
	Query    string            `json:"telemetry_metric,omitempty"` // what it was trained on; none for values that were sent
	Series   map[string]string `json:"series,omitempty"`           // the one of the query
	Others   int               `json:"other_series,omitempty"`     // that the query has beside it
	From     time.Time         `json:"from"`
	Step     int               `json:"step_in_seconds"`
	Values   int               `json:"values"`
	Train    int               `json:"train_data"` // values that the test's model was trained on
	TestData int               `json:"test_data"`  // values that it was judged on
	Options  forecast.Options  `json:"options"`
	Test     forecast.Errors   `json:"test"`
	Interval forecast.Interval `json:"interval"`
	// Naive are the errors of "last-value" and "yesterday" on the same values; the latter may be missing.
	Naive map[string]forecast.Errors `json:"naive"`
	// Better is whether it beats the naive kinds there are.
	Better bool `json:"better_than_naive"`
	// Graph is what a model of a graph knows; its errors and interval are in standard deviations of each series.
	Graph *KnownGraph `json:"graph,omitempty"`
	// Federation is how a model that several clusters trained came to be.
	Federation *Federation `json:"federation,omitempty"`
	// Tried are the mean absolute errors of all kinds among which it was chosen, or why one could not be trained.
	Tried map[string]any `json:"tried,omitempty"`
}

const (
	selectModels = `select name, version, kind, created_at, about from models`
	oneModel     = selectModels + ` where name = $1 and ($2 = 0 or version = $2) order by version desc limit 1`
	inUse        = selectModels + ` where name = $1 and version = (select champion from pdlc_pipelines where model = $1)`
	deleteModel  = `delete from models where name = $1 and version = $2`

	selectVersions = `select version from models where name = $1 union select version from trainings where model = $1 and state = $2`
)

func scanModel(row pgx.CollectableRow) (*Model, error) {
	m := &Model{}
	err := row.Scan(&m.Name, &m.Version, &m.Kind, &m.CreatedAt, &m.About)
	m.Tag = tagOf(m.Name, m.Version)
	return m, err
}

func tagOf(name string, version int) string { return name + ":" + strconv.Itoa(version) }

// parseTag splits name:version; version 0 is the latest. The error is NotFound: no model has such a tag.
func parseTag(tag string) (name string, version int, err error) {
	name, text, _ := strings.Cut(tag, ":")
	if text != "" && text != "latest" {
		version, err = strconv.Atoi(text)
	}
	if err != nil || version < 0 || text == "0" || !modelName.MatchString(name) {
		return "", 0, noModel(tag)
	}
	return name, version, nil
}

func noModel(tag string) error {
	return problem.New(problem.NotFound, "there is no model %s", problem.Brief(tag, 100))
}

// ListModels returns the models of that name, or all when it is "" or "all", the newest of each name first.
func ListModels(ctx context.Context, q store.Querier, name string) ([]*Model, error) {
	if name == "all" {
		name = ""
	}
	return store.Collect(ctx, q, "read models", scanModel, selectModels+` where $1 = '' or name = $1 order by name, version desc`, name)
}

// GetModel returns the model of a tag. The error is NotFound.
func GetModel(ctx context.Context, q store.Querier, tag string) (*Model, error) {
	query := oneModel
	var args []any
	if of, is := strings.CutSuffix(tag, ":champion"); is { // that a pipeline has in use (shared/pdlc/pipeline)
		query, args = inUse, []any{of}
	} else {
		name, version, err := parseTag(tag)
		if err != nil {
			return nil, err
		}
		args = []any{name, version}
	}
	m, err := store.One(ctx, q, "read the model", scanModel, query, args...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, noModel(tag)
	}
	return m, err
}

// Models are the models with what they have learnt.
type Models struct{ objects objects.Store }

// NewModels returns the models in an object store, which may be nil: then there are none.
func NewModels(o objects.Store) Models { return Models{o} }

// Check says that there is no place for models.
func (s Models) Check() error {
	if s.objects == nil {
		return problem.New(problem.NotImplemented, "models are kept in an object store, and none is set here: OBJECTS_URL")
	}
	return nil
}

func key(name string, version int) string { return fmt.Sprintf("models/%s/%d.json", name, version) }

// Load reads what a model of one series has learnt. The error is Invalid for one of a graph.
func (s Models) Load(ctx context.Context, m *Model) (forecast.Model, error) {
	if m.Graph != nil {
		return nil, problem.New(problem.Invalid, "the model %s foresees the %d nodes of a graph together, not one series", m.Tag, len(m.Graph.Nodes))
	}
	kind, err := storedKind(m.Kind)
	if err != nil {
		return nil, err
	}
	data, err := s.learnt(ctx, m)
	if err != nil {
		return nil, err
	}
	return kind.Decode(data)
}

// loadGraph reads what a model of a graph has learnt.
func (s Models) loadGraph(ctx context.Context, m *Model) (forecast.GraphModel, error) {
	kind, err := forecast.GraphKindOf(m.Kind)
	if err != nil {
		return nil, err
	}
	data, err := s.learnt(ctx, m)
	if err != nil {
		return nil, err
	}
	return kind.Decode(data)
}

func (s Models) learnt(ctx context.Context, m *Model) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	data, err := s.objects.Get(ctx, key(m.Name, m.Version))
	if problem.KindOf(err) == problem.NotFound {
		err = problem.Wrap(problem.Unavailable, err, "the model %s is not in the object store", m.Tag)
	}
	return data, err
}

func (s Models) save(ctx context.Context, name string, version int, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the model: %w", err)
	}
	return s.objects.Put(ctx, key(name, version), data)
}

// Remove deletes a model; of its name, others stay. The error is NotFound. The object goes last: until then a second
// call, or the pruning after the next training, finds it.
func (s Models) Remove(ctx context.Context, db *store.DB, tag string) (*Model, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m, err := GetModel(ctx, db, tag)
	if err != nil {
		return nil, err
	}
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, deleteModel, m.Name, m.Version)
		return err
	})
	if err != nil {
		return nil, store.Classify(err)
	}
	return m, s.objects.Delete(ctx, key(m.Name, m.Version))
}

// prune deletes the objects of a name that belong to no model and to no training that goes on. They are listed first: what
// is stored later is not among them.
func (s Models) prune(ctx context.Context, db *store.DB, name string) error {
	keys, err := s.objects.List(ctx, "models/"+name+"/")
	if err != nil {
		return err
	}
	versions, err := store.Collect(ctx, db, "read versions", pgx.RowTo[int], selectVersions, name, Waiting)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, v := range versions {
		kept[key(name, v)] = true
	}
	for _, k := range keys {
		if !kept[k] {
			if err := s.objects.Delete(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}
