package contracts_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/inprocess"
)

// The targets below send arbitrary input to whole functions with a real store. Whatever the input is, the answer must
// be one in the contract, in its format, and never an internal error.

// target serves the named function without a network in between.
func fuzzTarget(f *testing.F) (w *world, send func(t *testing.T, r *http.Request) *httptest.ResponseRecorder) {
	f.Helper()
	w = newWorld(f)
	handler, _, err := inprocess.Mount(function.Platform{DB: w.DB, Auth: w.Issuer.Verifier(), Settings: settings.Map(given)})
	if err != nil {
		f.Fatal(err)
	}
	token := "Bearer " + w.Token(auth.Admin)
	return w, func(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
		t.Helper()
		r.Header.Set("Authorization", token)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		answered(t, recorder)
		return recorder
	}
}

// answered requires a well-formed answer: a success, or a problem caused by the caller.
func answered(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code/100 == 2 {
		return
	}
	var d problem.Document
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || d.Status != w.Code || d.TraceID == "" {
		t.Fatalf("%d is no problem document: %s", w.Code, w.Body)
	}
	if w.Code >= 500 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
}

func FuzzQueries(f *testing.F) {
	w, send := fuzzTarget(f)
	g, _ := w.running(f, hubShop)
	first := w.viewer.get(f, "/jobmanager/jobs?limit=1").header.Get("Link")
	next, err := url.Parse(linkNext.FindStringSubmatch(first)[1])
	if err != nil {
		f.Fatal(err)
	}
	for _, query := range []string{
		"", next.RawQuery, "limit=1&state=Finished&orchestrator=ocm&owner=agent-hub&app=" + g.ID,
		"cursor=bnVsbA", "cursor=eyJhdCI6Ijk5OTktMTItMzFUMjM6NTk6NTlaIn0",
		"cursor=eyJhdCI6IjAwMDAtMDEtMDFUMDA6MDA6MDBaIn0", "app=%00", "owner=%ff%fe", "a=%zz",
		"limit=99999999999999999999", "after=-1", "&&&==&", "app=" + strings.Repeat("x", 5000),
		"shape=v1", "icos_agent_id=x", "id=" + g.ID, "stop=true",
	} {
		f.Add(query)
	}
	paths := []string{
		"/jobmanager/jobs", "/jobmanager/groups", "/jobmanager/history", "/jobmanager/jobs/executable/ocm",
		"/jobmanager/jobs/executable/orchestrator/nuvla",
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range paths {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := send(t, r)
			if w.Code == http.StatusOK && !bytes.HasPrefix(w.Body.Bytes(), []byte("[")) {
				t.Fatalf("%s?%q is no list: %s", path, query, w.Body)
			}
		}
	})
}

func FuzzReports(f *testing.F) {
	w, send := fuzzTarget(f)
	_, j := w.running(f, hubShop)
	taken := w.claim(f, w.hub, hubAgent, w.submit(f, hubShop).Jobs[0])
	for _, v := range []any{
		report(hubAgent, j, "Finished", "Available"), report(hubAgent, taken, "Progressing", "Applied"),
		report(hubAgent, taken, "4", "Degraded"),
		body{"ID": j.ID, "state": 3, "type": 5, "targets": []body{}},
		body{"job_id": j.ID, "epoch": 1, "status": "Available"},
		body{"job_id": j.ID, "epoch": -1, "conditions": []body{{"type": "Available", "status": "False"}}},
		body{"job_group_id": j.GroupID, "owner_id": hubAgent, "status": "Degraded"},
		body{"owner_id": "a\x00b"},
		body{"state": 2},
		[]int{},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3, "epoch": 9223372036854775808}`))
	f.Add(
		[]byte(
			`{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3, "resource": {"resource_uuid": "\u0000", "conditions": null}}`,
		),
	)
	f.Add(
		[]byte(
			`{"id": "` + j.ID + `", "owner_id": "agent-hub", "state": 3, "resource": {"resource_name": "\ud800", "conditions": [{"type":"A","status":"True","lastTransitionTime":"9999-12-31T23:59:59Z","message":"\u0000"}]}}`,
		),
	)
	calls := []string{
		"PUT /jobmanager/jobs",
		"PUT /jobmanager/jobs/" + j.ID,
		"PATCH /jobmanager/jobs/promote/" + taken.ID,
		"PUT /jobmanager/status",
		"PUT /jobmanager/resources/status/" + taken.ID,
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, call := range calls {
			method, path, _ := strings.Cut(call, " ")
			send(t, httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(text)))
		}
	})
}

func FuzzIncompliances(f *testing.F) {
	w, send := fuzzTarget(f)
	g, j := w.running(f, hubShop)
	for _, file := range []string{"icos/job-manager/incompliance_1.json", "icos/dynamic-policy-manager/violation_payload.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, remediation := range []string{"redeploy", "scale-up", "secure", "none", "6"} {
		f.Add(
			`{"policyName": "p", "remediation": "` + remediation + `", "subject": {"appInstance": "` + g.ID + `", "resourceId": "` + j.ID + `"}}`,
		)
	}
	f.Add(`{"id": "\u0000", "policyName": "p", "remediation": "none", "subject": {"resourceId": "\u0000"}}`)
	f.Add(`{"policyName": "p", "remediation": null, "threshold": null, "extraLabels": null, "subject": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		send(
			t,
			httptest.NewRequestWithContext(
				t.Context(),
				http.MethodPost,
				"/jobmanager/policies/incompliance",
				strings.NewReader(text),
			),
		)
	})
}

