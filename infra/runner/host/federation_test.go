package host

import (
	"encoding/json"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/clocks"
	"github.com/littoral-project/littoral/test/relay"
)

// wire keeps what goes over connections in either direction.
type wire struct{ shown }

// twoTogether are shore and harbour, whose FEDERATIONS name the federation "load" of shore; line captures what goes between them.
func twoTogether(t *testing.T, ofShore, ofHarbour string) (shore *Host, atShore Options, line *wire) {
	t.Helper()
	atShore, atHarbour := two(t)
	line = &wire{}
	throughTap, err := json.Marshal([]peer.Peer{{
		Name: "shore", Address: "http://" + relay.Open(t, "127.0.0.1", atShore.Addr, line).String(), Subject: "controller", TokenFile: atShore.Home + "/token-controller",
	}})
	require.NoError(t, err)
	part := func(o *Options, query string, more map[string]string) {
		set := map[string]string{}
		if query != "" {
			text, err := json.Marshal([]map[string]string{{"peer": "shore", "name": "load", "query": query}})
			require.NoError(t, err)
			set["FEDERATIONS"] = string(text)
		}
		maps.Copy(set, more)
		o.Settings = settings.Map(set).Or(o.Settings)
		o.Files = map[string]fs.FS{"/knative": o.Files["/knative"], "/triggers": clocks.EachSecond(t, "pdlc-participate", "pdlc-end-rounds")}
	}
	part(&atShore, ofShore, nil)
	part(&atHarbour, ofHarbour, map[string]string{"CONTROLLER_PEERS": string(throughTap)})
	shore = start(t, atShore)
	start(t, atHarbour)
	return shore, atShore, line
}

// Series that have been there for as long as is asked for, so that no test has to wait for them.
const ofShore, ofHarbour = "1000 + 100 * sin(vector(time()) / 50)", "5000 + 321.5 * cos(vector(time()) / 37)"

// keptBack holds what has gone over the wire to weights, whose number is given: no sample of harbour is among it.
func (w *wire) keptBack(t *testing.T, weights int) {
	t.Helper()
	captured := w.String()
	changes := regexp.MustCompile(`"change":\[([^\]]*)\]`).FindAllStringSubmatch(captured, -1)
	require.NotEmpty(t, changes, "the changes go over the wire in the clear here, so samples would be seen too")
	for _, c := range changes {
		require.Len(t, strings.Split(c[1], ","), weights, "as many numbers as there are weights, and no more")
	}
	now := time.Now().Unix()
	for at := now - 2100; at <= now; at++ {
		sample := strconv.FormatFloat(5000+321.5*math.Cos(float64(at)/37), 'f', -1, 64)
		require.NotContains(t, captured, sample[:min(len(sample), 9)], "a sample of harbour has left it")
	}
	t.Logf("%d bytes in %d updates, none of them a sample", len(captured), len(changes))
}

// TestTwoHostsTrainTogether: rounds of federated averaging between shore, which has the federation and takes part in it, and harbour.
// What goes over the wire between the two is captured: the changes of weights are there, and no sample is.
func TestTwoHostsTrainTogether(t *testing.T) {
	t.Parallel()
	shore, atShore, line := twoTogether(t, ofShore, ofHarbour)
	const plan = `{"lags": 2, "horizon": 1, "fewest": 2, "round_seconds": 1, "step_in_seconds": 1}`
	require.Equal(t, http.StatusOK, ask(t, shore.URL(), atShore.Home, "operator", "PUT", "/pdlc/federations/load", plan, nil))
	var f struct {
		Round, Heard int
		Weights      []float64
		Refused      []any
	}
	require.Eventually(t, func() bool {
		return ask(t, shore.URL(), atShore.Home, "viewer", "GET", "/pdlc/federations/load", "", &f) == http.StatusOK && f.Round >= 4 && f.Heard == 2
	}, 2*patience, 100*time.Millisecond, "both are heard")
	require.Empty(t, f.Refused)
	require.NotEqual(t, make([]float64, len(f.Weights)), f.Weights, "they were nothing at first")
	line.keptBack(t, len(f.Weights))
}

// TestATrainingIsSharedWithAPeer: train of metrics export, at shore, with rounds that harbour takes part in.
func TestATrainingIsSharedWithAPeer(t *testing.T) {
	t.Parallel()
	shore, atShore, line := twoTogether(t, "", ofHarbour)
	const order = `{"model_name": "load", "use_federated": true, "telemetry_metric": "` + ofShore + `", "step_in_seconds": 1, "window_in_seconds": 2000,
"horizon": 2, "federated_params": {"round_seconds": 1, "run_config": {"num-server-rounds": 3, "local-epochs": 3, "time-step": 4}}}`
	var training struct {
		ID    string `json:"training_id"`
		State string
		Why   string
		Model struct {
			Kind       string
			Federation struct{ Rounds, Participants int }
		}
	}
	require.Equal(t, http.StatusAccepted, ask(t, shore.URL(), atShore.Home, "operator", "POST", "/metricsexport/train", order, &training))
	at := "/metricsexport/trainings/" + training.ID
	require.Eventually(t, func() bool {
		return ask(t, shore.URL(), atShore.Home, "viewer", "GET", at, "", &training) == http.StatusOK && training.State != "Waiting"
	}, 3*patience, 100*time.Millisecond, "the rounds end")
	require.Equal(t, "Finished", training.State, training.Why)
	require.Equal(t, "federated", training.Model.Kind)
	require.Equal(t, 3, training.Model.Federation.Rounds)
	require.Equal(t, 2, training.Model.Federation.Participants)
	line.keptBack(t, 2*(4+1))
}
