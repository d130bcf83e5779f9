package contracts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestSubmissionTakesADescriptorUnderAnyOfItsMediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asJSON := `{"name": "shop", "components": [{"name": "web", "type": "kubernetes",
		"manifests": [{"name": "web", "manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}}]}]}`
	for name, row := range map[string]struct{ media, body string }{
		"none":                          {"", hubShop},
		"YAML":                          {"application/yaml", hubShop},
		"YAML before it was registered": {"application/x-yaml", hubShop},
		"YAML as text":                  {"text/yaml", hubShop},
		"plain text":                    {"text/plain; charset=utf-8", hubShop},
		"JSON":                          {"application/json", asJSON},
		"YAML that is called JSON":      {"application/json", hubShop},
		"JSON that is called YAML":      {"application/x-yaml", asJSON},
		"what curl says when not told":  {"application/x-www-form-urlencoded", hubShop},
		"what a browser says of a file": {"application/octet-stream", hubShop},
		"several documents, the old way": {
			"text/plain",
			"name: shop\ncomponents:\n- name: web\n  type: manifest\n  manifests: [{name: web}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := w.operator.call(t, http.MethodPost, "/jobmanager/groups", row.body, "Content-Type", row.media).
				is(t, http.StatusCreated)
			g := decode[group](t, a)
			require.Equal(t, "/jobmanager/groups/"+g.ID, a.header.Get("Location"))
			require.Equal(t, "shop", g.Name)
			require.Len(t, g.Jobs, 1)
			require.Contains(t, g.Jobs[0].Manifests[0].YAML, "ConfigMap")
			require.Equal(t, g.ID, decode[group](t, w.viewer.get(t, a.header.Get("Location"))).ID)
		})
	}
}

// TestSubmissionAnswersBeforePlacement: shared/docs/contracts.md §1.7, first row.
func TestSubmissionAnswersBeforePlacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := decode[group](t, w.operator.call(t, http.MethodPost, "/jobmanager/groups", freeShop).is(t, http.StatusCreated))
	require.Len(t, g.Jobs, 1)
	j := g.Jobs[0]
	require.Equal(t, []string{"CreateDeployment", "", "Created", ""}, []string{j.Type, j.SubType, j.State, j.OwnerID})
	require.Equal(t, target{}, j.Targets)
	require.Equal(t, "web", j.Resource.Name)
	require.Equal(t, []condition{
		{Type: "Created", Status: "True", Reason: "AwaitingForTarget", Generation: 1},
		{Type: "Created", Status: "True", Reason: "AwaitingForExecution", Generation: 1},
	}, j.Resource.Conditions)
	require.NotEmpty(t, w.group(t, g.ID).Jobs[0].Targets.Node, "and the reaction has placed it")
}

func TestANamelessApplicationGetsAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nameless := strings.Replace(hubShop, "name: shop\n", "", 1)
	a, b := w.submit(t, nameless), w.submit(t, nameless)
	require.NotEmpty(t, a.Name)
	require.NotEqual(t, a.Name, b.Name)
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(c client, key, text string) *answer {
		return c.call(t, http.MethodPost, "/jobmanager/groups", text, "Idempotency-Key", key)
	}
	first := decode[group](t, post(w.operator, "k1", hubShop).is(t, http.StatusCreated))
	w.unchanged(t, func() {
		again := post(w.operator, "k1", hubShop).is(t, http.StatusCreated)
		require.Equal(t, first.ID, decode[group](t, again).ID)
		require.Equal(t, "true", again.header.Get("Idempotent-Replay"))
		require.Equal(t, "/jobmanager/groups/"+first.ID, again.header.Get("Location"))
		post(w.operator, strings.Repeat("k", 256), hubShop).refused(t, http.StatusBadRequest)
	})
	require.NotEqual(t, first.ID, decode[group](t, post(w.operator, "k2", hubShop).is(t, http.StatusCreated)).ID)
	require.NotEqual(t, first.ID, decode[group](t, post(w.as(auth.Admin), "k1", hubShop).is(t, http.StatusCreated)).ID,
		"a key belongs to its caller")
	require.NotEqual(t, w.submit(t, hubShop).ID, w.submit(t, hubShop).ID, "without a key each submission is its own")

	ids := make([]string, 20)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			a := post(w.operator, "at once", hubShop)
			if a.status == http.StatusCreated {
				var g group
				_ = json.Unmarshal(a.body, &g)
				ids[i] = g.ID
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.NotEmpty(t, ids[0])
}

