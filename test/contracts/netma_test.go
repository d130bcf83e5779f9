package contracts_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// badALTO: what cannot be read is refused in the form that clients of ALTO know.
func badALTO(t *testing.T, c client, r route) {
	t.Helper()
	path := r.anywhere()
	for _, text := range []string{"", unreadable, "nul", "[]", "{} {}", "{}"} {
		a := c.call(t, r.method, path, text)
		require.Equal(t, http.StatusBadRequest, a.status, "%q: %s", text, a.body)
		require.Equal(t, "application/alto-error+json", a.header.Get("Content-Type"))
		var said struct{ Meta struct{ Code string } }
		require.NoError(t, json.Unmarshal(a.body, &said))
		require.Contains(t, []string{"E_SYNTAX", "E_MISSING_FIELD"}, said.Meta.Code)
	}
	c.call(t, r.method, path, strings.Repeat(" ", int(r.entry.Spec.MaxBody)+1)).refused(t, http.StatusRequestEntityTooLarge)
	c.call(t, r.method, path, "{}", "Content-Type", "application/pdf").refused(t, http.StatusUnsupportedMediaType)
	c.call(t, r.method, path, "{}", "Accept", "text/html").refused(t, http.StatusNotAcceptable)
}

const lan = "networkImplementation: LAN\nnodes: [{name: hub-1, ipAddress: 192.0.2.1}, {name: out-1}, {name: sw, type: NETWORK}]\nlinks: [" +
	"{source: hub-1, target: sw, capabilities: {bandWidthBits: 1G, latencyNanos: \"1e6\"}}, " +
	"{source: sw, target: out-1, capabilities: {bandWidthBits: 100M, latencyNanos: \"2e6\"}}]\n"

// TestALTOShowsWhatWasDescribed: the nodes of the taxonomy and of a description, and the costs of the ways between them.
func TestALTOShowsWhatWasDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.viewer.get(t, "/alto/networkmap")
	require.Contains(t, string(before.body), `"elsewhere"`)
	w.operator.call(t, http.MethodPut, "/swm/topologies/lan", lan).is(t, http.StatusOK)
	now := w.viewer.get(t, "/networkmap")
	require.Equal(t, "application/alto-networkmap+json", now.header.Get("Content-Type"))
	require.Contains(t, string(now.body), `"hub-1":{"ipv4":["192.0.2.1/32"`)
	require.NotEqual(t, before.header.Get("ETag"), now.header.Get("ETag"))
	require.Contains(t, string(w.viewer.get(t, "/costmap").body), `"out-1":3.02`)
	require.Contains(t, string(w.viewer.get(t, "/alto/costmap/ordinal/hopcount").body), `"cost-mode":"ordinal"`)
	w.viewer.call(t, http.MethodGet, "/alto/costmap/numerical/taste", "").refused(t, http.StatusNotFound)
	part := w.viewer.call(t, http.MethodPost, "/alto/costmap",
		`{"cost-type": {"cost-mode": "numerical", "cost-metric": "hopcount"}, "pids": {"srcs": ["hub-1"], "dsts": ["out-1"]}}`).is(t, http.StatusOK)
	require.Contains(t, string(part.body), `"cost-map":{"hub-1":{"out-1":2}}`)
	where := w.viewer.call(t, http.MethodPost, "/alto/endpointprop", `{"properties": ["network.pid"], "endpoints": ["ipv4:192.0.2.1"]}`)
	require.Contains(t, string(where.body), `"endpoint-properties":{"ipv4:192.0.2.1":{"network.pid":"hub-1"}}`)
	require.Contains(t, string(w.viewer.get(t, "/best/hub-1/out-1").body), `["hub-1","sw","out-1"]`)
	require.Contains(t, string(w.viewer.get(t, "/all/hub-1/out-1").body), `"hopcount":2`)
	require.Contains(t, string(w.viewer.get(t, "/best/out-1/hub-1").body), `"path":null`)
	require.Contains(t, string(w.viewer.get(t, "/alto").body), `"default-alto-network-map":"network"`)
}

