package cli_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/history"
)

// TestArchivedEvents lets a month pass: the entries are then in the listing of the archive instead of the usual one.
func TestArchivedEvents(t *testing.T) {
	t.Parallel()
	h := newHostWith(t, map[string]string{"OBJECTS_URL": "file://" + t.TempDir()})
	require.Contains(t, h.run("events", "--archived").err, "No events")
	app := uuid.New()
	_, err := h.sys.DB.Exec(t.Context(), `update history set at = $1`, time.Now().AddDate(0, 0, -40)) // the first topology
	require.NoError(t, err)
	_, err = h.sys.DB.Exec(t.Context(), `insert into history (at, application_id, event, message)
values ($1, $2, 'application.submitted', 'long ago'), ($1, null, 'topology.changed', 'too'),
	(now(), $2, 'application.deleted', 'today')`,
		time.Now().AddDate(0, 0, -31), app)
	require.NoError(t, err)
	var before, old, young, of []history.Entry
	read := func(into *[]history.Entry, args ...string) {
		require.NoError(t, json.Unmarshal([]byte(h.ok(append([]string{"events", "-o", "json"}, args...)...)), into))
	}
	read(&before)
	require.NoError(t, h.sys.Broker.TickOne(t.Context(), "jobmanager-archive"))
	require.NoError(t, h.sys.Broker.TickOne(t.Context(), "jobmanager-archive"))

	read(&old, "--archived")
	read(&young)
	require.Equal(t, before, append(old, young...), "each line is here or there, as it was")
	require.Len(t, young, 1)
	read(&of, "--archived", "--app", app.String())
	require.Equal(t, old[1:2], of, "the application itself is long gone")
	require.Contains(t, h.ok("events", "--archived", "--tail", "1"), "topology.changed")
	require.NotContains(t, h.ok("events", "--archived", "--tail", "1"), "long ago")
	require.Equal(t, 2, h.run("events", "--archived", "-w").code)
}

// TestEventsOfAnApplicationThatIsGone: its entries are kept for a while, and listed by its id.
func TestEventsOfAnApplicationThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := uuid.New()
	_, err := h.sys.DB.Exec(t.Context(), `insert into history (application_id, event, message)
values ($1, 'application.submitted', 'at first'), ($1, 'application.deleted', 'at last'), ($2, 'job.placed', 'elsewhere')`,
		app, uuid.New())
	require.NoError(t, err)
	shown := h.ok("events", "--app", strings.ToUpper(app.String()))
	require.Contains(t, shown, "at first")
	require.Contains(t, shown, "at last")
	require.NotContains(t, shown, "elsewhere")

	var asked int
	h.onPath = func(r *http.Request) int {
		if r.URL.Path == "/jobmanager/groups" {
			asked++
		}
		return 0
	}
	require.Contains(t, h.ok("events"), "elsewhere")
	require.Equal(t, 1, asked, "for the names of both")
	h.onPath = nil

	nobody := h.run("events", "--app", uuid.NewString())
	require.Equal(t, 1, nobody.code)
	require.Contains(t, nobody.err, "there is no application")
}

func TestWithoutAnArchive(t *testing.T) {
	t.Parallel()
	r := newHost(t).run("events", "--archived")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "there is no archive here")
}
