package walks_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/backup"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/kubeapi"
	"github.com/littoral-project/littoral/triggers"
)

var restores = flag.Int("restores", 3, "how many walks to take back to a backup")

// TestWalksGoBackToABackup: the database is restored to how it was at a random moment of a walk, while clusters, rules
// and the Broker are where they were led since. Then all that the backup has reconciles with what runs, and what was
// made since goes on running.
func TestWalksGoBackToABackup(t *testing.T) {
	for n := range *restores {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			w.subscribe()
			at := w.random.IntN(*steps)
			for range at {
				w.step()
			}
			b := w.backUp()
			for range w.random.IntN(*steps) {
				w.step()
			}
			w.restore(b)
			for range *steps - at {
				w.step()
			}
			w.rest()
			w.check()
		})
	}
}

// subscribe makes events stay in the outbox until their consumers have taken them, so that a backup has those on their way and what the
// Broker loses is published again.
func (w *world) subscribe() {
	w.t.Helper()
	table, err := triggers.Table(triggers.Files)
	require.NoError(w.t, err)
	var list []store.Subscription
	for _, row := range table {
		if !strings.HasPrefix(row.Function, "aggregator-") { // see takes its part
			list = append(list, store.Subscriptions(row.Function, []map[string]string{row.Attributes})...)
		}
	}
	_, err = w.DB.Subscribe(w.t.Context(), list)
	require.NoError(w.t, err)
}

// backedUp is a backup, and what had been asked for when it was made.
type backedUp struct {
	file []byte
	apps []app
}

func (w *world) backUp() backedUp {
	w.t.Helper()
	w.log("a backup is made")
	conn, err := pgx.Connect(w.t.Context(), w.DB.Config().ConnString())
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, conn.Close(w.t.Context())) }()
	var file bytes.Buffer
	_, err = backup.Write(w.t.Context(), conn, nil, &file)
	require.NoError(w.t, err)
	b := backedUp{file: file.Bytes()}
	for _, a := range w.apps {
		kept := *a
		kept.components = slices.Clone(a.components)
		b.apps = append(b.apps, kept)
	}
	return b
}

// restore also sets back what is expected: nobody knows of what was asked for since.
func (w *world) restore(b backedUp) {
	w.t.Helper()
	w.log("the backup is restored")
	done, err := backup.Restore(w.t.Context(), bytes.NewReader(b.file), int64(len(b.file)), backup.Options{
		DatabaseURL: w.DB.Config().ConnString(), Managers: "deploymentmanager-%", Patience: time.Minute,
	})
	require.NoError(w.t, err)
	forgotten, err := store.Collect(w.t.Context(), w.DB, "read jobs", pgx.RowTo[string],
		`select id::text from `+done.Former+`.jobs except select id::text from jobs`)
	require.NoError(w.t, err)
	w.past = &past{forgotten: forgotten, atAgents: maps.Clone(w.agent.copies)}
	w.past.objects = w.objectsOf(forgotten)
	w.apps = nil
	for _, a := range b.apps {
		w.apps = append(w.apps, &a)
	}
	w.see() // the aggregator says where agents are
}

// past is what is in clusters since before a restore, and stays there.
type past struct {
	forgotten []string          // jobs that were made after the backup
	objects   []string          // of these jobs
	atAgents  map[string]string // copies of agents that poll, which nothing but these agents can compare with the database
}

// of reports whether the copy is of a job that the database does not know since it was restored.
func (p *past) of(copied string) bool {
	return slices.ContainsFunc(p.forgotten, func(id string) bool { return strings.Contains(copied, id) })
}

// objectsOf are the objects of the jobs, where we make them.
func (w *world) objectsOf(jobs []string) []string {
	w.t.Helper()
	var all []string
	for _, s := range []*kubeapi.Server{w.hub, w.three} {
		for _, path := range slices.Concat(s.Paths("/manifestworks/"), s.Paths("/deployments/")) {
			if o := s.Get(path); slices.Contains(jobs, o.GetLabels()[orchestrator.LabelJob]) && o.GetDeletionTimestamp() == nil {
				all = append(all, path)
			}
		}
	}
	return all
}

// except leaves out of what runs whatever stays there since before the restore, and requires that this does.
func (p *past) except(w *world, wanted map[string]string) map[string]string {
	w.t.Helper()
	require.Subset(w.t, w.objectsOf(p.forgotten), p.objects, "what nobody knows any more is left alone")
	known, err := store.Collect(w.t.Context(), w.DB, "read jobs", pgx.RowTo[string], `select resource_uuid from jobs`)
	require.NoError(w.t, err)
	for resource := range p.atAgents { // a person removes it
		if !slices.Contains(known, resource) {
			delete(w.agent.copies, resource)
		}
	}
	runs := w.copies()
	maps.DeleteFunc(runs, func(at, _ string) bool {
		_, asked := wanted[at]
		return !asked && p.of(at)
	})
	return runs
}
