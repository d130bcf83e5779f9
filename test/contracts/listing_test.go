package contracts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var linkNext = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// pages follows the Link headers from path and returns the ids page by page.
func (w *world) pages(t testing.TB, path string) [][]string {
	t.Helper()
	var pages [][]string
	for path != "" {
		a := w.viewer.get(t, path)
		var ids []string
		for _, item := range decode[[]struct{ ID string }](t, a) {
			ids = append(ids, item.ID)
		}
		pages = append(pages, ids)
		path = ""
		if link := a.header.Get("Link"); link != "" {
			m := linkNext.FindStringSubmatch(link)
			require.NotNil(t, m, link)
			path = m[1]
		}
		require.Less(t, len(pages), 50, "the pages do not end")
	}
	return pages
}

func flat(pages [][]string) []string {
	var all []string
	for _, p := range pages {
		all = append(all, p...)
	}
	return all
}

// TestPages: the pages contain every element once, in the order of creation, whatever the page size.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var groups, jobs []string
	for i := range 7 {
		g := w.submit(t, strings.Replace(hubShop, "name: shop", fmt.Sprintf("name: shop-%d", i%2), 1))
		groups, jobs = append(groups, g.ID), append(jobs, g.Jobs[0].ID)
	}
	// Rows of one transaction have the same time: the id then decides.
	_, err := w.DB.Exec(t.Context(), `update applications set created_at = date_trunc('minute', created_at);
update jobs set created_at = date_trunc('minute', created_at)`)
	require.NoError(t, err)
	for path, ids := range map[string][]string{"/jobmanager/groups": groups, "/jobmanager/jobs": jobs} {
		order := flat(w.pages(t, path))
		require.ElementsMatch(t, ids, order)
		for limit := 1; limit <= 8; limit++ {
			pages := w.pages(t, fmt.Sprintf("%s?limit=%d", path, limit))
			require.Equal(t, order, flat(pages), "limit %d", limit)
			for _, p := range pages {
				require.LessOrEqual(t, len(p), limit)
			}
		}
		filtered := w.pages(t, path+"?app=shop-1&limit=2&state=Created&orchestrator=ocm")
		require.Len(t, flat(filtered), 3, "the next page keeps the filters")
	}
}

// TestListsWithoutManifests: they are the same lists, and much shorter.
func TestListsWithoutManifests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 2 {
		w.submit(t, strings.Replace(hubShop, "name: shop", fmt.Sprintf("name: shop-%d", i), 1))
	}
	for _, path := range []string{"/jobmanager/groups", "/jobmanager/jobs"} {
		whole, light := w.viewer.get(t, path+"?manifests=true"), w.viewer.get(t, path+"?manifests=false")
		require.JSONEq(t, string(w.viewer.get(t, path).body), string(whole.body), "ICOS has them")
		var without any
		require.NoError(t, json.Unmarshal(whole.body, &without))
		require.Positive(t, emptyManifests(without))
		emptied, err := json.Marshal(without)
		require.NoError(t, err)
		require.JSONEq(t, string(emptied), string(light.body))
		first := w.viewer.get(t, path+"?manifests=false&limit=1")
		require.Contains(t, first.header.Get("Link"), "manifests=false", "the next page is as light")
		w.viewer.call(t, http.MethodGet, path+"?manifests=some", "").refused(t, http.StatusBadRequest)
	}
}

// emptyManifests empties the lists of manifests and contents, and says how many were not empty.
func emptyManifests(v any) (found int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			found += emptyManifests(item)
		}
	case map[string]any:
		for key, value := range v {
			if list, is := value.([]any); is && (key == "manifests" || key == "contents") {
				found += len(list)
				v[key] = []any{}
				continue
			}
			found += emptyManifests(value)
		}
	}
	return found
}

// TestPagesOfLargeThings: a page is limited to what one instance can hold, and links to the next.
func TestPagesOfLargeThings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	large := strings.Replace(hubShop, "color: red", "color: "+strings.Repeat("r", 900<<10), 1)
	var groups, jobs []string
	for i := range 5 {
		g := w.submit(t, strings.Replace(large, "name: shop", fmt.Sprintf("name: shop-%d", i), 1))
		groups, jobs = append(groups, g.ID), append(jobs, g.Jobs[0].ID)
	}
	for path, ids := range map[string][]string{"/jobmanager/groups": groups, "/jobmanager/jobs": jobs} {
		pages := w.pages(t, path)
		require.Equal(t, ids, flat(pages))
		require.Len(t, pages, 3, "two of 900 KiB are within 2 MiB")
	}
	var done []string
	for range 3 { // an agent gets the rest in its next polls
		for _, j := range w.executable(t, w.hub, hubAgent, "ocm") {
			done = append(done, j.ID)
			w.finish(t, w.hub, hubAgent, j)
		}
	}
	require.Equal(t, jobs, done)
}

