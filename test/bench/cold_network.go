package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/sse"
)

// networkCases are of the component that shows the network.
var networkCases = map[string]maker{
	"netma-directory":         get("viewer", "/alto"),
	"netma-networkmap":        get("viewer", "/alto/networkmap"),
	"netma-networkmap-filter": question("/alto/networkmap", `{"pids": []}`),
	"netma-costmap":           get("viewer", "/alto/costmap/numerical/routingcost"),
	"netma-costmap-filter":    question("/alto/costmap", `{"cost-type": {"cost-mode": "numerical", "cost-metric": "hopcount"}, "pids": {"srcs": ["cloud-1"]}}`),
	"netma-endpoint-property": question("/alto/endpointprop", `{"properties": ["network.pid"], "endpoints": ["ipv4:192.0.2.1"]}`),
	"netma-endpoint-cost": question("/alto/endpointcost",
		`{"cost-type": {"cost-mode": "numerical", "cost-metric": "hopcount"}, "endpoints": {"srcs": ["ipv4:192.0.2.1"], "dsts": ["ipv4:192.0.2.2"]}}`),
	"netma-update-stream":  question("/alto/updates", `{"add": {"map": {"resource-id": "network"}}}`),
	"netma-update-control": ofStream,
	"netma-measure":        tick,
	"netma-network-apply":  tick,
	"netma-overlay-apply": func(ctx context.Context, _ *scene) (ask, error) {
		body, err := event(ctx, events.ObjectAdded, "bench", map[string]any{
			"kind": "Overlay", "metadata": map[string]any{"namespace": "default", "name": "bench"},
		})
		return ask{method: http.MethodPost, path: "/", body: body}, err
	},
	"netma-link-list":        get("viewer", "/netma/links"),
	"netma-reservation-list": get("viewer", "/netma/reservations"),
	"netma-reservation-put": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/swm/topologies/bench", []byte(codecoNetwork), nil)
		return ask{client: "operator", method: http.MethodPut, path: "/netma/reservations/bench", body: []byte(reservation)}, err
	},
	"netma-reservation-delete": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/swm/topologies/bench", []byte(codecoNetwork), nil)
		if err == nil {
			err = s.system.call(ctx, "operator", http.MethodPut, "/netma/reservations/bench", []byte(reservation), nil)
		}
		return ask{client: "operator", method: http.MethodDelete, path: "/netma/reservations/bench"}, err
	},
	"netma-position-put":      sent(http.MethodPost, "/netma/positions", `{"users": [{"address": "bench", "latitude": 47, "longitude": 8}]}`),
	"netma-zone-put":          sent(http.MethodPut, "/netma/zones/bench", benchZone),
	"netma-user-find":         get("operator", "/location/v2/queries/users?address=bench"),
	"netma-zone-list":         get("viewer", "/location/v2/queries/zones"),
	"netma-zone-get":          ofZone("/location/v2/queries/zones/bench"),
	"netma-access-point-list": ofZone("/location/v2/queries/zones/bench/accessPoints"),
	"netma-access-point-get":  ofZone("/location/v2/queries/zones/bench/accessPoints/a"),
	"netma-distance": func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPost, "/netma/positions", []byte(`{"users": [{"address": "bench", "latitude": 47, "longitude": 8}]}`), nil)
		return ask{client: "operator", method: http.MethodGet, path: "/location/v2/queries/distance?address=bench&location=47,9"}, err
	},
	"netma-subscription-create": sent(http.MethodPost, "/location/v2/subscriptions/users", benchSubscription),
	"netma-subscription-list":   get("operator", "/location/v2/subscriptions/users"),
	"netma-subscription-get":    ofSubscription(http.MethodGet, ""),
	"netma-subscription-update": ofSubscription(http.MethodPut, benchSubscription),
	"netma-subscription-delete": ofSubscription(http.MethodDelete, ""),
	"netma-subscription-due":    tick,
	"netma-location-notify": func(ctx context.Context, _ *scene) (ask, error) {
		return delivery(events.New(ctx, "/functions/netma-position-put", events.LocationNoticed, "bench", events.Location{Notification: []byte("{}")}))
	},
	"netma-paths": ofNetwork("/all/a/b"),
	"netma-best":  ofNetwork("/best/a/b"),
}

const reservation = `{"source": "a", "target": "b", "bandwidthBits": 1000}`

const (
	benchZone         = `{"accessPoints": [{"accessPointId": "a"}]}`
	benchSubscription = `{"subscriptionType": "UserLocationEventSubscription", "address": "bench", "callbackReference": "https://example.org/"}`
)

// sent is a request of an operator with a body.
func sent(method, path, body string) maker {
	return func(context.Context, *scene) (ask, error) {
		return ask{client: "operator", method: method, path: path, body: []byte(body)}, nil
	}
}

// ofZone asks about a zone that was handed in before.
func ofZone(path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/netma/zones/bench", []byte(benchZone), nil)
		return ask{client: "viewer", method: http.MethodGet, path: path}, err
	}
}

// ofSubscription makes one and asks about it.
func ofSubscription(method, body string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		var made struct {
			Links struct{ Self struct{ Href string } } `json:"_links"`
		}
		err := s.system.call(ctx, "operator", http.MethodPost, "/location/v2/subscriptions/users", []byte(benchSubscription), &made)
		return ask{client: "operator", method: method, path: made.Links.Self.Href, body: []byte(body)}, err
	}
}

// question is a POST that changes nothing.
func question(path, body string) maker {
	return func(context.Context, *scene) (ask, error) {
		return ask{client: "viewer", method: http.MethodPost, path: path, body: []byte(body)}, nil
	}
}

// ofNetwork asks about a network that was described before.
func ofNetwork(path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		err := s.system.call(ctx, "operator", http.MethodPut, "/swm/topologies/bench", []byte(codecoNetwork), nil)
		return ask{client: "viewer", method: http.MethodGet, path: path}, err
	}
}

// ofStream ends a stream that was opened before.
func ofStream(ctx context.Context, s *scene) (ask, error) {
	token, err := s.system.world.token(ctx, "viewer")
	if err != nil {
		return ask{}, err
	}
	body := `{"add": {"map": {"resource-id": "network"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.system.url+"/alto/updates", strings.NewReader(body))
	if err != nil {
		return ask{}, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return ask{}, err
	}
	context.AfterFunc(ctx, func() { _ = answer.Body.Close() })
	var control alto.UpdateControlEvent
	opened := errors.New("it is open")
	err = sse.Read(answer.Body, func(e sse.Event) error { return cmp.Or(json.Unmarshal([]byte(e.Data), &control), opened) })
	if !errors.Is(err, opened) {
		return ask{}, fmt.Errorf("open a stream: %s: %w", answer.Status, err)
	}
	return ask{client: "viewer", method: http.MethodPost, path: control.ControlURI, body: []byte(`{"remove": []}`)}, nil
}