// TestOneOfAName: many create an application that must be the first with its name, and one succeeds.
func TestOneOfAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(match, key string) *answer {
		return w.operator.call(t, http.MethodPost, "/jobmanager/groups", hubShop, "If-None-Match", match, "Idempotency-Key", key)
	}
	w.unchanged(t, func() { post(`"1"`, "").refused(t, http.StatusBadRequest) })
	answers := make([]*answer, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = post("*", fmt.Sprint("k", i)) })
	}
	all.Wait()
	var made []group
	for i, a := range answers {
		if a.status == http.StatusCreated {
			made = append(made, decode[group](t, a))
			require.Equal(t, made[0].ID, decode[group](t, post("*", fmt.Sprint("k", i)).is(t, http.StatusCreated)).ID, "a repeat")
			continue
		}
		require.Contains(t, a.refused(t, http.StatusPreconditionFailed).Detail, `has the name "shop" already`)
	}
	require.Len(t, made, 1)
	w.submit(t, hubShop) // a caller without that condition may create another
	for _, g := range decode[[]group](t, w.viewer.get(t, "/jobmanager/groups?app=shop")) {
		w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusOK)
	}
	post("*", "again").is(t, http.StatusCreated)
}

// TestIdempotencyKey_meansWhatItCameWith: a key is refused with another document, and for an application that was
// deleted.
func TestIdempotencyKey_meansWhatItCameWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(text string) *answer {
		return w.operator.call(t, http.MethodPost, "/jobmanager/groups", text, "Idempotency-Key", "k1")
	}
	g := decode[group](t, post(hubShop).is(t, http.StatusCreated))
	group := "/jobmanager/groups/" + g.ID
	changed := strings.Replace(hubShop, "color: red", "color: blue", 1)
	require.NotEqual(t, hubShop, changed)
	w.operator.call(t, http.MethodPut, group, changed).is(t, http.StatusOK)
	w.unchanged(t, func() {
		require.Contains(t, post(changed).refused(t, http.StatusConflict).Detail, "another document")
		again := decode[body](t, post(hubShop).is(t, http.StatusCreated))
		require.Equal(t, g.ID, again["id"])
		require.EqualValues(t, 2, again["version"], "the repeat does not undo the update")
	})

	_, err := w.DB.Exec(t.Context(), `update applications set submitted = null where id = $1`, g.ID)
	require.NoError(t, err)
	post(changed).is(t, http.StatusCreated) // an earlier version did not store the first request

	w.finish(t, w.hub, hubAgent, w.job(t, g.Jobs[0].ID))
	w.operator.call(t, http.MethodDelete, group+"?stop=true", "").is(t, http.StatusAccepted)
	deleted := func() {
		w.unchanged(t, func() {
			require.Contains(t, post(hubShop).refused(t, http.StatusConflict).Detail, g.ID+", was deleted; use another key")
		})
	}
	deleted() // or is being deleted
	w.finish(t, w.hub, hubAgent, w.job(t, g.Jobs[0].ID))
	w.viewer.call(t, http.MethodGet, group, "").refused(t, http.StatusNotFound)
	deleted()
}

