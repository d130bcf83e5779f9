package contracts_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
)

// TestWhatOtherTestsCallWithoutHTTP: operations whose rules are tested beside them do with a store what they say.
func TestWhatOtherTestsCallWithoutHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.call(t, http.MethodPut, "/swm/topologies/lan", lan).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPost, "/mdm/publish/event", mdmEvent).is(t, http.StatusOK)
	var wave []string
	for i := range 400 {
		wave = append(wave, fmt.Sprintf("%.2f", 50+20*math.Sin(float64(i)/7)+float64(i%3)))
	}
	values := "[" + strings.Join(wave, ", ") + "]"
	const graph, federation = "/mdm/graph/cypher", "/pdlc/federations/load"
	controller := w.as(auth.Controller)
	for _, call := range []struct {
		by                 client
		method, path, body string
		status             int
	}{
		{w.operator, http.MethodPut, "/bus/plant/belt", "1", http.StatusOK},
		{w.viewer, http.MethodGet, "/bus/plant/belt", "", http.StatusOK},
		{w.operator, http.MethodDelete, "/bus/plant/belt", "", http.StatusOK},
		{w.operator, http.MethodPut, "/applications/shop-1", hubShop, http.StatusOK},
		{w.viewer, http.MethodGet, "/applications", "", http.StatusOK},
		{controller, http.MethodPost, "/api/v3/controller/", `{"name": "shore", "address": "https://shore.example"}`, http.StatusCreated},
		{w.operator, http.MethodPost, "/api/v3/deployment/", hubShop, http.StatusCreated},

		{w.operator, http.MethodPut, "/mdm/connectors/7c9e6679-7425-40de-944b-e07fc1f90ae7", `{"type": "test", "name": "a"}`, http.StatusOK},
		{w.viewer, http.MethodPost, graph, `MATCH (n) RETURN count(n)`, http.StatusOK},
		{w.viewer, http.MethodPost, graph, `MATCH (n {identifier: 'edge-1'}) WHERE n.cpu > 3 RETURN n ORDER BY n.cpu`, http.StatusOK},
		{w.viewer, http.MethodPost, graph, `MATCH (n)<-[r]-(p) RETURN n, r, type(r), labels(p)`, http.StatusOK},
		{w.viewer, http.MethodPost, graph, `MATCH (n:compute)-[*1..3]->(p) RETURN DISTINCT p.identifier`, http.StatusOK},

		{w.operator, http.MethodPost, "/metricsexport/create_metric", `{"type": 2, "metric_name": "belts", "value": 1, "labels": {"site": "a"}}`, http.StatusOK},
		{w.operator, http.MethodPost, "/metricsexport/unregister_metric", `{"metric_name": "belts"}`, http.StatusOK},
		{w.operator, http.MethodPost, "/metricsexport/train", `{"model_name": "up", "model_type": "ridge", "values": ` + values + `}`, http.StatusAccepted},
		{w.operator, http.MethodPost, "/api/v3/metrics/train", `{"model_name": "up", "model_type": "ridge", "values": ` + values + `}`, http.StatusAccepted},
		{w.viewer, http.MethodPost, "/metricsexport/predict", `{"model_tag": "up:1", "input_series": ` + values + `}`, http.StatusOK},
		{w.operator, http.MethodPost, "/api/v3/metrics/predict", `{"model_tag": "up:latest", "input_series": ` + values + `}`, http.StatusOK},
		{w.viewer, http.MethodPost, "/metricsexport/detect_drift", `{"model_tag": "up:1", "input_series": ` + values + `}`, http.StatusOK},
		{w.viewer, http.MethodPost, "/metricsexport/show_models", `{"model": "up"}`, http.StatusOK},
		{w.operator, http.MethodPost, "/metricsexport/stop_model_metrics", `{"metric_names": ["belts"]}`, http.StatusNotFound},
		{w.operator, http.MethodPost, "/metricsexport/remove_model", `{"model_tag": "up:1"}`, http.StatusOK},

		{w.viewer, http.MethodPost, "/alto/endpointcost", `{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, ` +
			`"endpoints": {"srcs": ["ipv4:192.0.2.1"], "dsts": ["ipv4:192.0.2.1"]}}`, http.StatusOK},
		{w.viewer, http.MethodPost, "/alto/networkmap", `{"pids": ["hub-1"]}`, http.StatusOK},

		{w.operator, http.MethodPost, "/pdlc/agents", `{"episodes": 16}`, http.StatusOK},
		{w.operator, http.MethodPut, "/pdlc/pipelines/up", `{"telemetry_metric": "up"}`, http.StatusOK},
		{w.operator, http.MethodPut, "/pdlc/profiles/idle", `{"formula": "1 - cpu"}`, http.StatusOK},
		{w.operator, http.MethodPut, federation, `{"lags": 2, "horizon": 1, "fewest": 3}`, http.StatusOK},
		{controller, http.MethodPost, federation + "/updates", `{"round": 1, "change": [0.1, 0, 0], "windows": 10}`, http.StatusNoContent},
	} {
		t.Run(call.method+" "+call.path, func(t *testing.T) {
			call.by.call(t, call.method, call.path, call.body).is(t, call.status)
		})
	}

	// An application is read to tell whose series a policy of it reads.
	g := w.submit(t, strings.Replace(hubShop, "shop", "market", 1))
	w.operator.send(t, http.MethodPost, polman+"/render", usage(g.ID)).is(t, http.StatusOK)
	w.operator.send(t, http.MethodPost, polman+"/backtest", body{"policy": usage(g.ID), "from": time.Now().Add(-time.Minute)}).is(t, http.StatusOK)
}
