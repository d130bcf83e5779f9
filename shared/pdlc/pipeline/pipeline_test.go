package pipeline_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestALifeCycle trains on the real engine of Prometheus, promotes, does not promote what is no better, and goes back.
func TestALifeCycle(t *testing.T) {
	t.Parallel()
	engine, err := prometheus.Open(prometheus.Options{Dir: filepath.Join(t.TempDir(), "prometheus"), Retention: 1000 * time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	server := httptest.NewServer(engine.Handler())
	t.Cleanup(server.Close)
	client, err := telemetry.New(telemetry.Config{Address: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	db := storetest.New(t)
	trainer := metricsexport.Trainer{DB: db, Telemetry: client, Models: metricsexport.NewModels(folder.New(t.TempDir()))}
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
		require.NoError(t, db.Tx(t.Context(), pipeline.Due))
		p, err := pipeline.Get(t.Context(), db, "load")
		require.NoError(t, err)
		require.NotNil(t, p.Training)
		require.Equal(t, problem.Unavailable, problem.KindOf(pipeline.Judge(t.Context(), trainer, *p.Training)), "it goes on")
		require.NoError(t, trainer.Train(t.Context(), *p.Training))
		require.NoError(t, pipeline.JudgeEnded(t.Context(), trainer))
		require.NoError(t, pipeline.Judge(t.Context(), trainer, *p.Training), "a repeat does nothing")
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