// TestUpdateTouchesOnlyWhatDiffers: in each form of PUT groups.
func TestUpdateTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	const twoParts = `name: shop
components:
  - name: api
    type: kubernetes
    targets: {cluster_name: hub, node_name: hub-2, orchestrator: ocm}
    manifests: [{name: api, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: api}, data: {color: red}}}]
  - name: web
    type: kubernetes
    targets: {cluster_name: hub, node_name: hub-1, orchestrator: ocm}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: red}}}]
`
	changed := strings.Replace(
		twoParts,
		"metadata: {name: web}, data: {color: red}",
		"metadata: {name: web}, data: {color: blue}",
		1,
	)
	for name, put := range map[string]func(*testing.T, *world, group) *answer{
		"a descriptor, by name": func(t *testing.T, w *world, _ group) *answer {
			return w.operator.call(t, http.MethodPut, "/jobmanager/groups", changed)
		},
		"a descriptor, by id in the path": func(t *testing.T, w *world, g group) *answer {
			return w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, changed)
		},
		"a descriptor, by id in the query": func(t *testing.T, w *world, g group) *answer {
			return w.operator.call(t, http.MethodPut, "/jobmanager/groups?id="+g.ID, changed)
		},
		"a JobGroup with another manifest": func(t *testing.T, w *world, g group) *answer {
			return w.operator.send(t, http.MethodPut, "/jobmanager/groups", w.recoloured(t, g, func(j body) {
				j["manifests"].([]any)[0].(body)["yamlString"] = blueWeb
			}))
		},
		"a JobGroup with another instruction": func(t *testing.T, w *world, g group) *answer {
			return w.operator.send(t, http.MethodPut, "/jobmanager/groups", w.recoloured(t, g, func(j body) {
				j["instruction"].(body)["contents"].([]any)[0].(body)["yaml"] = blueWeb
			}))
		},
		"a JobGroup under ID, as v1.4.1 writes it": func(t *testing.T, w *world, g group) *answer {
			old := w.recoloured(t, g, func(j body) { j["manifests"].([]any)[0].(body)["yamlString"] = blueWeb })
			old["ID"] = old["id"]
			delete(old, "id")
			for _, j := range old["jobs"].([]any) {
				j.(body)["ID"] = j.(body)["id"]
				delete(j.(body), "id")
			}
			return w.operator.send(t, http.MethodPut, "/jobmanager/groups", old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			g := w.submit(t, twoParts)
			for _, j := range g.Jobs {
				w.finish(t, w.hub, hubAgent, j)
			}
			before := w.group(t, g.ID)
			require.Equal(t, g.ID, decode[group](t, put(t, w, before).is(t, http.StatusOK)).ID)
			after := w.group(t, g.ID)
			require.Equal(t, before.Jobs[0], after.Jobs[0], "api is as it was")
			web := after.Jobs[1]
			require.Equal(t, standing{update, "replace", "Created", hubAgent}, web.stands())
			require.Contains(t, web.Manifests[0].YAML, "blue")
			offered := w.executable(t, w.hub, hubAgent, "ocm")
			require.Len(t, offered, 1, "a Replace reaches its agent, which v1.4.1 never did")
			require.Equal(t, web.ID, offered[0].ID)
			w.finish(t, w.hub, hubAgent, web)
			require.Equal(t, "Available", w.group(t, g.ID).Status)
			w.unchanged(t, func() { put(t, w, before).is(t, http.StatusOK) })
		})
	}
}

const blueWeb = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  color: blue\n"

// recoloured reads the group as JSON and lets change modify its job web.
func (w *world) recoloured(t *testing.T, g group, change func(body)) body {
	t.Helper()
	text := decode[body](t, w.viewer.get(t, "/jobmanager/groups/"+g.ID))
	for _, j := range text["jobs"].([]any) {
		if j.(body)["instruction"].(body)["componentName"] == "web" {
			change(j.(body))
		}
	}
	return text
}

// TestTwoWriters: a writer that has not seen the other's change is refused, and changes nothing.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := "/jobmanager/groups/" + w.submit(t, hubShop).ID
	with := func(method, path, document, match string) *answer {
		return w.operator.call(t, method, path, document, "If-Match", match)
	}
	seen := w.viewer.get(t, at).header.Get("ETag")
	require.Equal(t, `"1"`, seen)
	theirs := with(http.MethodPut, at, hubShop+"description: theirs\n", seen).is(t, http.StatusOK)
	require.Equal(t, `"2"`, theirs.header.Get("ETag"))

	stop := strings.Replace(at, "groups", "groups/stop", 1)
	start := strings.Replace(at, "groups", "groups/start", 1)
	group := string(w.viewer.get(t, at).body)
	w.unchanged(t, func() {
		for _, late := range []struct{ method, path, document string }{
			{http.MethodPut, at, hubShop + "description: mine\n"},
			{http.MethodPut, "/jobmanager/groups", hubShop + "description: mine\n"},
			{http.MethodPut, "/jobmanager/groups", group},
			{http.MethodPut, stop, ""},
			{http.MethodPut, start, ""},
			{http.MethodDelete, at + "?stop=true", ""},
		} {
			for _, match := range []string{seen, `W/"2"`, `"0", "3"`} {
				p := with(late.method, late.path, late.document, match).refused(t, http.StatusPreconditionFailed)
				require.Contains(t, p.Detail, `"2"`)
			}
			for _, match := range []string{"2", "", `"2`, `"2" "3"`, `*, "2"`} {
				with(late.method, late.path, late.document, match).refused(t, http.StatusBadRequest)
			}
		}
	})
	require.Equal(t, `"2"`, w.viewer.get(t, at).header.Get("ETag"))

	with(http.MethodPut, at, hubShop+"description: both\n", `W/"2" , "2"`).is(t, http.StatusOK)
	with(http.MethodPut, stop, "", "*").is(t, http.StatusOK)
	with(http.MethodPut, start, "", `"3"`).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, at, hubShop).is(t, http.StatusOK)
	gone := with(http.MethodDelete, at+"?stop=true", "", `"4"`)
	require.Contains(t, []int{http.StatusOK, http.StatusAccepted}, gone.status)
}

