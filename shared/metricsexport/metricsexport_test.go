package metricsexport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is a store, a telemetry store with its OTLP receiver, and an object store.
type world struct {
	db        *store.DB
	telemetry *telemetry.Client
	engine    *prometheus.Server
	models    metricsexport.Models
	objects   string
	push      string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	engine := prometheustest.With(t, prometheus.Options{Retention: 1000 * time.Hour})
	mux := http.NewServeMux()
	mux.Handle("/", engine.Handler())
	mux.Handle("POST /api/v1/otlp/v1/metrics", engine.OTLPHandler())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client, err := telemetry.New(telemetry.Config{Address: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	w := &world{db: storetest.New(t), telemetry: client, engine: engine, objects: t.TempDir(), push: server.URL + "/api/v1/otlp/v1/metrics"}
	w.models = metricsexport.NewModels(folder.New(w.objects))
	return w
}

func (w *world) computer() metricsexport.Computer {
	return metricsexport.Computer{DB: w.db, Telemetry: w.telemetry, Models: w.models}
}

func (w *world) tx(t *testing.T, do func(context.Context, *store.Tx) error) {
	t.Helper()
	require.NoError(t, w.db.Tx(t.Context(), do))
}

func (w *world) create(t *testing.T, body string) error {
	t.Helper()
	var c metricsexport.Creation
	if err := decode.JSON([]byte(body), &c); err != nil {
		return err
	}
	return w.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return metricsexport.Create(ctx, tx, c, "anna") })
}

// train trains at once what the order asks for.
func (w *world) train(t *testing.T, o metricsexport.Order) *metricsexport.Training {
	t.Helper()
	var asked *metricsexport.Training
	w.tx(t, func(ctx context.Context, tx *store.Tx) (err error) {
		asked, err = metricsexport.Request(ctx, tx, o, "anna")
		return err
	})
	require.Equal(t, metricsexport.Waiting, asked.State)
	require.NoError(t, metricsexport.Trainer{DB: w.db, Telemetry: w.telemetry, Models: w.models}.Train(t.Context(), asked.ID))
	done, err := metricsexport.GetTraining(t.Context(), w.db, asked.ID)
	require.NoError(t, err)
	return done
}

// wave is a series with a period of an hour, so that neither naive kind is good at it.
func wave(n int) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, n)
	for i := range values {
		values[i] = 50 + 20*math.Sin(2*math.Pi*float64(i)/41) + r.NormFloat64()
	}
	return values
}

// walk is one of which nothing is known but its last value.
func walk(n int) []float64 {
	r := rand.New(rand.NewPCG(3, 4))
	values, v := make([]float64, n), 50.0
	for i := range values {
		v += r.NormFloat64()
		values[i] = v
	}
	return values
}

// emit appends the values as one a minute, the last one now.
func (w *world) emit(t *testing.T, name string, labels map[string]string, values []float64) {
	t.Helper()
	end := time.Now().Truncate(time.Minute)
	var samples []prometheus.Sample
	for i, v := range values {
		samples = append(samples, prometheus.Sample{Name: name, Labels: labels, Value: v, At: end.Add(-time.Duration(len(values)-1-i) * time.Minute)})
	}
	require.NoError(t, w.engine.Append(t.Context(), samples))
}

func pointers(values []float64) []*float64 {
	list := make([]*float64, len(values))
	for i := range values {
		list[i] = &values[i]
	}
	return list
}

func text(t *testing.T, db *store.DB) string {
	t.Helper()
	samples, err := metricsexport.Samples(t.Context(), db)
	require.NoError(t, err)
	return string(otlp.Text(samples))
}

