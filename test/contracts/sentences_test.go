package contracts_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reworded makes Postgres replace every sentence that is stored by another one: in history, in what became of actions, and
// in the conditions of jobs, those without a message included.
func (w *world) reworded(t testing.TB) {
	t.Helper()
	_, err := w.DB.Exec(t.Context(), `
create function reworded(said text) returns text language sql as $$ select 'another sentence ' || md5(said) $$;
create function reword() returns trigger language plpgsql as $$ begin
  case tg_table_name
  when 'history' then new.message := reworded(new.message);
  when 'policy_actions' then new.detail := reworded(new.detail);
  when 'jobs' then new.conditions := (select coalesce(jsonb_agg(c || jsonb_build_object('message', reworded(c ->> 'message'))
    order by n), '[]') from jsonb_array_elements(new.conditions) with ordinality as l (c, n));
  end case;
  return new;
end $$;
create trigger reword before insert or update on history for each row execute function reword();
create trigger reword before insert or update on policy_actions for each row execute function reword();
create trigger reword before insert or update on jobs for each row execute function reword()`)
	require.NoError(t, err)
}

// TestSentencesDecideNothing: whatever they say, components are placed, moved, marked, kept and cleaned up after alike.
func TestSentencesDecideNothing(t *testing.T) {
	t.Parallel()
	t.Run("what lost its place gets another one, and its former copy goes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.reworded(t)
		g, j := w.running(t, freeShop)
		require.Equal(t, "Available", w.group(t, g.ID).Status)
		w.drain(j.Targets.Cluster + "/" + j.Targets.Node)
		moved := w.job(t, j.ID)
		require.NotEmpty(t, moved.Targets.Node)
		require.NotEqual(t, j.Targets, moved.Targets)
		require.Len(t, w.messages(t, g.ID, "job.cleanup"), 1)
		for range 2 { // the clean-up, and what comes after it
			for _, offered := range w.executable(t, w.hub, hubAgent, "ocm") {
				w.finish(t, w.hub, hubAgent, offered)
			}
		}
		require.Equal(t, "Available", w.group(t, g.ID).Status)
		w.legal(t)
	})
	t.Run("what has nowhere else to go stays and goes when there is room", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.reworded(t)
		w.saveLabelled(t, "disk", "ssd", "hub-1")
		pinned := strings.Replace(freeShop, "architecture: x86_64", "architecture: x86_64, nodelabel: {key: disk, values: [ssd]}", 1)
		g, j := w.running(t, pinned+"policies:\n  - security: high\n")
		p := w.policiesOf(t, g.ID)["0"]
		w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, "firing", time.Now()))).is(t, http.StatusOK)
		require.Equal(t, "Degraded", w.job(t, j.ID).State)
		require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
		w.saveLabelled(t, "disk", "ssd", "hub-1", "hub-2")
		require.Equal(t, "hub-2", w.job(t, j.ID).Targets.Node)
		w.legal(t)
	})
	t.Run("what stays is no move, and may stay when the violation has ended", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.reworded(t)
		g, j := w.running(t, hubShop+"policies:\n  - security: high\n")
		p, start := w.policiesOf(t, g.ID)["0"], time.Now()
		w.movedOften(t, g, p, 9)
		fire := func(status string) {
			w.alertmanager().send(t, http.MethodPost, webhook, notice(alert(p, g.ID, status, start))).is(t, http.StatusOK)
		}
		fire("firing")
		require.Equal(t, "Degraded", w.group(t, g.ID).Status)
		require.Len(t, w.messages(t, g.ID, "policy.stayed"), 1)
		fire("resolved")
		require.Equal(t, "Available", w.group(t, g.ID).Status)
		w.laterBy(t, "2 min")
		start = time.Now().Add(time.Minute)
		fire("firing") // another violation, which is acted upon: the one before was no tenth move
		require.Empty(t, w.messages(t, g.ID, "policy.held"))
		require.Len(t, w.messages(t, g.ID, "policy.stayed"), 2)
		require.Equal(t, j.Targets, w.job(t, j.ID).Targets)
	})
	t.Run("what waits is placed together with what waits beside it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.reworded(t)
		w.drain("hub/hub-1", "hub/hub-2")
		g := w.submit(t, freeShop)
		require.Empty(t, w.group(t, g.ID).Jobs[0].Targets.Cluster)
		w.drain()
		require.Equal(t, "hub", w.group(t, g.ID).Jobs[0].Targets.Cluster)
		w.legal(t)
	})
}
