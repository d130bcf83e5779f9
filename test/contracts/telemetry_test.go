package contracts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/files"
	"github.com/littoral-project/littoral/test/inprocess"
)

// busKey signs the tokens of applications.
const busKey = "a key of these tests"

// owner returns a client of a person, by name.
func (w *world) owner(t *testing.T, name string, roles ...string) client {
	t.Helper()
	return client{w.URL, w.Issuer.TokenWith(t, inprocess.Claims{"sub": name, "roles": append(roles, "operator")})}
}

// named is a descriptor of an application with that name.
func named(name string) string { return strings.Replace(hubShop, "name: shop", "name: "+name, 1) }

// say stores lines of an application.
func say(t *testing.T, app string, lines ...string) {
	t.Helper()
	var entries []logs.Entry
	for i, line := range lines {
		entries = append(entries, logs.Entry{
			At: time.Now().Add(time.Duration(i-len(lines)) * time.Millisecond), Application: app, Component: "web", Pod: "web-1", Line: line,
		})
	}
	require.NoError(t, files.New(files.Options{Dir: given["LOGS_DIR"]}).Write(t.Context(), entries))
}

// TestAnApplicationShowsItsLogsToItsOwn: over random owners, everybody sees what is his or hers, and nothing else.
func TestAnApplicationShowsItsLogsToItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := bus.Tokens{Key: busKey}
	owners := map[string]string{} // by application
	clients := map[string]client{}
	for n := range 4 {
		name := fmt.Sprintf("person-%d", n)
		clients[name] = w.owner(t, name)
	}
	for n := range 8 {
		name := fmt.Sprintf("person-%d", rand.IntN(4))
		a := clients[name].call(t, http.MethodPost, "/jobmanager/groups", named(fmt.Sprintf("shop-%d", n)))
		app := decode[struct{ ID string }](t, a.is(t, http.StatusCreated)).ID
		owners[app] = name
		say(t, app, "of "+app)
	}
	read := func(c client, app string) *answer { return c.call(t, http.MethodGet, "/telemetry/logs?app="+app, "") }
	for app, owner := range owners {
		for name, c := range clients {
			if a := read(c, app); name == owner {
				require.Equal(t, "of "+app, decode[api.Logs](t, a.is(t, http.StatusOK)).Lines[0].Line)
			} else {
				a.refused(t, http.StatusForbidden)
				require.NotContains(t, string(a.body), "of "+app)
			}
		}
		read(w.as("admin"), app).is(t, http.StatusOK)
		read(w.viewer, app).refused(t, http.StatusForbidden)
		for other := range owners {
			itself := client{w.URL, tokens.For(other)}
			if a := read(itself, app); app == other {
				require.Len(t, decode[api.Logs](t, a.is(t, http.StatusOK)).Lines, 1)
				require.Len(t, decode[api.Logs](t, itself.get(t, "/telemetry/logs").is(t, http.StatusOK)).Lines, 1)
			} else {
				a.refused(t, http.StatusForbidden)
			}
		}
	}
	w.as("admin").call(t, http.MethodGet, "/telemetry/logs?app=0198c2ab-1234-7000-8000-0000000000e1", "").refused(t, http.StatusNotFound)
	for _, bad := range []string{"", "?app=shop", "?app=0198c2ab-1234-7000-8000-0000000000e1&since=soon", "?tail=0", "?follow=perhaps"} {
		w.as("admin").call(t, http.MethodGet, "/telemetry/logs"+bad, "").refused(t, http.StatusBadRequest)
	}
}