func TestMetricsOfEachType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{
		`{"type": 1, "metric_name": "orders_total", "metric_info": "Orders", "value": 2, "labels": {"shop": "a"}}`,
		`{"type": 1, "metric_name": "orders", "value": "3", "labels": {}}`, // a label that is missing is ""
		`{"type": 1, "metric_name": "orders", "value": 5, "labels": {"shop": "a"}}`,
		`{"type": "gauge", "metric_name": "queue", "value": "12.5", "labels": {"q": "a\"b"}}`,
		`{"type": 2, "metric_name": "queue", "value": -1, "labels": {"q": "a\"b"}}`,
		`{"type": 3, "metric_name": "build", "value": {"version": "1.2"}}`,
		`{"type": 4, "metric_name": "door", "value": "open", "states": ["open", "closed"]}`,
		`{"type": 4, "metric_name": "door", "value": "closed"}`,
	} {
		require.NoError(t, w.create(t, body), body)
	}
	require.Equal(t, `# TYPE build_info gauge
build_info{version="1.2"} 1
# TYPE door gauge
door{door="open"} 0
door{door="closed"} 1
# HELP orders_total Orders
# TYPE orders_total counter
orders_total{shop=""} 3
orders_total{shop="a"} 7
# TYPE queue gauge
queue{q="a\"b"} -1
`, text(t, w.db))

	for body, kind := range map[string]problem.Kind{
		`{"type": 2, "metric_name": "orders", "value": 1}`:                         problem.Conflict,
		`{"type": 2, "metric_name": "queue", "value": 1, "labels": {"other": ""}}`: problem.Invalid,
		`{"type": 1, "metric_name": "orders", "value": -1}`:                        problem.Invalid,
		`{"type": 2, "metric_name": "queue", "value": "many"}`:                     problem.Invalid,
		`{"type": 2, "metric_name": "queue", "value": "NaN"}`:                      problem.Invalid,
		`{"type": 2, "metric_name": "queue", "value": null}`:                       problem.Invalid,
		`{"type": 2, "metric_name": "queue"}`:                                      problem.Invalid,
		`{"type": 2, "metric_name": "9a", "value": 1}`:                             problem.Invalid,
		`{"type": 2, "metric_name": "a", "value": 1, "labels": {"__name__": ""}}`:  problem.Invalid,
		`{"type": 4, "metric_name": "door", "value": "ajar"}`:                      problem.Invalid,
		`{"type": 4, "metric_name": "gate", "value": "open"}`:                      problem.Invalid,
		`{"type": 3, "metric_name": "build", "value": "1.2"}`:                      problem.Invalid,
		`{"type": 5, "metric_name": "a", "value": 1}`:                              problem.Invalid,
		`{"metric_name": "a", "value": 1}`:                                         problem.Invalid,
	} {
		require.Equal(t, kind, problem.KindOf(w.create(t, body)), body)
	}
	list, err := metricsexport.List(t.Context(), w.db)
	require.NoError(t, err)
	require.Len(t, list, 4, "what was refused left nothing")

	w.tx(t, func(ctx context.Context, tx *store.Tx) error { return metricsexport.Delete(ctx, tx, "door") })
	_, err = metricsexport.Get(t.Context(), w.db, "door")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	err = w.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return metricsexport.Stop(ctx, tx, []string{"queue"}) })
	require.Equal(t, problem.NotFound, problem.KindOf(err), "it is no forecast")
}

func TestTrainingIsJudgedStoredAndRepeatable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	order := metricsexport.Order{ModelName: "cpu", Values: pointers(wave(2000)), Seed: 7, MaxModels: 2}
	first := w.train(t, order)
	require.Equal(t, metricsexport.Finished, first.State, first.Why)
	require.Equal(t, "cpu:1", first.Tag)
	m := first.Result
	require.True(t, m.Better, "%+v", m.Tried)
	require.Less(t, m.Test.MAE, m.Naive["last-value"].MAE/2)
	require.InDelta(t, 0.95, m.Test.Coverage, 0.04)
	require.Equal(t, 1000, first.Splits.Train)
	require.Equal(t, 600, first.Splits.Test)

	// Once more by another delivery of the event changes nothing.
	require.NoError(t, metricsexport.Trainer{DB: w.db, Telemetry: w.telemetry, Models: w.models}.Train(t.Context(), first.ID))
	store := folder.New(w.objects)
	one, err := store.Get(t.Context(), "models/cpu/1.json")
	require.NoError(t, err)
	w.train(t, order)
	two, err := store.Get(t.Context(), "models/cpu/2.json")
	require.NoError(t, err)
	require.Equal(t, string(one), string(two), "the same seed gives the same bits")

	w.train(t, order)
	keys, err := store.List(t.Context(), "models/")
	require.NoError(t, err)
	require.Equal(t, []string{"models/cpu/2.json", "models/cpu/3.json"}, keys, "older ones are removed")
	removed, err := w.models.Remove(t.Context(), w.db, "cpu:latest")
	require.NoError(t, err)
	require.Equal(t, 3, removed.Version)
	list, err := metricsexport.ListModels(t.Context(), w.db, "all")
	require.NoError(t, err)
	require.Len(t, list, 1)
	again := w.train(t, order)
	require.Equal(t, 4, again.Version, "a version is never used twice")
}

func TestATrainingThatCannotSucceedSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short := w.train(t, metricsexport.Order{ModelType: "XGB", Values: pointers(wave(30))})
	require.Equal(t, metricsexport.Failed, short.State)
	require.Contains(t, short.Why, "too short")
	nothing := w.train(t, metricsexport.Order{Query: "no_such_series"})
	require.Equal(t, metricsexport.Failed, nothing.State)
	require.Contains(t, nothing.Why, "no_such_series")
	require.NoError(t, metricsexport.Trainer{DB: w.db, Telemetry: w.telemetry, Models: w.models}.Train(t.Context(), uuid.New()),
		"one that is gone")

	for _, o := range []metricsexport.Order{
		{},
		{Query: "up", Values: pointers(wave(100))},
		{Query: "up", ModelType: "magic"},
		{Query: "up", ModelName: "a/b"},
		{Query: "up", Step: -1},
		{Query: "up", Federated: true},
		{Query: "up", Dataset: "x.csv"},
		{Values: pointers(wave(3))},
		{Query: "up", Window: 10},
		{Query: "up", StepsBack: 5000},
		{Query: "up", MaxModels: 1000},
	} {
		err := w.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := metricsexport.Request(ctx, tx, o, "anna")
			return err
		})
		require.Equal(t, problem.Invalid, problem.KindOf(err), "%+v", o)
	}
}

func TestPredictAndDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	values := wave(2100)
	require.Equal(t, metricsexport.Finished, w.train(t, metricsexport.Order{ModelName: "cpu", Values: pointers(values[:2000])}).State)
	ask := func(body string) (string, error) {
		var q metricsexport.Question
		require.NoError(t, json.Unmarshal([]byte(body), &q))
		answer, err := w.models.Predict(t.Context(), w.db, q)
		if err != nil {
			return "", err
		}
		encoded, err := json.Marshal(answer)
		require.NoError(t, err)
		return string(encoded), nil
	}
	series, err := json.Marshal(values[1900:2000])
	require.NoError(t, err)

	answer, err := ask(fmt.Sprintf(`{"model_tag": "cpu:latest", "model_type": "XGB", "input_series": %s}`, series))
	require.NoError(t, err)
	var rows [][]float64
	require.NoError(t, json.Unmarshal([]byte(answer), &rows))
	require.InDelta(t, values[2000], rows[0][0], 5)

	answer, err = ask(fmt.Sprintf(`{"model_tag": "cpu:1", "metric_type": 2, "input_series": {"input_1": %s}, "horizon": 3, "explain": true}`, series))
	require.NoError(t, err)
	var one map[string]any
	require.NoError(t, json.Unmarshal([]byte(answer), &one))
	require.InDelta(t, rows[0][0], one["model_prediction"], 1e-9)
	require.Contains(t, one["95%_confidence_interval"], " to ")
	require.Len(t, one["steps"], 3)
	require.Len(t, one["influence"], 12)
	require.InDelta(t, 2, one["metric_type"], 0)

	answer, err = ask(fmt.Sprintf(`{"model_tag": "cpu", "input_series": {"input_2": [1], "input_1": %s}, "data_interruption": true, "history_data": %s}`, series, series))
	require.NoError(t, err)
	var several map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(answer), &several))
	require.Contains(t, several, "metric_0")
	require.Contains(t, several, "metric_1")

	_, err = ask(`{"model_tag": "cpu:1", "input_series": []}`)
	require.Equal(t, problem.Invalid, problem.KindOf(err), "%v", err)
	_, err = ask(`{"model_tag": "cpu:9", "input_series": [1]}`)
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	_, err = ask(`{"model_tag": "../x", "input_series": [1]}`)
	require.Equal(t, problem.NotFound, problem.KindOf(err))

	drifted := func(values []float64) bool {
		is, err := w.models.Drifted(t.Context(), w.db, metricsexport.Question{Tag: "cpu:1", Input: metricsexport.Input{Series: [][]float64{values}}})
		require.NoError(t, err)
		return is
	}
	require.False(t, drifted(values[1980:]), "it goes on as it was")
	other := wave(120)
	for i := range other {
		other[i] += 15 * float64(i%2) // a jitter that was not there
	}
	require.True(t, drifted(other))
}

