package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
)

// exported is an event as Tetragon exports it, made after its description (events.proto).
func exported(kind, binary, more string) string {
	return `{"` + kind + `":{"process":{"exec_id":"ZWRnZS0x","pid":4242,"uid":0,"cwd":"/","binary":"` + binary + `","arguments":"-c id",` +
		`"flags":"execve rootcwd","start_time":"2026-11-26T10:00:00.123456789Z","auid":4294967295,"pod":{"namespace":"shop","name":"web-0",` +
		`"container":{"id":"containerd://0123456789abcdef","name":"web","image":{"id":"example/web@sha256:00","name":"example/web:1"},` +
		`"start_time":"2026-11-26T09:00:00Z","pid":17},"pod_labels":{"app.icos.eu/name":"shop","app.icos.eu/instance":"i-1",` +
		`"app.icos.eu/component":"web"},"workload":"web","workload_kind":"StatefulSet"},"docker":"0123456789abcdef0123456789abcde",` +
		`"parent_exec_id":"ZWRnZS0w","tid":4242},"parent":{"binary":"/bin/sh","pid":1}` + more + `},"node_name":"edge-1","time":"2026-11-26T10:00:00.123456789Z"}` + "\n"
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// counted are the counts by event, severity and command.
func counted(samples []otlp.Sample) map[string]float64 {
	all := map[string]float64{}
	for _, s := range samples {
		switch s.Name {
		case "tetragon_events_total":
			all[s.Labels["event_name"]+" "+s.Labels["severity"]+" "+s.Labels["command"]] += s.Value
		case "tlum_tetragon_broken_total":
			if s.Value > 0 {
				all["broken"] = s.Value
			}
		}
	}
	return all
}

func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tetragon.log")
	appendTo(t, file, exported("process_exec", "/bin/before", ""))
	l := open(t, options{Root: host(t), Kubernetes: "off", Docker: "off", NodeExporter: "off", Tetragon: file})
	look := func() map[string]float64 { return counted(l.look(t.Context(), false)) }
	require.Empty(t, look(), "what was there before is not counted")

	appendTo(t, file, exported("process_exec", "/usr/bin/curl", "")+exported("process_exec", "/usr/bin/curl", "")+exported("process_exit", "/usr/bin/curl", ""))
	appendTo(t, file, exported("process_kprobe", "/bin/cat", `,"function_name":"fd_install","action":"KPROBE_ACTION_POST","policy_name":"files"`))
	appendTo(t, file, exported("process_kprobe", "/bin/cat", `,"action":"KPROBE_ACTION_SIGKILL"`)+exported("process_lsm", "/bin/cat", `,"tags":["severity.critical"]`))
	appendTo(t, file, "no event\n"+exported("process_tracepoint", "/bin/ls", "")[:40])
	want := map[string]float64{"exec low curl": 2, "kprobe medium cat": 1, "kprobe high cat": 1, "lsm critical cat": 1, "broken": 1}
	require.Equal(t, want, look())
	require.Equal(t, want, look(), "nothing is counted twice")
	appendTo(t, file, exported("process_tracepoint", "/bin/ls", "")[40:])
	want["tracepoint medium ls"] = 1
	require.Equal(t, want, look(), "a line that came in two parts")

	appendTo(t, file, exported("process_exec", "/usr/bin/curl", "")) // the last before the rotation
	require.NoError(t, os.Rename(file, file+".1"))
	want["exec low curl"]++
	require.Equal(t, want, look())
	appendTo(t, file, exported("process_exec", "/usr/bin/curl", ""))
	want["exec low curl"]++
	require.Equal(t, want, look(), "a new file")
	require.NoError(t, os.Truncate(file, 0))
	appendTo(t, file, exported("process_exec", "/bin/a", ""))
	want["exec low a"] = 1
	require.Equal(t, want, look(), "a file that was cut")
	for i := range mostCounts + 5 {
		appendTo(t, file, exported("process_exec", fmt.Sprint("/bin/x", i), ""))
	}
	all := look()
	require.LessOrEqual(t, len(all), mostCounts+2)
	require.Positive(t, all["other unknown "])
}

