package contracts_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
)

// TestNoCallCrossesTenants: calls at random, by people, by applications with their own tokens and by forgers, for logs, series and
// values of the bus, of applications at random. Whatever is answered is of the caller's own. LITTORAL_TENANT_CALLS says how many there
// are; "make security" makes ten thousand.
func TestNoCallCrossesTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := 500
	if text := os.Getenv("LITTORAL_TENANT_CALLS"); text != "" {
		var err error
		calls, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	const seed = 39
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a test that can be repeated
	type caller struct {
		client

		name string
		own  []string // applications
		bus  bool     // may read values of all: people work for the site
	}
	var people, callers []caller
	var apps []string
	secret := func(app string) string { return "the secret of " + app }
	for n := range 4 {
		name := fmt.Sprintf("tenant-%d", n)
		people = append(people, caller{client: w.owner(t, name), name: name, bus: true})
	}
	for n := range 10 {
		p := &people[n%3] // the fourth has none
		a := p.call(t, http.MethodPost, "/jobmanager/groups", named(fmt.Sprintf("shop-%d", n)))
		app := decode[struct{ ID string }](t, a.is(t, http.StatusCreated)).ID
		p.own, apps = append(p.own, app), append(apps, app)
		say(t, app, secret(app))
		w.operator.call(t, http.MethodPut, "/bus/"+app+"/state", secret(app), "Content-Type", "text/plain").is(t, http.StatusOK)
	}
	callers = append(callers, people...)
	tokens, forged := bus.Tokens{Key: busKey}, bus.Tokens{Key: "a key of somebody else"}
	for _, app := range apps {
		own := client{w.URL, tokens.For(app)}.call(t, http.MethodGet, "/bus/"+app+"/state", "")
		require.Contains(t, string(own.is(t, http.StatusOK).body), secret(app), "a value can be recognized")
		callers = append(callers, caller{client{w.URL, tokens.For(app)}, "application " + app, []string{app}, false},
			caller{client{w.URL, forged.For(app)}, "forger of " + app, nil, false},
			caller{client{w.URL, strings.Replace(tokens.For(apps[0]), tokens.For(apps[0])[4:40], tokens.For(app)[4:40], 1)}, "altered " + app, nil, false})
	}
	callers = append(callers, caller{client: client{w.URL, tokens.For("*")}, name: "application *"},
		caller{client: client{w.URL, tokens.For(apps[0] + "/../" + apps[1])}, name: "application of a path"},
		caller{client: w.viewer, name: "viewer", bus: true}, caller{client: client{w.URL, ""}, name: "nobody"})
	// The altered token of the first application is its own.
	for i := range callers {
		if callers[i].name == "altered "+apps[0] {
			callers[i].own = apps[:1]
		}
	}
	queries := []string{
		`tlum_workload_info`, `sum by (icos_app_instance) (tlum_workload_info)`, `{icos_app_instance="%s"}`, `{icos_app_instance=~"%s|.+"}`,
		`tlum_workload_info{icos_app_instance!="x"} or {__name__=~".+",icos_app_instance=~".*"}`, `up and on() vector(1) or tlum_workload_info{icos_app_instance="%s"}`,
		`label_replace(tlum_workload_info, "icos_app_instance", "%s", "", "")`, `max_over_time(tlum_workload_info{icos_app_instance="%s"}[5m])`,
	}
	keys := []string{"%s/state", "%s/**", "**", "*/state", "%s/*", "*/**", "%s", "%s/state/**", "%2A/state", "%s/../*/state"}
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	about := func(text, app string) string { return strings.ReplaceAll(text, "%s", app) }
	answered, refused := 0, 0
	for n := range calls {
		c, app := callers[random.IntN(len(callers))], apps[random.IntN(len(apps))]
		var path string
		onBus, series := false, false
		switch random.IntN(6) {
		case 0:
			path = "/telemetry/logs?app=" + app
		case 1:
			path = "/telemetry/logs?tail=5&app=" + url.QueryEscape(app+","+apps[random.IntN(len(apps))])
		case 2:
			path, series = "/telemetry/series?"+url.Values{"query": {about(queries[random.IntN(len(queries))], app)}}.Encode(), true
		case 3:
			path, series = "/telemetry/series?"+url.Values{"use": {"cpu"}, "app": {app}}.Encode(), true
		case 4:
			path = "/telemetry/logs"
		default:
			path, onBus = "/bus/"+about(keys[random.IntN(len(keys))], app), true
		}
		a := c.call(t, http.MethodGet, path, "")
		if a.status != http.StatusOK {
			refused++
			for _, other := range apps {
				require.NotContains(t, string(a.body), secret(other), "call %d of %s: %s", n, c.name, path)
			}
			continue
		}
		answered++
		for _, other := range apps {
			if !slices.Contains(c.own, other) && !(onBus && c.bus) {
				require.NotContains(t, string(a.body), secret(other), "call %d of %s: %s", n, c.name, path)
			}
		}
		if series {
			var courses struct {
				Series []struct{ Labels map[string]string }
			}
			require.NoError(t, json.Unmarshal(a.body, &courses))
			for _, one := range courses.Series {
				for label, value := range one.Labels {
					if label == "icos_app_instance" && id.MatchString(value) {
						require.Contains(t, c.own, value, "call %d of %s: %s", n, c.name, path)
					}
				}
			}
		}
	}
	require.Positive(t, answered)
	require.Positive(t, refused)
	t.Logf("%d calls, %d answered, %d refused", calls, answered, refused)
}