// TestForecastsAreMadePublishedAndStopped: from telemetry to telemetry.
func TestForecastsAreMadePublishedAndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.emit(t, "load", map[string]string{"host": "regular"}, wave(3200))
	w.emit(t, "load", map[string]string{"host": "random"}, walk(3200))
	done := w.train(t, metricsexport.Order{ModelName: "load", Query: `load{host="regular"}`, ModelType: "ridge", Window: 3000 * 60})
	require.Equal(t, metricsexport.Finished, done.State, done.Why)

	order := metricsexport.ForecastOrder{Name: "load_prediction", Query: "load", Model: "load", Labels: map[string]string{"site": "here"}, Ahead: 3}
	require.NoError(t, w.computer().Create(storetest.As(t.Context(), "metricsexport-model-metric-create"), order, "anna"))
	m, err := metricsexport.Get(t.Context(), w.db, "load_prediction")
	require.NoError(t, err)
	require.Len(t, m.Series, 2)
	require.Equal(t, map[string]string{"host": "random", "site": "here"}, m.Series[0].Labels)
	require.Equal(t, "last-value", m.Series[0].Source, "a walk has no better forecast")
	require.Equal(t, "ridge", m.Series[1].Source)
	require.Less(t, *m.Series[1].Error, *m.Series[1].NaiveError)
	require.Less(t, *m.Series[1].Lower, *m.Series[1].Value)
	require.Len(t, m.Series[1].Steps, 3)
	require.InDelta(t, *m.Series[1].Value, m.Series[1].Steps[2], 1e-9, "the value is that of the last step")
	require.WithinDuration(t, time.Now(), *m.Series[1].FirstAt, 2*time.Minute)

	// It is due once more, a series has ended, and there is a new one.
	_, err = w.db.Exec(t.Context(), `update metric_forecasts set due_at = now()`)
	require.NoError(t, err)
	w.emit(t, "load", map[string]string{"host": "new"}, walk(5))
	told, failed, err := w.computer().Due(storetest.As(t.Context(), "metricsexport-compute"))
	require.NoError(t, err)
	require.Equal(t, []int{1, 0}, []int{told, failed})
	require.Contains(t, text(t, w.db), `load_prediction_source{host="new",site="here",source="last-value"} 1`)
	require.Contains(t, text(t, w.db), `load_prediction_up{site="here"} 1`)
	told, failed, err = w.computer().Due(storetest.As(t.Context(), "metricsexport-compute"))
	require.NoError(t, err)
	require.Zero(t, told+failed, "nothing is due")

	push := metricsexport.PushConfig{URL: w.push}
	require.NoError(t, metricsexport.Push(storetest.As(t.Context(), "metricsexport-compute"), w.db, http.DefaultClient, push, telemetry.Config{}))
	samples, err := w.telemetry.Query(t.Context(), `load_prediction{host="regular", site="here"}`, time.Now().Add(time.Second))
	require.NoError(t, err)
	require.Len(t, samples, 1)
	require.InDelta(t, *m.Series[1].Value, samples[0].Value, 10)

	// A failure is shown on the metric, and tried again.
	_, err = w.models.Remove(t.Context(), w.db, "load:1")
	require.NoError(t, err)
	_, err = w.db.Exec(t.Context(), `update metric_forecasts set due_at = now()`)
	require.NoError(t, err)
	_, failed, err = w.computer().Due(storetest.As(t.Context(), "metricsexport-compute"))
	require.NoError(t, err)
	require.Equal(t, 1, failed)
	m, err = metricsexport.Get(t.Context(), w.db, "load_prediction")
	require.NoError(t, err)
	require.Equal(t, 1, m.Forecast.Failures)
	require.Contains(t, m.Forecast.Why, "load:latest")
	require.Contains(t, text(t, w.db), `load_prediction_up{site="here"} 0`)

	require.Equal(t, problem.Conflict, problem.KindOf(w.create(t, `{"type": 2, "metric_name": "load_prediction", "value": 1, "labels": {"site": "here"}}`)))
	w.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return metricsexport.Stop(ctx, tx, []string{"load_prediction"})
	})
	require.NotContains(t, text(t, w.db), "load_prediction")
}

func TestForecastsThatCannotBeMadeAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.create(t, `{"type": 2, "metric_name": "mine", "value": 1}`))
	w.emit(t, "load", nil, wave(500))
	require.Equal(t, metricsexport.Finished, w.train(t, metricsexport.Order{ModelName: "load", Query: "load", Window: 400 * 60}).State)
	for _, o := range []metricsexport.ForecastOrder{
		{},
		{Name: "a", Query: "load", Model: "none"},
		{Name: "a", Query: "nothing", Model: "load"},
		{Name: "9", Query: "load", Model: "load"},
		{Name: "a", Query: strings.Repeat("x", 6000), Model: "load"},
		{Name: "a", Query: "load", Model: "load", Step: 1},
		{Name: "a", Query: "load", Model: "load", Type: metricsexport.Enum},
	} {
		require.Equal(t, problem.Invalid, problem.KindOf(w.computer().Create(t.Context(), o, "anna")), "%+v", o)
	}
	err := w.computer().Create(t.Context(), metricsexport.ForecastOrder{Name: "mine", Query: "load", Model: "load"}, "anna")
	require.Equal(t, problem.Conflict, problem.KindOf(err), "%v", err)
	list, err := metricsexport.List(t.Context(), w.db)
	require.NoError(t, err)
	require.Len(t, list, 1)
}
