package telemetry_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// The effects of remediations.

// moved waits until every component that was with the violated one has moved, and checks that no other has.
func moved(r *run) {
	for component, before := range r.places {
		if before != r.places["web"] {
			require.Equal(r.t, before, r.nodes()[component])
			continue
		}
		r.eventually(component+" leaves the node", func() bool {
			now := r.nodes()[component]
			return now != "" && now != before
		})
	}
	r.available()
}

// recorded checks that the violation was only recorded.
func recorded(r *run) {
	r.eventually("it is recorded", func() bool { return r.happened("policy.remediated") == 1 })
	require.Equal(r.t, r.places, r.nodes())
	require.Empty(r.t, r.jobs()["web"].Resource.Remediations)
}

// strained waits until the application reports that the component should leave its node but cannot; healing the node
// ends that.
func strained(r *run) {
	r.eventually("it is degraded where it is", func() bool {
		for _, c := range r.jobs()["web"].Resource.Conditions {
			if c.Type == "Degraded" && c.Reason == "PolicyViolated" {
				return true
			}
		}
		return false
	})
	require.Equal(r.t, r.places, r.nodes())
}

// remedied waits until the agent has carried out the remediation where the component is.
func remedied(remediation string) func(r *run) {
	return func(r *run) {
		r.eventually("the agent has done its part", func() bool {
			for _, done := range r.jobs()["web"].Resource.Remediations {
				if done.RemediationType == remediation && done.RemediationStatus == "Remediated" {
					return true
				}
			}
			return false
		})
		require.Equal(r.t, r.places, r.nodes())
		require.Len(r.t, r.jobs()["web"].Resource.Remediations, 1)
	}
}

// scaledTo waits until that many pods run.
func scaledTo(pods int) func(r *run) {
	return func(r *run) {
		remediation := "scale-up"
		if pods < r.kind.replicas {
			remediation = "scale-down"
		}
		remedied(remediation)(r)
		r.eventually("it is scaled", func() bool { return r.pods() == pods })
	}
}

// resized waits until the telemetry of the containers shows larger or smaller resources.
func resized(direction float64) func(r *run) {
	return func(r *run) {
		remediation := "scale-out"
		if direction < 0 {
			remediation = "scale-in"
		}
		remedied(remediation)(r)
		require.Positive(r.t, r.size)
		r.eventually("its containers have another size", func() bool {
			now, ok := r.query(r.memory())
			return ok && (now-r.size)*direction > 0
		})
		require.Equal(r.t, 1, r.pods())
	}
}

// secured waits until the agent has acted on the container that caused the events.
func secured(r *run) {
	remedied("secure")(r)
	target := r.jobs()["web"].Resource.Remediations[0].RemediationTarget
	require.Equal(r.t, "web", target.Container)
	require.True(r.t, strings.HasPrefix(target.Pod, "web-"), target.Pod)
	require.Equal(r.t, r.places["web"], target.Node)
	require.True(r.t, strings.HasPrefix(target.Namespace, r.name()), target.Namespace)
	require.Equal(r.t, "pkill exec", target.Command)
}

// called waits until the URL in the policy was called, once.
func called(method string) func(r *run) {
	return func(r *run) {
		r.eventually("somebody is called", func() bool { return len(r.calls(r.policy)) > 0 })
		calls := r.calls(r.policy)
		require.Len(r.t, calls, 1)
		c := calls[0]
		require.Equal(r.t, method, c.method)
		require.Equal(r.t, c.text("id"), c.header.Get("Idempotency-Key"))
		require.NotEmpty(r.t, c.text("id"))
		require.NotEmpty(r.t, c.text("currentValue"))
		require.Equal(r.t, "prom-1", c.text("measurementBackend"))
		require.Equal(r.t, "ring", c.text("bell"), "an extra parameter")
		require.Equal(r.t, method == http.MethodPost, strings.HasPrefix(c.header.Get("Authorization"), "Bearer "))
		subject := r.read().Subject
		if subject["type"] == "app" { // with the real name in place of a wildcard
			subject["appComponent"] = "web"
		}
		if subject["type"] == "host" {
			subject["agentId"] = "agent-ocm-1"
			if r.places["web"] == r.ground[1].node {
				subject["agentId"] = "agent-ocm-2"
			}
		}
		for name, value := range subject {
			require.Equal(r.t, value, c.text("subject."+name), name)
		}
	}
}

// call is a call to the receiver.
type call struct {
	method string
	header http.Header
	fields map[string]string // of the body, with nested names joined by dots, or of the query
}

func (c *call) text(name string) string { return c.fields[name] }

// receive is the server that policies call.
func (w *world) receive(out http.ResponseWriter, r *http.Request) {
	c := call{method: r.Method, header: r.Header, fields: map[string]string{}}
	for name := range r.URL.Query() {
		c.fields[name] = r.URL.Query().Get(name)
	}
	if text, err := io.ReadAll(r.Body); err == nil && len(text) > 0 {
		var body map[string]any
		if err := json.Unmarshal(text, &body); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		flatten("", body, c.fields)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.received = append(w.received, c)
}

func flatten(prefix string, in map[string]any, out map[string]string) {
	for name, value := range in {
		switch value := value.(type) {
		case map[string]any:
			flatten(prefix+name+".", value, out)
		case string:
			out[prefix+name] = value
		}
	}
}

// calls returns the calls of a policy.
func (w *world) calls(policy string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []call
	for _, c := range w.received {
		if c.text("policyId") == policy {
			found = append(found, c)
		}
	}
	return found
}

// The policies that are created with the API.

func (r *run) action(method string) map[string]any {
	return map[string]any{
		"type": "webhook", "url": r.receiver + "/told", "httpMethod": method,
		"extraParams": map[string]string{"bell": "ring"}, "includeAccessToken": method == http.MethodPost,
	}
}

func aboutApplication(method string) func(r *run) any {
	return func(r *run) any {
		component := "web"
		if method == http.MethodPut {
			component = "*"
		}
		return map[string]any{
			"name": "call " + method,
			"subject": map[string]string{
				"type": "app", "appName": r.name(), "appInstance": r.app, "appComponent": component,
			},
			"spec":      map[string]any{"type": "template", "templateName": "app-sca-score"},
			"variables": map[string]any{"threshold": 60}, "action": r.action(method),
		}
	}
}

func aboutHost(r *run) any {
	return map[string]any{
		"name":      "call a host",
		"subject":   map[string]string{"type": "host", "hostId": hostID(r.places["web"]), "agentId": "*"},
		"spec":      map[string]any{"type": "template", "templateName": "cpu-usage-host"},
		"variables": map[string]any{"maxCpuUsagePercent": 0.6}, "action": r.action(http.MethodGet),
	}
}

func aboutLabels(r *run) any {
	return map[string]any{
		"name": "call whoever", "subject": map[string]string{"type": "custom", "icos_host_id": hostID(r.places["web"])},
		"spec": map[string]any{
			"type": "telemetryQuery", "violatedIf": "> 60",
			"expr": "max by ({{subject_label_list}}) (node_thermal_zone_temp{ {{subject_label_selector}} })",
		},
		"action": r.action(http.MethodDelete),
	}
}