// TestPagesOfLargePolicies: the same for policies with large events.
func TestPagesOfLargePolicies(t *testing.T) {
	t.Parallel()
	for what, large := range map[string]string{
		"policies": `update policies set definition = jsonb_set(definition, '{action,extraParams,x}', to_jsonb(repeat('x', $1)))`,
		"events": `insert into policy_events (policy_id, type, details)
select id, 'variableSet', jsonb_build_object('x', repeat('x', $1)) from policies`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var ids []string
			for i := range 5 {
				ids = append(ids, w.policy(t, usage(fmt.Sprintf("elsewhere-%d", i))).ID)
			}
			_, err := w.DB.Exec(t.Context(), large, 900<<10)
			require.NoError(t, err)
			pages := w.pages(t, polman+"/policies")
			require.Equal(t, ids, flat(pages))
			require.Len(t, pages, 3, "two of 900 KiB are within 2 MiB")
			for _, p := range decode[[]policy](t, w.viewer.get(t, polman+"/policies")) {
				require.Subset(t, p.happened(), []string{"created", "rendered", "activated"}, "none is without its events")
			}
			require.Contains(t, string(w.viewer.get(t, "/polman/status").body), "These are the oldest 2.")
		})
	}
}

// TestAPageStaysWhereItIsWhileThingsAreAdded: a cursor refers to the last row and is not an offset.
func TestAPageStaysWhereItIsWhileThingsAreAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.submit(t, hubShop), w.submit(t, hubShop)
	a := w.viewer.get(t, "/jobmanager/groups?limit=1")
	next := linkNext.FindStringSubmatch(a.header.Get("Link"))[1]
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+first.ID, "").is(t, http.StatusOK)
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+first.ID, "").is(t, http.StatusOK)
	third := w.submit(t, hubShop)
	require.Equal(t, []string{second.ID, third.ID}, flat(w.pages(t, next)))
}

// TestListings_leaveOutWhatIsOver: deleted applications and removals that have ended. A removal of a former copy is listed
// until then, and a name means only an application that is left.
func TestListings_leaveOutWhatIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jobs := func() []string { return flat(w.pages(t, "/jobmanager/jobs")) }
	g, j := w.running(t, freeShop)
	w.drain(j.Targets.Cluster + "/" + j.Targets.Node)
	var former job
	for _, open := range w.executable(t, w.hub, hubAgent, "ocm") {
		if open.Cleans == j.ID {
			former = open
		}
	}
	require.ElementsMatch(t, []string{j.ID, former.ID}, jobs())
	w.finish(t, w.hub, hubAgent, former)
	require.Equal(t, []string{j.ID}, jobs())
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))

	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusAccepted)
	require.Equal(t, []string{j.ID}, jobs(), "it is to be removed")
	w.finish(t, w.hub, hubAgent, w.job(t, j.ID))
	require.Empty(t, jobs())
	require.Empty(t, flat(w.pages(t, "/jobmanager/groups")))

	next := w.submit(t, freeShop)
	a := w.operator.call(t, http.MethodPut, "/jobmanager/groups", freeShop+"description: the next one\n").is(t, http.StatusOK)
	require.Equal(t, next.ID, decode[group](t, a).ID)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, run := w.running(t, hubShop)
	waiting := w.submit(t, strings.NewReplacer("name: shop", "name: far", "hub-1", "hub-9").Replace(hubShop)).Jobs[0]
	edge := w.submit(t, strings.NewReplacer("name: shop", "name: rim", "cluster_name: hub", "cluster_name: edge",
		"hub-1", "edge-1",
		"ocm", "nuvla").Replace(hubShop)).Jobs[0]
	w.claim(t, w.edge, edgeAgent, edge)
	for query, want := range map[string][]string{
		"":                                      {run.ID, waiting.ID, edge.ID},
		"state=Finished":                        {run.ID},
		"state=Created":                         {waiting.ID},
		"state=Progressing":                     {edge.ID},
		"state=progressing&orchestrator=NUVLA":  {edge.ID},
		"state=Degraded":                        nil,
		"orchestrator=ocm":                      {run.ID},
		"orchestrator=nuvla":                    {edge.ID},
		"owner=agent-hub":                       {run.ID},
		"owner=nobody":                          nil,
		"app=shop":                              {run.ID},
		"app=" + g.ID:                           {run.ID},
		"app=" + g.ID + "," + edge.GroupID:      {run.ID, edge.ID},
		"app=" + edge.GroupID + ",shop," + g.ID: {run.ID, edge.ID}, // of several only ids are meant
		"app=shop,far":                          nil,
		"app=no-such-app":                       nil,
		"state=Finished&orchestrator=nuvla":     nil,
		"state=Progressing&owner=agent-edge":    {edge.ID},
		"app=" + url.QueryEscape("' or 1=1 --"): nil,
		"owner=%25":                             nil,
	} {
		t.Run(query, func(t *testing.T) {
			require.Equal(t, want, flat(w.pages(t, "/jobmanager/jobs?"+query)))
			ofGroup := map[string]string{run.ID: g.ID, waiting.ID: waiting.GroupID, edge.ID: edge.GroupID}
			var groups []string
			for _, id := range want {
				groups = append(groups, ofGroup[id])
			}
			require.Equal(t, groups, flat(w.pages(t, "/jobmanager/groups?"+query)))
		})
	}
	for query, want := range map[string][]string{
		"health=Healthy":                  {g.ID},
		"health=progressing":              {waiting.GroupID, edge.GroupID},
		"health=Degraded":                 nil,
		"limit=1&health=Progressing":      {waiting.GroupID, edge.GroupID},
		"health=Unknown":                  nil,
		"health=Progressing&app=rim":      {edge.GroupID},
		"health=Healthy&orchestrator=ocm": {g.ID},
	} {
		require.Equal(t, want, flat(w.pages(t, "/jobmanager/groups?"+query)), query)
	}
	w.viewer.call(t, http.MethodGet, "/jobmanager/groups?health=fine", "").refused(t, http.StatusBadRequest)
	w.viewer.call(t, http.MethodGet, "/jobmanager/jobs?health=Healthy", "").refused(t, http.StatusBadRequest)
	w.silence(t, "hub-1", 2*time.Minute)
	require.Equal(t, []string{g.ID}, flat(w.pages(t, "/jobmanager/groups?health=Unknown")))
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+edge.GroupID, "").is(t, http.StatusOK)
	require.Equal(t, []string{waiting.GroupID}, flat(w.pages(t, "/jobmanager/groups?health=Progressing")))
	require.Equal(t, "[]\n", string(w.viewer.get(t, "/jobmanager/jobs?app=none").body), "an empty list is a list")
	require.Equal(t, "[]\n", string(w.viewer.get(t, "/jobmanager/groups?app=none").body))
	require.Equal(t, "[]\n", string(w.viewer.get(t, "/jobmanager/history?after=999999").body))
}

