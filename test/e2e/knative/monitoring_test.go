package knative_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/prometheusrule"
)

// ConfigMaps that a plain Prometheus and Alertmanager read, beside PROMETHEUS_ADDRESS.
const (
	ruleFiles        = "prometheus-rules" // any *.yml
	alertmanagerFile = "alertmanager"     // alertmanager.yml
)

// monitoring is a real Prometheus and Alertmanager without an operator. The test hands them what an operator would, and
// takes it away in the end.
type monitoring struct {
	*world

	namespace string
}

// monitoring skips the test where there are none.
func (w *world) monitoring(t *testing.T) *monitoring {
	t.Helper()
	address, err := url.Parse(w.setting("PROMETHEUS_ADDRESS"))
	require.NoError(t, err)
	parts := strings.Split(address.Hostname(), ".")
	if len(parts) < 3 || parts[2] != "svc" {
		t.Skipf("PROMETHEUS_ADDRESS is %s, which is no Service of the cluster", address)
	}
	m := &monitoring{w, parts[1]}
	for _, name := range []string{ruleFiles, alertmanagerFile} {
		if _, err := w.Kubectl("-n", m.namespace, "get", "configmap", name); err != nil {
			t.Skipf("needs a Prometheus and an Alertmanager that read ConfigMaps: %v", err)
		}
	}
	kind := prometheusrule.Resource.GroupResource().String()
	if _, err := w.Kubectl("get", "crd", kind); err != nil {
		w.kubectl("apply", "-f", "testdata/prometheusrule.yaml")
		t.Cleanup(func() {
			w.eventually("the rules of the test's policies are gone", func() bool {
				return w.kubectl("get", kind, "-o", "name") == ""
			})
			w.kubectl("delete", "crd", kind)
		})
		w.kubectl("wait", "crd", kind, "--for=condition=Established", "--timeout=60s")
	}
	return m
}

// configure sets a key of a ConfigMap; nil removes it.
func (m *monitoring) configure(name, key string, text *string) {
	m.t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]*string{key: text}})
	require.NoError(m.t, err)
	m.kubectl("-n", m.namespace, "patch", "configmap", name, "--type=merge", "-p", string(patch))
}

// get decodes what a server of the monitoring answers.
func (m *monitoring) get(address string, into any) error {
	resp, err := m.Inside().Get(address)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", address, resp.Status, body)
	}
	return json.Unmarshal(body, into)
}

// groups are the names of the groups of rules that Prometheus evaluates.
func (m *monitoring) groups() (names []string, err error) {
	var answer struct {
		Data struct{ Groups []struct{ Name string } }
	}
	err = m.get(m.setting("PROMETHEUS_ADDRESS")+"/api/v1/rules", &answer)
	for _, g := range answer.Data.Groups {
		names = append(names, g.Name)
	}
	return names, err
}

// rulesOfNodes are those that every installation has.
func (m *monitoring) rulesOfNodes() string {
	m.t.Helper()
	text, err := os.ReadFile("../../../infra/examples/topology-rules.yml")
	require.NoError(m.t, err)
	return string(text)
}

// rulesOfPolicies are what an operator would make of the rules of all policies, which must be enforced.
func (m *monitoring) rulesOfPolicies() string {
	m.t.Helper()
	var all rules.Groups
	m.eventually("the policies have rules", func() bool { // which are written once a policy is enforced
		var list struct {
			Items []struct{ Spec rules.Groups }
		}
		out := m.kubectl("get", prometheusrule.Resource.GroupResource().String(), "-o", "json")
		require.NoError(m.t, json.Unmarshal([]byte(out), &list))
		for _, item := range list.Items {
			all.Groups = append(all.Groups, item.Spec.Groups...)
		}
		return len(all.Groups) > 0
	})
	text, err := yaml.Marshal(all)
	require.NoError(m.t, err)
	return string(text)
}