// TestTwoWritersAtOnce: of several writers with the same version, one succeeds.
func TestTwoWritersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := "/jobmanager/groups/" + w.submit(t, hubShop).ID
	seen := w.viewer.get(t, at).header.Get("ETag")
	statuses := make([]int, 6)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			document := hubShop + "description: writer " + string(rune('a'+i)) + "\n"
			statuses[i] = w.operator.call(t, http.MethodPut, at, document, "If-Match", seen).status
		})
	}
	all.Wait()
	slices.Sort(statuses)
	require.Equal(t, []int{200, 412, 412, 412, 412, 412}, statuses)
	require.Equal(t, `"2"`, w.viewer.get(t, at).header.Get("ETag"))
}

// TestRoomIsOffered: a component that waits for room is placed when another one asks for less, or is deleted before any
// agent took it.
func TestRoomIsOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := func(name, cpu string) string {
		return strings.NewReplacer("name: shop", "name: "+name, "cpu: 500m", "cpu: "+cpu).Replace(hubShop)
	}
	large := w.submit(t, shop("large", "5"))
	require.Equal(t, "hub-1", large.Jobs[0].Targets.Node)
	second, third := w.submit(t, shop("second", "3")), w.submit(t, shop("third", "3"))
	place := func(g group) string { return w.group(t, g.ID).Jobs[0].Targets.Node }
	require.Empty(t, place(second))

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+large.ID, shop("large", "3")).is(t, http.StatusOK)
	require.Equal(t, "hub-1", place(second), "the other asks for less")
	require.Empty(t, place(third))

	w.operator.call(t, http.MethodDelete, "/jobmanager/jobs/"+large.Jobs[0].ID, "").is(t, http.StatusOK)
	require.Equal(t, "hub-1", place(third), "the other's job is forgotten")
}

// TestWarningsOfADescriptorAreAnswered: the answer and the history have the warnings.
func TestWarningsOfADescriptorAreAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type answered struct {
		ID       string
		Warnings []string
	}
	ask := func(method, path, document string, status int) answered {
		return decode[answered](t, w.operator.call(t, method, path, document, "Idempotency-Key", "odd").is(t, status))
	}
	odd := hubShop + "policies: [{type: securty, remediation: none}]\n"
	warned := func(a answered) string {
		require.Len(t, a.Warnings, 1)
		require.Contains(t, a.Warnings[0], `"securty" is not a known type of policy`)
		return a.ID
	}
	id := warned(ask(http.MethodPost, "/jobmanager/groups", odd, http.StatusCreated))
	warned(ask(http.MethodPost, "/jobmanager/groups", odd, http.StatusCreated)) // the same once more
	group := "/jobmanager/groups/" + id
	require.Empty(t, ask(http.MethodPut, group, hubShop, http.StatusOK).Warnings)
	warned(ask(http.MethodPut, group, odd, http.StatusOK))
	warned(ask(http.MethodPut, group, odd, http.StatusOK)) // unchanged
	for _, preview := range []string{"plan", "explain", "matchmake"} {
		warned(ask(http.MethodPost, "/matchmaker/"+preview, odd, http.StatusOK))
		require.Empty(t, ask(http.MethodPost, "/matchmaker/"+preview, hubShop, http.StatusOK).Warnings)
	}
	type entry struct {
		Message string
		Data    answered
	}
	entries := decode[[]entry](t, w.viewer.get(t, "/jobmanager/history?event=application.submitted,application.updated&app="+id))
	require.Len(t, entries, 3)
	for _, i := range []int{0, 2} {
		warned(entries[i].Data)
		require.Contains(t, entries[i].Message, "; warnings: 1")
	}
	require.NotContains(t, entries[1].Message, "warnings")
}

