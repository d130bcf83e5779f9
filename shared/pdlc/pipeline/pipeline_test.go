package pipeline_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// house has the real engine of Prometheus, a database and a folder for models.
func house(t *testing.T) (*prometheus.Server, metricsexport.Trainer) {
	t.Helper()
	engine := prometheustest.With(t, prometheus.Options{Retention: 1000 * time.Hour})
	server := httptest.NewServer(engine.Handler())
	t.Cleanup(server.Close)
	client, err := telemetry.New(telemetry.Config{Address: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	return engine, metricsexport.Trainer{DB: storetest.New(t), Telemetry: client, Models: metricsexport.NewModels(folder.New(t.TempDir()))}
}

// TestALifeCycle trains on the real engine of Prometheus, promotes, does not promote what is no better, and goes back.
func TestALifeCycle(t *testing.T) {
	t.Parallel()
	engine, trainer := house(t)
	db := trainer.DB
	r := rand.New(rand.NewPCG(1, 2))
	end := time.Now().Truncate(time.Minute)
	var samples []prometheus.Sample
	for i := range 800 { // neither naive kind is good at a wave of forty minutes; of a walk nothing is known
		at, walk := end.Add(-time.Duration(800-i)*time.Minute), r.NormFloat64()
		samples = append(samples,
			prometheus.Sample{Name: "wave", Value: 50 + 20*math.Sin(float64(i)/6.5) + r.NormFloat64(), At: at},
			prometheus.Sample{Name: "noise", Value: walk, At: at})
	}
	require.NoError(t, engine.Append(t.Context(), samples))

	save := func(p pipeline.Pipeline) error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := pipeline.Save(ctx, tx, p, "anna")
			return err
		})
	}
	require.Equal(t, problem.Invalid, problem.KindOf(save(pipeline.Pipeline{Name: "Load"})))
	load := pipeline.Pipeline{Name: "load", Query: "wave", Settings: pipeline.Settings{Type: "ridge", Step: 60, Window: 700 * 60, Horizon: 6}}
	require.NoError(t, save(load))
	cycle := func() pipeline.Pipeline {
		_, err := db.Exec(t.Context(), `update pdlc_pipelines set due_at = now()`)
		require.NoError(t, err)
		require.NoError(t, db.Tx(storetest.As(t.Context(), "pdlc-retrain"), pipeline.Due))
		p, err := pipeline.Get(t.Context(), db, "load")
		require.NoError(t, err)
		require.NotNil(t, p.Training)
		require.Equal(t, problem.Unavailable, problem.KindOf(pipeline.Judge(storetest.As(t.Context(), "pdlc-judge"), trainer, *p.Training)), "it goes on")
		require.NoError(t, trainer.Train(t.Context(), *p.Training))
		require.NoError(t, pipeline.JudgeEnded(storetest.As(t.Context(), "pdlc-judge"), trainer))
		require.NoError(t, pipeline.Judge(storetest.As(t.Context(), "pdlc-judge"), trainer, *p.Training), "a repeat does nothing")
		p, err = pipeline.Get(t.Context(), db, "load")
		require.NoError(t, err)
		require.Nil(t, p.Training)
		return p
	}
	first := cycle()
	require.Equal(t, 1, *first.Champion, first.Why)
	require.Contains(t, first.Why, "promoted version 1")
	m, err := metricsexport.GetModel(t.Context(), db, "pipeline-load:champion")
	require.NoError(t, err)
	require.Equal(t, 1, m.Version)

	again := cycle()
	require.Equal(t, 1, *again.Champion, "the first one has seen these values, so the second is not better: %s", again.Why)

	// What is measured changes: the model in use is no better than the naive kinds there, and neither is a new one.
	load.Query = "noise"
	require.NoError(t, save(load))
	lost := cycle()
	require.NotEmpty(t, lost.Why)
	require.True(t, lost.Champion == nil || *lost.Champion == 3, "version 1 is in use no more: %s", lost.Why)

	rollback := func() (p pipeline.Pipeline, err error) {
		return p, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			p, err = pipeline.Rollback(ctx, tx, "load", "anna")
			return err
		})
	}
	_, err = db.Exec(t.Context(), `update pdlc_pipelines set champion = 2, former = 1`)
	require.NoError(t, err)
	p, err := rollback()
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, []int{*p.Champion, *p.Former})
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return pipeline.Delete(ctx, tx, "load") }))
	_, err = rollback()
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	_, err = metricsexport.GetModel(t.Context(), db, "pipeline-load:champion")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}