func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g, _ := w.running(t, hubShop)
	w.running(t, hubShop)
	type entry struct {
		ID            int64
		ApplicationID string
		Event         string
	}
	all := decode[[]entry](t, w.viewer.get(t, "/jobmanager/history?app="+g.ID))
	var events []string
	for i, e := range all {
		require.Equal(t, g.ID, e.ApplicationID)
		require.True(t, i == 0 || all[i-1].ID < e.ID)
		events = append(events, e.Event)
	}
	require.Subset(
		t,
		events,
		[]string{
			"application.submitted",
			"job.submitted",
			"application.placed",
			"job.placed",
			"job.promoted",
			"job.finished",
		},
	)
	newest := w.viewer.get(t, "/jobmanager/history?limit=2&app="+g.ID)
	require.Equal(t, all[len(all)-2:], decode[[]entry](t, newest), "without a beginning the newest are meant")
	earlier := fmt.Sprintf("/jobmanager/history?app=%s&before=%d&limit=2", g.ID, all[len(all)-2].ID)
	require.Equal(t, "<"+earlier+`>; rel="prev"`, newest.header.Get("Link"))
	require.Equal(t, all[len(all)-4:len(all)-2], decode[[]entry](t, w.viewer.get(t, earlier)))
	require.Empty(t, w.viewer.get(t, "/jobmanager/history?limit=1000&app="+g.ID).header.Get("Link"), "there is nothing before")
	after := decode[[]entry](
		t,
		w.viewer.get(t, fmt.Sprintf("/jobmanager/history?after=%d&limit=3&app=%s", all[0].ID, g.ID)),
	)
	require.Equal(t, all[1:4], after)
	placed := decode[[]entry](
		t,
		w.viewer.get(t, "/jobmanager/history?event=application.placed,job.placed&app="+g.ID),
	)
	require.Equal(t, []string{"job.placed", "application.placed"}, []string{placed[0].Event, placed[1].Event})
	require.Len(t, placed, 2)
	type withData struct{ Data json.RawMessage }
	whole := w.viewer.get(t, "/jobmanager/history?event=application.placed&app="+g.ID)
	require.NotEmpty(t, decode[[]withData](t, whole)[0].Data)
	light := w.viewer.get(t, "/jobmanager/history?event=application.placed&data=false&app="+g.ID)
	require.Empty(t, decode[[]withData](t, light)[0].Data)
	require.Equal(t, decode[[]entry](t, whole), decode[[]entry](t, light))
	w.viewer.call(t, http.MethodGet, "/jobmanager/history?data=some", "").refused(t, http.StatusBadRequest)
}