// alert has Prometheus evaluate the rules of files, which have a text each, and Alertmanager tell Littoral of alerts, as
// infra/examples says, until the test ends. It returns once both do, which takes the kubelet a minute or so.
func (m *monitoring) alert(files map[string]string) {
	m.t.Helper()
	var want []string
	for file, text := range files {
		var all rules.Groups
		require.NoError(m.t, yaml.Unmarshal([]byte(text), &all))
		for _, g := range all.Groups {
			want = append(want, g.Name)
		}
		m.t.Cleanup(func() { m.configure(ruleFiles, file, nil) })
		m.configure(ruleFiles, file, &text)
	}
	require.NotEmpty(m.t, want)

	const file = "client_secret_file: /etc/alertmanager/secrets/littoral/client-secret"
	text, err := os.ReadFile("../../../infra/examples/alertmanager.yml")
	require.NoError(m.t, err)
	require.Contains(m.t, string(text), file)
	secret, err := m.Secret("issuer", string(auth.Alertmanager))
	require.NoError(m.t, err)
	before := m.kubectl("-n", m.namespace, "get", "configmap", alertmanagerFile, "-o", `jsonpath={.data.alertmanager\.yml}`)
	m.t.Cleanup(func() { m.alertmanagerReads(before) })
	m.alertmanagerReads(strings.Replace(string(text), file, "client_secret: "+strconv.Quote(secret), 1))

	m.eventually("Prometheus evaluates the rules", func() bool {
		have, err := m.groups()
		return err == nil && !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(have, name) })
	})
}

// alertmanagerReads changes Alertmanager's configuration. It is asked to read it anew until it has: the file comes later, and
// nothing watches it.
func (m *monitoring) alertmanagerReads(text string) {
	m.t.Helper()
	const ours = "littoral-topology" // a receiver
	m.configure(alertmanagerFile, "alertmanager.yml", &text)
	address := "http://alertmanager." + m.namespace + ".svc.cluster.local:9093"
	m.eventually("Alertmanager reads its configuration", func() bool {
		resp, err := m.Inside().Post(address+"/-/reload", "", nil)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		var status struct {
			Config struct{ Original string }
		}
		return m.get(address+"/api/v2/status", &status) == nil &&
			strings.Contains(status.Config.Original, ours) == strings.Contains(text, ours)
	})
}

// query asks Prometheus.
func (m *monitoring) query(text string) (result []struct {
	Metric map[string]string
	Value  [2]any
},
) {
	m.t.Helper()
	var answer struct {
		Data struct{ Result any }
	}
	answer.Data.Result = &result
	address := m.setting("PROMETHEUS_ADDRESS") + "/api/v1/query?" + url.Values{"query": {text}}.Encode()
	require.NoError(m.t, m.get(address, &answer))
	return result
}

// when is the value of a query that gives a time, zero where it gives none.
func (m *monitoring) when(text string) time.Time {
	m.t.Helper()
	result := m.query(text)
	if len(result) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(fmt.Sprint(result[0].Value[1]), 64)
	require.NoError(m.t, err)
	return time.UnixMilli(int64(seconds * 1000))
}

// first is the time of the first sample of a series since then, by %s of which only those count that meet a condition, such
// as "== 1"; zero if there is none.
func (m *monitoring) first(series, condition string, since time.Time) time.Time {
	m.t.Helper()
	return m.when(fmt.Sprintf("min(min_over_time(((timestamp(%[1]s) and %[1]s %[2]s) >= %.3[3]f)[%[4]ds:1s]))",
		series, condition, float64(since.UnixMilli())/1000, int(time.Since(since).Seconds())+1))
}

// last is the time of the last sample of a series.
func (m *monitoring) last(series string) time.Time {
	m.t.Helper()
	return m.when("max(max_over_time(timestamp(" + series + ")[10m:1s]))")
}

// policies are those of an application.
func (w *world) policies(app string) (list []registry.Policy) {
	w.t.Helper()
	require.Equal(w.t, http.StatusOK, w.ask(auth.Viewer, http.MethodGet, "/polman/registry/api/v1/policies/?app="+app, "", &list))
	return list
}

// enforced waits until the only policy of that template is kept, and returns it.
func (w *world) enforced(app, template string) (p registry.Policy) {
	w.t.Helper()
	w.eventually("the policy of "+template+" is kept", func() bool {
		n := 0
		for _, each := range w.policies(app) {
			if each.Spec.TemplateName == template {
				p = each
				n++
			}
		}
		return n == 1 && p.Status.Phase == registry.Enforced
	})
	return p
}