// TestAGraphOfNodes trains a model over the links that were measured; what it foresees of one node comes from what another one does.
func TestAGraphOfNodes(t *testing.T) {
	t.Parallel()
	engine, trainer := house(t)
	db := trainer.DB
	r := rand.New(rand.NewPCG(1, 2))
	end := time.Now().Truncate(time.Minute)
	lead := make([]float64, 306)
	for i := 1; i < len(lead); i++ {
		lead[i] = 0.8*lead[i-1] + r.NormFloat64()
	}
	var samples []prometheus.Sample
	for i := range 300 {
		at := end.Add(-time.Duration(300-i) * time.Minute)
		for n, node := range []string{"a", "b", "c"} {
			v := lead[i+6-3*min(n, 1)]
			labels := map[string]string{"node": node}
			samples = append(
				samples,
				prometheus.Sample{Name: "cpu", Labels: labels, Value: 40 + 5*v + 0.1*r.NormFloat64(), At: at},
				prometheus.Sample{Name: "memory", Labels: labels, Value: 4e9 + 1e8*v, At: at},
			)
		}
	}
	require.NoError(t, engine.Append(t.Context(), samples))
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return links.Save(ctx, tx, []links.Measurement{
			{Source: "a", Target: "b", MeasuredAt: time.Now()},
			{Source: "b", Target: "a", MeasuredAt: time.Now()},
			{Source: "c", Target: "a", MeasuredAt: time.Now()},
			{Source: "c", Target: "elsewhere", MeasuredAt: time.Now()},
		})
	}))
	fleet := pipeline.Pipeline{Name: "fleet", Settings: pipeline.Settings{
		Type: "stgnn", Step: 60, Window: 290 * 60, Lags: 4, Horizon: 3, Seed: 1, Graph: &metricsexport.Graph{Metrics: []string{"cpu", "memory"}},
	}}
	save := func() error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := pipeline.Save(ctx, tx, fleet, "anna")
			return err
		})
	}
	fleet.Query = "cpu"
	require.ErrorContains(t, save(), "graph")
	fleet.Query, fleet.Type = "", "lstm"
	require.ErrorContains(t, save(), "model_type")
	fleet.Type = "stgnn"
	require.NoError(t, save())
	require.NoError(t, db.Tx(storetest.As(t.Context(), "pdlc-retrain"), pipeline.Due))
	p, err := pipeline.Get(t.Context(), db, "fleet")
	require.NoError(t, err)
	require.NoError(t, trainer.Train(t.Context(), *p.Training))
	require.NoError(t, pipeline.JudgeEnded(storetest.As(t.Context(), "pdlc-judge"), trainer))
	p, err = pipeline.Get(t.Context(), db, "fleet")
	require.NoError(t, err)
	require.NotNil(t, p.Champion, p.Why)
	m, err := metricsexport.GetModel(t.Context(), db, "pipeline-fleet:champion")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, m.Graph.Nodes)
	require.Equal(t, [][2]string{{"a", "b"}, {"a", "c"}}, m.Graph.Links)
	require.Len(t, m.Graph.ByMetric, 2)
	t.Log(m.Tried)

	// The same in JSON, as it is asked over HTTP: of each node cpu and memory.
	const input = `{"model_tag": "pipeline-fleet:champion", "horizon": 3, "input_series": {
		"input_1": [40, 40, 40, 60], "input_2": [4e9, 4e9, 4e9, 4.4e9], "input_3": [40, 40, 40, 40], "input_4": [4e9, 4e9, 4e9, 4e9],
		"input_5": [40, 40, 40, 40], "input_6": [4e9, 4e9, 4e9, null]}}`
	var q metricsexport.Question
	require.NoError(t, json.Unmarshal([]byte(input), &q))
	foreseen := func() float64 {
		answer, err := trainer.Models.Predict(t.Context(), db, q)
		require.NoError(t, err)
		b := answer.(map[string]any)["metric_2"].(*metricsexport.Prediction)
		require.Len(t, b.Steps, 3)
		return b.Steps[2].Value
	}
	risen := foreseen()
	q.Input.Series[0], q.Input.Series[1] = q.Input.Series[2], q.Input.Series[3] // a is as calm as the others
	require.Greater(t, risen, foreseen(), "b follows a")
	q.Input.Series = q.Input.Series[:5]
	_, err = trainer.Models.Predict(t.Context(), db, q)
	require.ErrorContains(t, err, "must be an object of 6 arrays")

	computer := metricsexport.Computer{DB: db, Telemetry: trainer.Telemetry, Models: trainer.Models}
	order := metricsexport.ForecastOrder{Name: "cpu_soon", Query: "memory + 0", Model: "pipeline-fleet:champion", Step: 60, Ahead: 3}
	require.ErrorContains(t, computer.Create(t.Context(), order, "anna"), "foresees cpu, memory")
	order.Query = "cpu"
	require.NoError(t, computer.Create(t.Context(), order, "anna"))
	soon, err := metricsexport.Get(t.Context(), db, "cpu_soon")
	require.NoError(t, err)
	require.Len(t, soon.Series, 3)
	require.Equal(t, "stgnn", soon.Series[1].Source, "of b")
}
