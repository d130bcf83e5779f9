package contracts_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// TestOperatorsAndAgentsAtOnce: two operators change, stop and start one application, a policy manager reallocates it,
// and two agents take its jobs and report on them, all concurrently. Late requests are refused, and the state stays
// consistent. One agent carries out the job as it reads it after taking it; the other one is slow, carries out the job
// as it was listed, and sends that back, like agents of ICOS.
func TestOperatorsAndAgentsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, freeShop)
	const rounds = 25
	var all sync.WaitGroup
	var failures sync.Map
	allowed := func(a *answer, statuses ...int) {
		for _, s := range statuses {
			if a.status == s {
				return
			}
		}
		failures.Store(fmt.Sprintf("%s: %d %s", a.what, a.status, a.body), true)
	}
	for n := range 2 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for i := range rounds {
				switch random.IntN(4) {
				case 0:
					allowed(w.operator.call(t, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, ""), 200)
				case 1:
					allowed(w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, ""), 200)
				case 2:
					changed := strings.Replace(freeShop, "red", fmt.Sprint("colour-", n, "-", i), 1)
					allowed(w.operator.call(t, http.MethodPut, "/jobmanager/groups/"+g.ID, changed), 200)
				default:
					allowed(w.operator.send(t, http.MethodPost, "/jobmanager/policies/incompliance", body{
						"policyName": "p", "remediation": []string{"reallocate", "scale-up"}[i%2], "subject": body{"appInstance": g.ID},
					}), 200, 404, 409)
				}
			}
		})
	}
	var runs sync.Map // job and owner -> manifests
	for n := range 2 {
		all.Go(func() {
			agent := fmt.Sprint("late-", n) // their cluster is unknown, so both are offered all jobs
			as := w.agent(t, agent)
			var listed []job
			for range rounds * 2 {
				offered := listed // one agent is so slow that it works with the list of an earlier poll
				a := as.call(t, http.MethodGet, "/jobmanager/jobs/executable/ocm/"+agent, "")
				allowed(a, 200)
				if listed = decode[[]job](t, a); n == 0 {
					offered = listed
				}
				for _, j := range offered {
					a := as.send(t, http.MethodPatch, "/jobmanager/jobs/promote/"+j.ID, body{"owner_id": agent})
					allowed(a, 204, 404, 409)
					if a.status != http.StatusNoContent {
						continue
					}
					if n == 0 {
						j = w.job(t, j.ID)
					}
					for _, state := range []string{"Progressing", "Finished"} {
						said := report(agent, j, state, "Available")
						said["manifests"] = j.Manifests
						a := as.send(t, http.MethodPut, "/jobmanager/jobs", said)
						allowed(a, 200, 409)
						if a.status != http.StatusOK {
							continue
						}
						if now := decode[job](t, a); now.State == "Finished" && (now.Type == create || now.SubType == "replace") {
							runs.Store(j.ID+agent, j.Manifests)
							if !slices.Equal(now.Manifests, j.Manifests) {
								failures.Store("a job is finished with content that it does not have any more", true)
							}
						}
					}
				}
			}
		})
	}
	all.Wait()
	failures.Range(func(what, _ any) bool { t.Error(what); return true })
	require.Empty(t, w.Broker.Failures())
	w.legal(t)
	w.oneOwner(t)

	// When the operators have stopped, the agents bring the application to run. The slow agent may have taken a job
	// from an outdated list. Its report was refused then, and the job is not offered again before its lease has
	// expired.
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/start/"+g.ID, "").is(t, http.StatusOK)
	for _, j := range w.group(t, g.ID).Jobs {
		if j.State == "Progressing" {
			w.lapse(t, j.ID)
		}
	}
	for range 5 {
		for _, agent := range []string{"late-0", "late-1"} {
			for _, j := range w.executable(t, w.agent(t, agent), agent, "ocm") {
				runs.Store(j.ID+agent, w.finish(t, w.agent(t, agent), agent, j).Manifests)
			}
		}
	}
	now := w.group(t, g.ID)
	require.Equal(t, "Available", now.Status)
	for _, j := range now.Jobs {
		running, _ := runs.Load(j.ID + j.OwnerID)
		require.Equal(t, j.Manifests, running, "what runs is what is stored")
	}
	w.oneOwner(t)
}

// oneOwner requires for every epoch of every job that at most one agent promoted it.
func (w *world) oneOwner(t testing.TB) {
	t.Helper()
	twice, err := store.Collect(t.Context(), w.DB, "read jobs", pgx.RowTo[string],
		`select component from jobs where cleans is null group by id, component having count(*) > 1`)
	require.NoError(t, err)
	require.Empty(t, twice, "a component has two jobs")
	// Between promotions of a job by different agents there must be a transition that released the job or fenced the
	// former owner.
	last := map[string]string{}
	for _, e := range w.moves(t) {
		switch e.event {
		case "job.promoted":
			agent, _, _ := strings.Cut(e.message, " took it")
			if owner := last[e.job]; owner != "" && owner != agent {
				t.Errorf("job %s was promoted by %s while %s had it", e.job, agent, owner)
			}
			last[e.job] = agent
		case "job.takenover", "job.returned", "job.displaced", "job.restarted", "job.cancelled":
			last[e.job] = ""
		case "job.finished":
			if e.removal {
				last[e.job] = ""
			}
		}
	}
}

type move struct {
	job, event, message string
	removal             bool
}

// moves lists the transitions of all jobs in order.
func (w *world) moves(t testing.TB) []move {
	t.Helper()
	read := func(row pgx.CollectableRow) (m move, err error) {
		err = row.Scan(&m.job, &m.event, &m.message, &m.removal)
		return m, err
	}
	list, err := store.Collect(t.Context(), w.DB, "read moves", read,
		`select h.job_id::text, h.event, h.message, h.message like 'at nowhere%' or exists (
  select from history s where s.job_id = h.job_id and s.id < h.id and s.event = 'job.stopped'
  and not exists (select from history r where r.job_id = h.job_id and r.id > s.id and r.id < h.id and r.event in ('job.restarted', 'job.finished')))
from history h where h.job_id is not null order by h.id`)
	require.NoError(t, err)
	return list
}