// TestLogsAreFollowed: the last lines, then those that come, with a rule where a component was placed; a stream goes on where
// a former one ended.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop)
	say(t, g.ID, "first", "second")
	c := &api.Client{Base: w.URL, Token: api.StaticToken(w.Token("admin"))}
	enough := errors.New("enough")
	follow := func(last string, until string, during map[string]func()) (events []api.LogEvent, end string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		end, err := c.FollowLogs(ctx, api.LogsQuery{App: g.ID}, last, func(e api.LogEvent) error {
			events = append(events, e)
			if e.Line == nil {
				return nil
			}
			if act := during[e.Line.Line]; act != nil {
				act()
			}
			if e.Line.Line == until {
				return enough
			}
			return nil
		})
		require.ErrorIs(t, err, enough)
		return events, end
	}
	events, last := follow("", "third", map[string]func(){"second": func() { say(t, g.ID, "third") }})
	var lines []string
	moves := 0
	for _, e := range events {
		if e.Move != nil {
			moves++
			require.NotEmpty(t, e.Move.Message)
			continue
		}
		lines = append(lines, e.Line.Line)
	}
	require.Equal(t, []string{"first", "second", "third"}, lines)
	require.NotZero(t, moves, "its components were placed")
	say(t, g.ID, "fourth")
	again, _ := follow(last, "fourth", nil)
	for _, e := range again {
		if e.Line != nil {
			require.Contains(t, []string{"third", "fourth"}, e.Line.Line)
		}
	}
}

// TestSeriesAreConfined: a question about anything is answered by what is the caller's own.
func TestSeriesAreConfined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := w.owner(t, "somebody with series")
	a := mine.call(t, http.MethodPost, "/jobmanager/groups", named("mine"))
	app := decode[struct{ ID string }](t, a.is(t, http.StatusCreated)).ID
	ask := func(c client, query url.Values) *answer {
		return c.call(t, http.MethodGet, "/telemetry/series?"+query.Encode(), "")
	}
	of := func(query string) url.Values { return url.Values{"query": {query}} }
	own := decode[api.Courses](t, ask(mine, of(`sum(tlum_workload_info)`)).is(t, http.StatusOK))
	require.Equal(t, `sum(tlum_workload_info{icos_app_instance="`+app+`"})`, own.Query)
	none := decode[api.Courses](t, ask(w.viewer, of(`tlum_workload_info or {icos_app_instance=~".+"}`)).is(t, http.StatusOK))
	require.Empty(t, none.Series)
	nodes := decode[api.Courses](t, ask(w.viewer, of(`up`)).is(t, http.StatusOK))
	require.NotEmpty(t, nodes.Series)
	require.NotEmpty(t, nodes.Series[0].Points)
	all := decode[api.Courses](t, ask(w.as("admin"), of(`tlum_workload_info`)).is(t, http.StatusOK))
	require.Equal(t, `tlum_workload_info`, all.Query)
	used := decode[api.Courses](t, ask(mine, url.Values{"use": {"cpu"}, "app": {app}}).is(t, http.StatusOK))
	require.Contains(t, used.Query, `tlum_workload_info{icos_app_instance="`+app+`"}`)
	ask(w.viewer, url.Values{"query": {"up"}, "app": {app}}).refused(t, http.StatusForbidden)
	for _, bad := range []url.Values{{}, {"query": {"up"}, "use": {"cpu"}}, {"use": {"disk"}}, {"query": {"up"}, "step": {"1ms"}}, {"query": {"up"}, "since": {"1s"}, "until": {"1h"}}, {"query": {"up"}, "since": {"8760h"}, "step": {"1s"}}} {
		ask(mine, bad).refused(t, http.StatusBadRequest)
	}
	for _, bad := range []string{"up +", `"text"`, "up[5m]"} {
		require.Equal(t, []string{"query"}, ask(mine, of(bad)).fields(t))
	}
	itself := client{w.URL, bus.Tokens{Key: busKey}.For(app)}
	require.Equal(t, own.Query, decode[api.Courses](t, ask(itself, of(`sum(tlum_workload_info)`)).is(t, http.StatusOK)).Query)
	var raw map[string]any
	require.NoError(t, json.Unmarshal(ask(mine, of("1/0")).body, &raw), "what is no number is null")
}