// TestAPolicyFiresByAnEvent: from the file that Tetragon writes to the expression of the template.
func TestAPolicyFiresByAnEvent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tetragon.log")
	appendTo(t, file, "")
	l := open(t, options{Root: host(t), Agent: "agent-1", Controller: "c", Kubernetes: "off", Docker: "off", NodeExporter: "off", Tetragon: file})
	engine := prometheustest.New(t)
	push := func(at time.Time) {
		var all []prometheus.Sample
		for _, s := range l.look(t.Context(), true) {
			all = append(all, prometheus.Sample{Name: s.Name, Labels: s.Labels, Value: s.Value, At: at})
		}
		require.NoError(t, engine.Append(t.Context(), all))
	}
	p := registry.Policy{
		Subject:   registry.Subject{Type: registry.AppSubject, AppName: "shop", AppInstance: "i-1", AppComponent: "web"},
		Spec:      registry.Spec{Type: registry.TemplateSpec, TemplateName: "app-security-events"},
		Variables: registry.Variables{"severity": "high|critical"},
	}
	spec, err := render.Policy(&p, time.Minute)
	require.NoError(t, err)
	violations := func() (found []map[string]string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+url.QueryEscape(spec.Expr), nil)
		w := httptest.NewRecorder()
		engine.Handler().ServeHTTP(w, r)
		var answer struct {
			Data struct {
				Result []struct{ Metric map[string]string }
			}
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
		for _, one := range answer.Data.Result {
			found = append(found, one.Metric)
		}
		return found
	}
	now := time.Now()
	appendTo(t, file, exported("process_exec", "/bin/sh", ""))
	push(now.Add(-20 * time.Second))
	require.Empty(t, violations(), "the start of a process is of low severity")
	appendTo(t, file, exported("process_kprobe", "/bin/cat", `,"action":"KPROBE_ACTION_SIGKILL"`))
	push(now.Add(-5 * time.Second))
	found := violations()
	require.Len(t, found, 1)
	require.Equal(t, "web", found[0]["icos_app_component"])
	require.Equal(t, "web-0", found[0]["k8s_pod_name"])
	require.Equal(t, "cat", found[0]["command"])
	require.Equal(t, machineID, found[0]["icos_host_id"])
}

