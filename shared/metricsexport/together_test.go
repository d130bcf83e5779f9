package metricsexport_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// rounds is a federated training on a wave.
type rounds struct {
	*world
	asked *metricsexport.Training
}

const together = `{"model_name": "cpu", "model_type": "PYTORCH", "use_federated": true, "horizon": 3, "federated_params":
{"run_config": {"num-server-rounds": 8, "local-epochs": 5, "min-fit-clients": 2, "time-step": 24, "hidden-layer-size": 64}}}`

func askTogether(t *testing.T) *rounds {
	t.Helper()
	w := &rounds{world: newWorld(t)}
	var err error
	w.asked, err = w.request(t, 1)
	require.NoError(t, err)
	return w
}

func (w *rounds) request(t *testing.T, peers int) (asked *metricsexport.Training, err error) {
	t.Helper()
	var o metricsexport.Order
	require.NoError(t, json.Unmarshal([]byte(together), &o))
	o.Values, o.Peers = pointers(wave(1000)), peers
	return asked, w.db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		asked, err = metricsexport.Request(ctx, tx, o, "anna")
		return err
	})
}

// step does what the event of the training asks for.
func (w *rounds) step(t *testing.T) *metricsexport.Training {
	t.Helper()
	require.NoError(t, metricsexport.Trainer{DB: w.db, Telemetry: w.telemetry, Models: w.models}.Train(t.Context(), w.asked.ID))
	now, err := metricsexport.GetTraining(t.Context(), w.db, w.asked.ID)
	require.NoError(t, err)
	return now
}

// other takes part as another controller does.
func (w *rounds) other(t *testing.T, series []float64) {
	t.Helper()
	f, err := federation.Get(t.Context(), w.db, "cpu")
	require.NoError(t, err)
	change, windows, err := federated.Train(t.Context(), f.Plan.Plan, f.Weights, series, rand.New(rand.NewPCG(5, 6)))
	require.NoError(t, err)
	w.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return federation.Take(ctx, tx, "cpu", "harbour", federation.Sent{Round: f.Round, Change: change, Windows: windows})
	})
}

func (w *rounds) over(t *testing.T) {
	t.Helper()
	_, err := w.db.Exec(t.Context(), `update pdlc_federations set ends_at = now() - interval '1 second'`)
	require.NoError(t, err)
	w.tx(t, federation.EndRounds)
}

// told is how often the training was woken.
func (w *rounds) told() (n int) {
	for _, e := range storetest.Published(w.db, events.TrainingRequested) {
		if e.Subject() == w.asked.ID.String() {
			n++
		}
	}
	return n
}

func TestATrainingOfSeveralClusters(t *testing.T) {
	t.Parallel()
	w := askTogether(t)
	_, err := w.request(t, 1)
	require.Equal(t, problem.Conflict, problem.KindOf(err), "the rounds of a name go on: %v", err)
	for round := range 8 {
		require.Equal(t, metricsexport.Waiting, w.step(t).State, "round %d", round)
		w.other(t, wave(3000)[1000:])
		w.over(t)
	}
	require.Equal(t, 9, w.told(), "of what was asked for, and of the end of each round")
	done := w.step(t)
	require.Equal(t, metricsexport.Finished, done.State, done.Why)
	require.Equal(t, "federated", done.Result.Kind)
	require.Equal(t, &metricsexport.Federation{Rounds: 8, Participants: 2, Refused: []federated.Refused{}}, done.Result.Federation)
	require.Equal(t, 24, done.Result.Options.Lags)
	require.Less(t, done.Results.MAE, done.Result.Naive["last-value"].MAE, "it has learnt")
	_, err = federation.Get(t.Context(), w.db, "cpu")
	require.Equal(t, problem.NotFound, problem.KindOf(err), "nobody trains further")
	answer, err := w.models.Predict(t.Context(), w.db, metricsexport.Question{
		Tag: "cpu:latest", Input: metricsexport.Input{Array: true, Series: [][]float64{wave(100)}}, Horizon: 3,
	})
	require.NoError(t, err)
	require.Len(t, answer, 3)
}

func TestATrainingOfSeveralClustersThatCannotBe(t *testing.T) {
	t.Parallel()
	w := askTogether(t)
	for range 13 {
		require.Equal(t, metricsexport.Waiting, w.step(t).State)
		w.over(t)
	}
	require.Equal(t, 2, w.told())
	alone := w.step(t)
	require.Equal(t, metricsexport.Failed, alone.State)
	require.Contains(t, alone.Why, "round 1 of 8 only 1 took part, 2 must")

	var err error
	w.asked, err = w.request(t, 1)
	require.NoError(t, err, "the name is free again")
	w.tx(t, func(ctx context.Context, tx *store.Tx) error { return federation.Delete(ctx, tx, "cpu") })
	require.Equal(t, 2, w.told())
	require.Contains(t, w.step(t).Why, "ended by somebody")

	_, err = w.request(t, 0)
	require.ErrorContains(t, err, "use_federated")
	require.ErrorContains(t, err, "CONTROLLER_PEERS")
}