// TestFaultyPoliciesAreAnsweredAsWarnings: the answer names them, although the application is accepted.
func TestFaultyPoliciesAreAnsweredAsWarnings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	faulty := hubShop + `policies:
  - {name: typo, type: custom, fromTemplate: app-host-cpu-usage-per, remediation: none, variables: {threshold: 0.8}}
  - {name: bare, type: custom, fromTemplate: app-host-cpu-usage-perc, remediation: none}
  - {name: silent, type: custom, fromTemplate: app-sca-score, variables: {threshold: 5}}
  - {security: low, apply-to: db}
  - redeployOnLostTelemetry: 24h
  - security: low
`
	faults := []string{
		`policies[0].fromTemplate: "app-host-cpu-usage-per" is not a template: `,
		"policies[1].variables.threshold: is required by template app-host-cpu-usage-perc: ",
		"policies[2].remediation: is required with fromTemplate: ",
		`policies[3].apply-to: "db" is not a component of the application`,
		"policies[4].variables.timeout: must be within 1 and 43200 seconds: ",
		"policies[4].variables.lookback: must be within 60 and 86400 seconds: ", // exceeded by a factor of two
	}
	line := regexp.MustCompile(` \(line \d+\)`) // a stored descriptor has none
	ask := func(method, path, document string, status int) (id string, warnings []string) {
		a := decode[struct {
			ID       string
			Warnings []string
		}](t, w.operator.call(t, method, path, document, "Idempotency-Key", "faulty").is(t, status))
		return a.ID, a.Warnings
	}
	warned := func(method, path string, status int) (id string) {
		id, warnings := ask(method, path, faulty, status)
		require.Len(t, warnings, len(faults))
		for i, fault := range faults {
			require.Contains(t, line.ReplaceAllString(warnings[i], ""), fault)
			require.Contains(t, warnings[i], "; the policy is not watched")
		}
		return id
	}
	id := warned(http.MethodPost, "/jobmanager/groups", http.StatusCreated)
	warned(http.MethodPost, "/jobmanager/groups", http.StatusCreated) // the same once more
	group := "/jobmanager/groups/" + id
	_, warnings := ask(http.MethodPut, group, hubShop, http.StatusOK)
	require.Empty(t, warnings)
	warned(http.MethodPost, "/matchmaker/plan?app="+id, http.StatusOK)
	warned(http.MethodPut, group, http.StatusOK)
	warned(http.MethodPut, group, http.StatusOK) // unchanged
	for _, preview := range []string{"plan", "explain", "matchmake", "explain?app=" + id} {
		warned(http.MethodPost, "/matchmaker/"+preview, http.StatusOK)
	}
	require.Len(t, w.policiesOf(t, id), 1, "the one without a fault")
}

// TestAnUpdateThatNobodyHandledIsFound is handled by the next tick: the update may have been handled by a matchmaker of the
// former version, which does not record that.
func TestAnUpdateThatNobodyHandledIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, hubShop+"description: another\n").is(t, http.StatusOK)
	require.Equal(t, "Available", w.group(t, g.ID).Status, "the matchmaker has looked")
	_, err := w.DB.Exec(t.Context(), `update applications set judged = 1 where id = $1`, g.ID)
	require.NoError(t, err)
	require.Equal(t, "Deploying", w.group(t, g.ID).Status)
	ctx := store.WithSource(t.Context(), "/functions/jobmanager-displace")
	require.NoError(t, w.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return application.Remind(ctx, tx, "for the test")
	}))
	require.NoError(t, w.DB.Flush(t.Context()))
	require.Equal(t, "Available", w.group(t, g.ID).Status)
}

// silence sets when a node of the hub was last seen; all others were seen now.
func (w *world) silence(t testing.TB, node string, length time.Duration) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `update nodes set last_seen = last_seen - interval '1 hour'`) // it never goes back otherwise
	require.NoError(t, err)
	now := time.Now()
	taxonomy := inprocess.Topology(now)
	taxonomy.Cluster["hub"].Node[node] = inprocess.Topology(now.Add(-length)).Cluster["hub"].Node[node]
	w.SaveTopology(taxonomy)
}