// TestWhatWazuhFound asks doubles of its server and of its indexer, made after the documentation of version 4.
func TestWhatWazuhFound(t *testing.T) {
	t.Parallel()
	root := host(t)
	password := filepath.Join(root, "password")
	require.NoError(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /security/user/authenticate", func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "leaf" || pass != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"data": {"token": "t-1"}, "error": 0}`))
	})
	answer := func(path, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t-1" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(body))
		})
	}
	answer("/agents", `{"data": {"affected_items": [{"id": "003", "name": "edge-10"}, {"id": "002", "name": "edge-1"}], "total_affected_items": 2,
		"total_failed_items": 0, "failed_items": []}, "message": "All selected agents information was returned", "error": 0}`)
	answer("/sca/002", `{"data": {"affected_items": [{"policy_id": "cis_debian12", "name": "CIS Debian 12", "description": "", "references": "",
		"pass": 83, "fail": 97, "invalid": 12, "score": 46, "total_checks": 192, "start_scan": "2026-11-26T08:00:00Z",
		"end_scan": "2026-11-26T08:00:10Z", "hash_file": "00"}, {"policy_id": "sca_unix_audit", "pass": 0, "fail": 0, "total_checks": 0}],
		"total_affected_items": 2, "total_failed_items": 0, "failed_items": []}, "message": "All selected sca information was returned", "error": 0}`)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	authority := filepath.Join(root, "wazuh.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	secret := filepath.Join(root, "indexer")
	require.NoError(t, os.WriteFile(secret, []byte("other"), 0o600))
	var buckets atomic.Value
	var searches atomic.Int64
	buckets.Store(`{"key": "High", "doc_count": 12}, {"key": "Low", "doc_count": 3}, {"key": "-", "doc_count": 2}, {"key": "Untriaged", "doc_count": 1}`)
	indexer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		searches.Add(1)
		var search struct {
			Query struct {
				Bool struct {
					Filter []struct{ Term map[string]string }
				}
			}
			Aggs struct {
				Severity struct {
					Terms struct{ Field, Missing string }
				}
			}
		}
		user, pass, _ := r.BasicAuth()
		ok := user == "reader" && pass == "other" && r.Method == http.MethodPost && r.URL.Path == "/wazuh-states-vulnerabilities-*/_search" &&
			json.NewDecoder(r.Body).Decode(&search) == nil && len(search.Query.Bool.Filter) == 2 &&
			search.Query.Bool.Filter[0].Term["agent.id"] == "002" && search.Query.Bool.Filter[1].Term["agent.name"] == "edge-1" &&
			search.Aggs.Severity.Terms.Field == "vulnerability.severity"
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"took": 3, "timed_out": false, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0}, "hits": {"total": {"value": 18,
			"relation": "eq"}, "max_score": null, "hits": []}, "aggregations": {"severity": {"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": [%s]}}}`, buckets.Load())
	}))
	t.Cleanup(indexer.Close)
	o := options{
		Root: root, Kubernetes: "off", Docker: "off", NodeExporter: "off", SCA: true,
		WazuhURL: server.URL + "/", WazuhUser: "leaf", WazuhPassword: password, WazuhCA: authority,
		WazuhIndexer: indexer.URL + "/", WazuhIndexerUser: "reader", WazuhIndexerPassword: secret,
	}
	l := open(t, o)
	for range 2 { // the second time from memory
		all := lines(l.text(t.Context()))
		has(t, all, "tlum_leaf_errors", "0")
		has(t, all, "SCA_score", "46", `agent_hostname="edge-1"`, `method="wazuh"`, `policy="cis_debian12"`)
		for severity, count := range map[string]string{"Critical": "0", "High": "12", "Medium": "0", "Low": "3", "Untriaged": "3"} {
			has(t, all, "vulnerabilities", count, `agent_hostname="edge-1"`, `severity="`+severity+`"`)
		}
		require.NotContains(t, strings.Join(all, "\n"), "self-assessment")
		require.NotContains(t, strings.Join(all, "\n"), "sca_unix_audit")
	}
	require.EqualValues(t, 1, searches.Load())
	buckets.Store("")
	text := string(open(t, o).text(t.Context()))
	require.Contains(t, text, "SCA_score")
	require.NotContains(t, text, "vulnerabilities{", "nobody looked yet")
	o.WazuhIndexerPassword = password
	all := lines(open(t, o).text(t.Context()))
	has(t, all, "tlum_leaf_errors", "1")
	has(t, all, "SCA_score", "46", `method="wazuh"`)
	o.WazuhAgent = "other"
	has(t, lines(open(t, o).text(t.Context())), "tlum_leaf_errors", "1")
	o.WazuhCA = password
	_, err := newLeaf(o, nil)
	require.ErrorContains(t, err, "no certificate")
}

func TestTheNetworkOfThePeer(t *testing.T) {
	t.Parallel()
	root := host(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	file := filepath.Join(root, "peer.pem")
	certificate := func(until time.Time) {
		fabric := &x509.Certificate{Subject: pkix.Name{CommonName: "fabric-1"}, SerialNumber: big.NewInt(1)}
		peer := &x509.Certificate{
			Subject: pkix.Name{CommonName: "peer-edge"}, SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		}
		der, err := x509.CreateCertificate(rand.Reader, peer, fabric, &key.PublicKey, key)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	}
	l := open(t, options{Root: root, Kubernetes: "off", Docker: "off", NodeExporter: "off", VNet: file})
	certificate(time.Now().Add(time.Hour))
	has(t, lines(l.text(t.Context())), "tlum_vnet_info", "1", `type="ClusterLink"`, `vnet_name="fabric-1"`, `vnet_node="peer-edge"`)
	certificate(time.Now().Add(-time.Hour))
	all := lines(l.text(t.Context()))
	has(t, all, "tlum_leaf_errors", "1")
	require.NotContains(t, strings.Join(all, "\n"), "tlum_vnet_info")
}

// TestClocksAreCompared: by the time that the receiver's answers bear.
func TestClocksAreCompared(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-90*time.Second).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(server.Close)
	l := open(t, options{Root: host(t), Kubernetes: "off", Docker: "off", NodeExporter: "off", OTLP: server.URL})
	require.NoError(t, l.push(t.Context()))
	ahead, known := l.clock.ahead()
	require.True(t, known)
	require.InDelta(t, 90, ahead, 2)
	server.Config.Handler = http.NotFoundHandler()
	require.Error(t, l.push(t.Context()))
	values := map[string]float64{}
	for _, s := range l.look(t.Context(), true) {
		values[s.Name] = s.Value
	}
	require.InDelta(t, 0, values["tlum_clock_skew_seconds"], 2, "the second answer was of now")
	require.InDelta(t, 3, values["tlum_leaf_pushes_total"], 0)
	require.InDelta(t, 1, values["tlum_leaf_push_failures_total"], 0)
	require.NotContains(t, string(l.text(t.Context())), "tlum_leaf_pushes_total", "who asks is given no number")
}