func FuzzUpdates(f *testing.F) {
	w, send := fuzzTarget(f)
	g, _ := w.running(f, hubShop)
	f.Add([]byte(hubShop))
	f.Add([]byte(strings.Replace(hubShop, "red", "blue", 1)))
	f.Add(w.viewer.get(f, "/jobmanager/groups/"+g.ID).body)
	f.Add(
		[]byte(`{"id": "` + g.ID + `", "jobs": [{"id": "` + g.Jobs[0].ID + `", "manifests": [{"yamlString": "a: [b"}]}]}`),
	)
	f.Add(
		[]byte(
			`{"id": "` + g.ID + `", "jobs": [{"id": "` + g.Jobs[0].ID + `", "instruction": {"contents": [{"name": "\u0000", "yaml": "a: b\n---\nc: d"}]}}]}`,
		),
	)
	f.Add([]byte(`{"jobs": null}`))
	f.Add([]byte(`{"jobs": [null, {}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		send(
			t,
			httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/jobmanager/groups/"+g.ID, bytes.NewReader(text)),
		)
		send(t, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/matchmake", bytes.NewReader(text)))
		send(t, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/plan", bytes.NewReader(text)))
	})
}

// FuzzEvents: input that the Broker's address accepts from anyone who reaches it.
func FuzzEvents(f *testing.F) {
	w, handlers := consumers(f, "")
	g := w.submit(f, hubShop)
	for _, e := range w.Broker.Accepted() {
		text, err := e.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add("application/cloudevents+json", string(text), "", "", "")
	}
	f.Add(
		"application/json",
		`{"id": "`+g.ID+`"}`,
		uuid.NewString(),
		events.ApplicationDisplaced,
		time.Now().Format(time.RFC3339),
	)
	f.Add("", "", "1", events.ApplicationSubmitted, "")
	f.Add("application/json", "\x00", "\x00", events.TopologyChanged, "noon")
	f.Add(
		"application/cloudevents+json",
		`{"specversion":"1.0","id":"\u0000","source":"\u0000","type":"dev.littoral.topology.changed.v1"}`,
		"",
		"",
		"",
	)
	f.Add(
		"application/cloudevents+json; charset=x",
		`{"specversion":"1.0","id":"1","source":"/","type":"dev.littoral.application.updated.v1","data_base64":"!"}`,
		"",
		"",
		"",
	)
	f.Fuzz(func(t *testing.T, media, text, id, typ, at string) {
		for _, name := range []string{"matchmaker-place", "jobmanager-displace"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(text))
			r.Header = http.Header{
				"Content-Type":   {media},
				"Ce-Specversion": {"1.0"},
				"Ce-Source":      {"/fuzz"},
				"Ce-Id":          {id},
				"Ce-Type":        {typ},
			}
			if at != "" {
				r.Header["Ce-Time"] = []string{at}
			}
			recorder := httptest.NewRecorder()
			handlers[name].ServeHTTP(recorder, r)
			answered(t, recorder)
		}
	})
}
