package contracts_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/triggers"
)

// subscribed is a world whose store knows the Triggers.
func subscribed(t testing.TB) (w *world, rows []triggers.Row) {
	t.Helper()
	w = newWorld(t)
	table, err := triggers.Table(triggers.Files)
	require.NoError(t, err)
	var list []store.Subscription
	for _, row := range table {
		if row.Function == "aggregator-tick" { // SaveTopology takes its part
			continue
		}
		list = append(list, store.Subscriptions(row.Function, []map[string]string{row.Attributes})...)
		rows = append(rows, row)
	}
	changed, err := w.DB.Subscribe(t.Context(), list)
	require.NoError(t, err)
	require.True(t, changed)
	return w, rows
}

// losing makes the Broker drop each event of the type once, after it has accepted it.
func (w *world) losing(typ string) {
	seen := map[string]bool{}
	w.Broker.Lose(func(e cloudevents.Event) bool {
		first := e.Type() == typ && !seen[e.ID()]
		seen[e.ID()] = true
		return first
	})
}

// waiting are the types of the events in the outbox.
func (w *world) waiting(t testing.TB) map[string]int {
	t.Helper()
	rows, err := w.DB.Query(t.Context(), `select event ->> 'type' from outbox`)
	require.NoError(t, err)
	defer rows.Close()
	found := map[string]int{}
	for rows.Next() {
		var typ string
		require.NoError(t, rows.Scan(&typ))
		found[typ]++
	}
	return found
}

// recovers makes time pass until whatever was lost has been sent again.
func (w *world) recovers(t testing.TB) {
	t.Helper()
	for range 20 { // what was lost may have led to more
		if len(w.waiting(t)) == 0 {
			return
		}
		_, err := w.DB.Exec(t.Context(), `update outbox set created_at = created_at - $1::interval, tried_at = tried_at - $1::interval`,
			100*store.LeftFor)
		require.NoError(t, err)
		require.NoError(t, w.Broker.TickOne(t.Context(), "outbox-sweep"))
		require.NoError(t, w.Broker.Drain(t.Context()))
	}
	require.Empty(t, w.waiting(t), "what was lost comes again, and all take it")
}

// TestEachKindOfEventReachesAllItsConsumers although the Broker drops it: every function that a Trigger names says what it
// has taken, whatever kind of function it is, and no event waits for it in vain.
func TestEachKindOfEventReachesAllItsConsumers(t *testing.T) {
	t.Parallel()
	w, rows := subscribed(t)
	w.recovers(t) // from storing the infrastructure
	for _, row := range rows {
		typ := row.Attributes["type"]
		id := w.emitted(t, row.Attributes)
		w.Broker.Lose(nil)
		w.recovers(t)
		var taken int
		const by = `select count(*) from inbox where id = $1 and consumer = $2`
		require.NoError(t, w.DB.QueryRow(t.Context(), by, id, row.Function).Scan(&taken))
		require.Equal(t, 1, taken, "%s has taken %s", row.Function, typ)
	}
}

// emitted stores an event of that kind which the Broker accepts and loses.
func (w *world) emitted(t testing.TB, attributes map[string]string) (id string) {
	t.Helper()
	w.Broker.Lose(func(cloudevents.Event) bool { return true })
	e := newEvent(t, attributes["type"])
	e.SetSource("/littoral") // the test itself
	for name, value := range attributes {
		switch name {
		case "type":
		case "source":
			e.SetSource(value)
		default:
			e.SetExtension(name, value)
		}
	}
	body, err := e.MarshalJSON()
	require.NoError(t, err)
	_, err = w.DB.Exec(t.Context(), `insert into outbox (id, event) values ($1, $2)`, uuid.MustParse(e.ID()), body)
	require.NoError(t, err)
	n, err := w.DB.Sweep(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n, "the Broker said that it has %s", e.Type())
	return e.ID()
}

// life is what there is of an application at each step from its submission to its deletion, through a violated policy.
func (w *world) life(t testing.TB) (seen []string) {
	t.Helper()
	agent := w.Agent("ocm", hubAgent)
	shop := loadedShop("redeploy")
	g := decode[group](t, w.operator.call(t, http.MethodPost, "/jobmanager/groups", shop).is(t, http.StatusCreated))
	see := func(step string) {
		w.recovers(t)
		for agent.Work() > 0 {
			w.recovers(t)
		}
		now := w.group(t, g.ID)
		line := fmt.Sprintf("%s: %s %s", step, now.Desired, now.Status)
		for _, j := range now.Jobs {
			line += fmt.Sprintf(" %v", j.stands())
		}
		for _, p := range w.policiesOf(t, g.ID) {
			line += " policy " + p.Status.Phase
		}
		seen = append(seen, line)
	}
	see("submitted")
	p := w.policiesOf(t, g.ID)["load"]
	start := time.Now().Add(-time.Minute)
	for _, status := range []string{"firing", "resolved"} {
		w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
		see(status)
	}
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, strings.Replace(shop, "red", "blue", 1)).is(t, http.StatusOK)
	see("updated")
	for _, call := range []string{"stop", "start"} {
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+call+"/"+g.ID, "").is(t, http.StatusOK)
		see(call)
	}
	w.drain("hub/" + w.group(t, g.ID).Jobs[0].Targets.Node)
	see("drained")
	w.operator.call(t, http.MethodDelete, "/jobmanager/groups/"+g.ID+"?stop=true", "").is(t, http.StatusAccepted)
	w.recovers(t)
	for agent.Work() > 0 {
		w.recovers(t)
	}
	var left int
	const unfinished = `select count(*) from jobs where state <> 'Finished'`
	require.NoError(t, w.DB.QueryRow(t.Context(), unfinished).Scan(&left))
	return append(seen, fmt.Sprintf("deleted: %d jobs left", left))
}

// TestWhatTheBrokerLoses: each type of event is dropped in turn after the Broker has accepted it. In the end everything is
// as if none had been, and no more jobs were made.
func TestWhatTheBrokerLoses(t *testing.T) {
	t.Parallel()
	w, _ := subscribed(t)
	want := w.life(t)
	t.Log(strings.Join(want, "\n"))
	types := map[string]bool{}
	for _, e := range w.Broker.Accepted() {
		types[e.Type()] = len(w.Broker.Consumers(e)) > 0 || types[e.Type()]
	}
	maps.DeleteFunc(types, func(_ string, taken bool) bool { return !taken })
	for _, typ := range []string{
		events.ApplicationSubmitted, events.ApplicationDisplaced, events.ApplicationDeleted, events.JobReady, events.AlertReceived,
		events.PolicyChanged, events.RemediationRequested,
	} {
		require.Contains(t, types, typ, "it belongs to the life of an application")
	}
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			w, _ := subscribed(t)
			w.losing(typ)
			require.Equal(t, want, w.life(t))
			w.legal(t)
		})
	}
}