// TestAnUpdateOfWhatIsOnASilentNode is carried out when the node reports again or is lost; until then nothing may
// report it as done.
func TestAnUpdateOfWhatIsOnASilentNode(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (*world, group) {
		t.Helper()
		w := newWorld(t)
		g, _ := w.running(t, hubShop)
		w.silence(t, "hub-1", 2*time.Minute)
		elsewhere := strings.Replace(hubShop, "hub-1", "hub-2", 1)
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, elsewhere).is(t, http.StatusOK)
		require.Equal(t, "hub-1", w.group(t, g.ID).Jobs[0].Targets.Node)
		require.Equal(t, "Unknown", w.group(t, g.ID).Status)
		return w, g
	}
	settled := func(t *testing.T, w *world, g group) {
		t.Helper()
		now := w.group(t, g.ID)
		require.Equal(t, "hub-2", now.Jobs[0].Targets.Node)
		w.finish(t, w.hub, hubAgent, now.Jobs[0])
		require.Equal(t, "Available", w.group(t, g.ID).Status)
		w.legal(t)
	}
	t.Run("that is heard of again", func(t *testing.T) {
		t.Parallel()
		w, g := start(t)
		w.silence(t, "hub-1", 0)
		settled(t, w, g)
	})
	t.Run("that is lost", func(t *testing.T) {
		t.Parallel()
		w, g := start(t)
		w.silence(t, "hub-1", 10*time.Minute)
		require.NoError(t, w.Broker.TickOne(t.Context(), "jobmanager-displace"))
		require.NoError(t, w.Broker.Drain(t.Context()))
		settled(t, w, g)
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID, "").refused(t, http.StatusConflict)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusAccepted)
	require.Equal(t, "Deleting", w.group(t, g.ID).Status)
	removal := w.executable(t, w.hub, hubAgent, "ocm")
	require.Len(t, removal, 1)
	require.Equal(t, "DeleteDeployment", removal[0].Type)
	w.finish(t, w.hub, hubAgent, removal[0])
	w.viewer.call(t, http.MethodGet, "/jobmanager/groups/"+g.ID, "").refused(t, http.StatusNotFound)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID, "").refused(t, http.StatusNotFound)

	stopped, j := w.running(t, hubShop)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+stopped.ID, "").is(t, http.StatusOK)
	w.finish(t, w.hub, hubAgent, j)
	w.operator.call(t, http.MethodDelete, "/jobmanager/jobs/"+j.ID, "").is(t, http.StatusOK)
	w.viewer.call(t, http.MethodGet, "/jobmanager/jobs/"+j.ID, "").refused(t, http.StatusNotFound)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+stopped.ID, "").is(t, http.StatusOK)
}

// TestDelete_saysWhatBecomesOfIt: the answer says whether the application is gone, or is being removed.
func TestDelete_saysWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	says := func(id, query string, status int, as, message string) {
		t.Helper()
		a := decode[body](t, w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+id+query, "").is(t, status))
		require.Equal(t, []any{as, message, "deleted"}, []any{a["status"], a["message"], a["desired"]})
	}
	const left = "1 of 1 components still to be removed"
	nobodys := w.submit(t, hubShop)
	says(nobodys.ID, "?stop=true", http.StatusOK, "Deleted", "gone")
	w.viewer.call(t, http.MethodGet, "/jobmanager/groups/"+nobodys.ID, "").refused(t, http.StatusNotFound)

	g, j := w.running(t, hubShop)
	says(g.ID, "?stop=true", http.StatusAccepted, "Deleting", left)
	w.claim(t, w.hub, hubAgent, j)
	w.unchanged(t, func() {
		for _, query := range []string{"", "?stop=true"} {
			says(g.ID, query, http.StatusAccepted, "Deleting", left)
		}
	})
	w.lapse(t, j.ID)
	says(g.ID, "", http.StatusOK, "Deleted", "gone; "+left)
	w.viewer.call(t, http.MethodGet, "/jobmanager/groups/"+g.ID, "").refused(t, http.StatusNotFound)
}