// TestBandwidthIsPromisedOnce: what one reservation has the next does not get, and what is given back it does.
func TestBandwidthIsPromisedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := `{"source": "hub-1", "target": "out-1", "bandwidthBits": 60000000, "maxDelayNanos": 4000000}`
	w.operator.call(t, http.MethodPut, "/netma/reservations/a", ask).refused(t, http.StatusConflict)
	w.operator.call(t, http.MethodPut, "/swm/topologies/lan", lan).is(t, http.StatusOK)
	a := w.operator.call(t, http.MethodPut, "/netma/reservations/a", ask).is(t, http.StatusOK)
	require.Contains(t, string(a.body), `"path":"hub-1-sw,sw-out-1"`)
	w.operator.call(t, http.MethodPut, "/netma/reservations/a", ask).is(t, http.StatusOK)
	refused := w.operator.call(t, http.MethodPut, "/netma/reservations/b", ask).refused(t, http.StatusConflict)
	require.Contains(t, refused.Detail, "has 40000000 bit/s left on LAN/sw-out-1")
	w.operator.call(t, http.MethodPut, "/netma/reservations/b", strings.Replace(ask, "4000000}", "1000}", 1)).refused(t, http.StatusConflict)
	require.ElementsMatch(t, []string{"bandwidthBits", "source"},
		w.operator.call(t, http.MethodPut, "/netma/reservations/b", `{"target": "out-1"}`).fields(t))
	w.operator.call(t, http.MethodDelete, "/netma/reservations/a", "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodPut, "/netma/reservations/b", ask).is(t, http.StatusOK)
	require.Contains(t, string(w.viewer.get(t, "/netma/reservations").body), `"name":"b"`)
}

// TestWhereUsersAre: handed in, asked for in the words of ETSI MEC 013, and a subscriber sees only what is its own.
func TestWhereUsersAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.call(t, http.MethodPut, "/netma/zones/harbour", `{"accessPoints": [{"accessPointId": "ap-1", "latitude": 47.1, "longitude": 8.5}]}`).is(t, http.StatusNoContent)
	require.ElementsMatch(t, []string{"users[0].latitude", "users[1].address", "users[1].accessPointId"}, w.operator.call(t, http.MethodPost,
		"/netma/positions", `{"users": [{"address": "a", "latitude": 95, "longitude": 1}, {"address": "", "timestamp": "2026-01-01T00:00:00Z"}]}`).fields(t))
	w.operator.call(t, http.MethodPost, "/netma/positions", `{"users": [{"address": "sip 0_0", "latitude": 47.1, "longitude": 8.5}]}`).is(t, http.StatusNoContent)
	require.Contains(t, string(w.operator.get(t, "/location/v2/queries/users?zoneId=harbour").body), `"address":"sip 0_0","accessPointId":"ap-1"`)
	require.Contains(t, string(w.operator.get(t, "/location/v2/queries/users?zoneId=elsewhere").body), `"user":[]`)
	require.Contains(t, string(w.viewer.get(t, "/location/v2/queries/zones/harbour").body), `"numberOfUsers":1`)
	require.Contains(t, string(w.viewer.get(t, "/location/v2/queries/zones/harbour/accessPoints/ap-1").body), `"numberOfUsers":1`)
	require.Contains(t, string(w.operator.get(t, "/location/v2/queries/distance?address=sip%200_0&location=47.1%252C%208.5").body), `"distance":0`)
	w.operator.call(t, http.MethodGet, "/location/v2/queries/distance?address=sip%200_0", "").refused(t, http.StatusBadRequest)
	w.operator.call(t, http.MethodGet, "/location/v2/queries/distance?address=nobody&location=1,1", "").refused(t, http.StatusNotFound)
	w.viewer.call(t, http.MethodGet, "/location/v2/queries/users", "").refused(t, http.StatusForbidden)

	ask := `{"subscriptionType": "UserLocationEventSubscription", "address": "sip 0_0", "callbackReference": "https://example.org/hook"}`
	made := w.operator.call(t, http.MethodPost, "/location/v2/subscriptions/users", ask).is(t, http.StatusCreated)
	at := made.header.Get("Location")
	require.Contains(t, string(w.operator.get(t, at).body), `"href":"`+at+`"`)
	require.Contains(t, string(w.operator.get(t, "/location/v2/subscriptions/users").body), at)
	w.operator.call(t, http.MethodPut, at, strings.Replace(strings.Replace(ask, "Event", "Periodic", 1), "}", `, "periodicEventInfo": {"reportingInterval": 5}}`, 1)).refused(t, http.StatusBadRequest)
	w.operator.call(t, http.MethodPut, at, ask).is(t, http.StatusOK)
	w.operator.call(t, http.MethodGet, "/location/v2/subscriptions/dreams", "").refused(t, http.StatusNotFound)
	w.operator.call(t, http.MethodDelete, at, "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodDelete, at, "").refused(t, http.StatusNotFound)
}
