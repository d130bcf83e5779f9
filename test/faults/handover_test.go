package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// pair is two controllers with a network between them: shore, which an application is submitted to, and harbour.
type pair struct {
	*testing.T
	sides [2]*world
	id    string // of the application

	mu    sync.Mutex
	calls int // between the controllers
	cut   int // from which call on they do not arrive; -1 = all do
	both  int // instants at which both acted
	seen  int // instants that were looked at
}

const (
	shore = iota
	harbour
)

var sideNames = [2]string{"shore", "harbour"}

// newPair returns two controllers. The clock of harbour is apart from that of shore.
func newPair(t *testing.T, apart time.Duration) *pair {
	t.Helper()
	p := &pair{T: t, cut: -1}
	var proxies [2]*httptest.Server
	for i := range p.sides {
		p.sides[i] = prepare(t)
		p.sides[i].clock()
		proxies[i] = httptest.NewServer(p.network(p.sides[i]))
		t.Cleanup(proxies[i].Close)
	}
	p.pass(harbour, apart)
	for i, w := range p.sides {
		other := p.sides[1-i]
		token := filepath.Join(t.TempDir(), "token")
		as := other.issuer.TokenWith(t, map[string]any{"sub": sideNames[i], "roles": []string{"controller"}})
		require.NoError(t, os.WriteFile(token, []byte(as), 0o600))
		peers, err := json.Marshal([]peer.Peer{{Name: sideNames[1-i], Address: proxies[1-i].URL, Subject: sideNames[1-i], TokenFile: token}})
		require.NoError(t, err)
		w.environment = []string{"CONTROLLER_NAME=" + sideNames[i], "CONTROLLER_PEERS=" + string(peers)}
		w.refusal, w.answered = other.reviveNow, p.look
		w.start()
	}
	return p
}

// clock puts a clock that can be set before that of Postgres: whatever asks for the time in this database gets its time.
func (w *world) clock() {
	w.t.Helper()
	_, err := w.db.Exec(w.t.Context(), `create schema clock;
create table clock.ahead (by interval not null);
insert into clock.ahead values ('0');
create function clock.now() returns timestamptz language sql stable as 'select pg_catalog.now() + by from clock.ahead';
create function clock.clock_timestamp() returns timestamptz language sql volatile as 'select pg_catalog.clock_timestamp() + by from clock.ahead';
do $$ begin execute format('alter database %I set search_path = clock, public, pg_catalog', current_database()); end $$`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(w.t, err)
	w.db.Close()
	w.db, err = store.Open(w.t.Context(), store.Config{DatabaseURL: w.url, MaxConns: 2}, w.broker, nil)
	require.NoError(w.t, err)
}

// pass lets time pass at one side.
func (p *pair) pass(side int, d time.Duration) {
	p.Helper()
	w := p.sides[side]
	w.ahead += d
	_, err := w.db.Exec(p.Context(), `update clock.ahead set by = $1`, w.ahead)
	require.NoError(p, err)
}

// network is what a call of the other side goes through.
func (p *pair) network(to *world) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.calls++
		lost := p.cut >= 0 && p.calls > p.cut
		p.mu.Unlock()
		if lost {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p.look()
		address, err := url.Parse(to.address)
		if err != nil {
			panic(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(address)
		proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
		proxy.ServeHTTP(w, r)
		p.look()
	})
}

// cutAfter lets so many calls more arrive; all again if it is negative.
func (p *pair) cutAfter(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut = more; more >= 0 {
		p.cut += p.calls
	}
}

// acts reports whether a side acts on the application.
func (p *pair) acts(side int) bool {
	id, err := uuid.Parse(p.id)
	if err != nil {
		return false
	}
	a, err := application.Get(context.WithoutCancel(p.Context()), p.sides[side].db, id)
	if problem.KindOf(err) == problem.NotFound {
		return false
	}
	if err != nil {
		p.Errorf("read the application: %v", err)
		return false
	}
	return a.Desired == application.Running
}

// look counts an instant, and whether both act at it.
func (p *pair) look() {
	both := p.acts(shore) && p.acts(harbour)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	if both {
		p.both++
	}
}

// reviveNow restarts the functions if they were killed.
func (w *world) reviveNow() {
	select {
	case <-w.ended:
		w.revive()
	default:
	}
}

// settle delivers at both sides until nothing is left, or for some rounds while the network is cut.
func (p *pair) settle() {
	p.Helper()
	for range 8 {
		left := 0
		for _, w := range p.sides {
			w.reviveNow()
			if w.broker.Waiting() == 0 && w.left() {
				w.tick("outbox-sweep")
			}
			for range w.broker.Waiting() {
				if d, ok := w.broker.Next(); ok {
					w.deliver(d)
				}
			}
			left += w.broker.Waiting()
			if w.left() {
				left++
			}
		}
		if left == 0 {
			break
		}
	}
}

// left reports whether a kill has left events in the outbox.
func (w *world) left() (some bool) {
	w.t.Helper()
	w.query(`select exists (select from outbox)`, func(row pgx.CollectableRow) error { return row.Scan(&some) })
	return some
}

// renew lets harbour ask for its leases, and shore look after those it gave.
func (p *pair) renew() {
	p.Helper()
	for _, w := range p.sides {
		w.reviveNow()
	}
	p.sides[harbour].tick("controller-renew")
	p.settle()
	p.sides[shore].tick("controller-take-over")
	p.settle()
}

// until renews until it is so. A kill may cost some calls.
func (p *pair) until(what string, so func() bool) {
	p.Helper()
	for range 5 {
		p.settle()
		if so() {
			return
		}
		p.renew()
	}
	require.Fail(p, "it never came to that: "+what, p.dump())
}

// work lets the agents of both sides do what they may.
func (p *pair) work() {
	p.Helper()
	for _, w := range p.sides {
		w.work()
	}
	p.settle()
}

// moved is the application that is handed over.
func moved(image string) string {
	return fmt.Sprintf(`
name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {image: %s}}}]
`, image)
}

func (p *pair) submit() {
	p.Helper()
	for _, w := range p.sides {
		w.see()
	}
	var group struct {
		ID string `json:"id"`
	}
	a := p.sides[shore].user(http.MethodPost, "/jobmanager/groups", moved("a"), http.StatusCreated)
	require.NoError(p, json.Unmarshal(a.body, &group))
	p.id = group.ID
	p.settle()
	p.work()
}

func (p *pair) move(body string) {
	p.Helper()
	p.sides[shore].user(http.MethodPost, "/controller/handovers", fmt.Sprintf(body, p.id), http.StatusAccepted)
	p.settle()
}

const (
	there = `{"application": %q, "to": "harbour", "reason": "test"}`
	home  = `{"application": %q, "home": true, "reason": "test"}`
)

// chain hands an application over, changes it there, and brings it back.
func (p *pair) chain(between func(step string)) {
	p.Helper()
	step := func(name string, do func()) {
		for _, w := range p.sides {
			w.begin(name)
		}
		do()
		for _, w := range p.sides {
			w.reviveNow()
			w.end()
		}
		between(name)
	}
	step(submitted, p.submit)
	step("move", func() {
		p.move(there)
		p.until("harbour acts", func() bool { return p.acts(harbour) })
	})
	step("run there", p.work)
	step("change it there", func() {
		p.sides[harbour].user(http.MethodPut, "/jobmanager/groups/"+p.id, moved("b"), http.StatusOK)
		p.settle()
		p.until("shore has heard, which harbour knows", func() bool {
			return strings.Contains(p.row(shore), "image: b") && strings.Contains(p.row(harbour), "image: b")
		})
	})
	step("bring it home", func() {
		p.move(home)
		p.until("shore acts", func() bool { return p.acts(shore) })
		p.until("harbour has heard", func() bool { return strings.Contains(p.row(harbour), `"over"`) })
	})
	step(atHome, p.work)
}

// submitted and atHome are the steps before and after the hand-over, whose boundaries are no others than of any application.
const submitted, atHome = "submit", "run at home"

// row is the hand-over as one side has it.
func (p *pair) row(side int) (line string) {
	p.Helper()
	p.sides[side].query(`select jsonb_build_array(side, state, peer, epoch, recalled, reason, content->>'version', content->>'descriptor')::text from handovers`,
		func(row pgx.CollectableRow) error { return row.Scan(&line) })
	return line
}

// dump is the state of both sides. How often a receiver was told that it may begin depends on what was killed meanwhile, and so does
// how often it looked: that changes nothing else.
func (p *pair) dump() string {
	p.Helper()
	var kept []string
	for i, w := range p.sides {
		kept = append(kept, "== "+sideNames[i], "handover "+p.row(i))
		for line := range strings.SplitSeq(w.dump(), "\n") {
			if !strings.Contains(line, "handover.released.v1") && !strings.Contains(line, `"controller-renew"`) {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "\n")
}

func (p *pair) neverTwo() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Zero(p, p.both, "of %d instants", p.seen)
	require.Greater(p, p.seen, 20)
}

// sampledMoves is how many runs for each side the short form does.
const sampledMoves = 2

// TestKilledWhileHandedOver kills the functions of either side at every boundary of a hand-over and of the way back.
func TestKilledWhileHandedOver(t *testing.T) {
	states := func(p *pair) (all []state) {
		p.chain(func(step string) { all = append(all, state{step, p.dump()}) })
		p.neverTwo()
		return all
	}
	reference := newPair(t, 0)
	want := states(reference)
	require.NotContains(t, reference.dump(), "\noutbox ", "no event may be left")
	slots := make(chan struct{}, workers)
	var covered, instants atomic.Int64
	total, runs := 0, 0
	t.Run("killed", func(t *testing.T) {
		for side, w := range reference.sides {
			delete(w.passed, submitted)
			delete(w.passed, atHome)
			total += sum(w.passed)
			plans := schedule(t, os.Getenv("LITTORAL_FAULTS"), w.passed, sampledMoves)
			runs += len(plans)
			for i, plan := range plans {
				t.Run(fmt.Sprintf("%s, run %d", sideNames[side], i+1), func(t *testing.T) {
					t.Parallel()
					slots <- struct{}{}
					defer func() { <-slots }()
					p := newPair(t, 0)
					p.sides[side].kills = plan
					got := states(p)
					covered.Add(int64(p.sides[side].deaths))
					sameStates(t, want, got, plan)
					instants.Add(int64(p.seen))
				})
			}
		}
	})
	fmt.Printf("hand-over: %d of %d boundaries of both sides covered in %d runs; 0 of %d instants had two that act\n",
		covered.Load(), total, runs, instants.Load())
}

const tenMinutes, step = 10 * time.Minute, 30 * time.Second

// TestTheNetworkIsCutForTenMinutes and heals: during a move, after each of its calls, and long after one. The clocks of the two
// controllers are up to half a minute apart, which makes no difference.
func TestTheNetworkIsCutForTenMinutes(t *testing.T) {
	slots := make(chan struct{}, workers)
	cuts, clocks := []int{2, -1}, []time.Duration{0, 30 * time.Second} // calls that still arrive, -1: the move is over
	if os.Getenv("LITTORAL_FAULTS") != "" {
		cuts, clocks = []int{0, 1, 2, 3, 4, -1}, append(clocks, -30*time.Second)
	}
	for _, cut := range cuts {
		t.Run(fmt.Sprintf("after %d calls", cut), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			var ends []string
			for _, apart := range clocks {
				p := newPair(t, apart)
				p.partition(cut)
				p.neverTwo()
				ends = append(ends, p.dump())
			}
			for _, end := range ends[1:] {
				same(t, ends[0], end, "clocks that are apart make a difference")
			}
		})
	}
}

func (p *pair) partition(cut int) {
	p.Helper()
	p.submit()
	if cut < 0 {
		p.move(there)
		p.until("harbour acts", func() bool { return p.acts(harbour) })
		p.work()
		p.cutAfter(0)
	} else {
		p.cutAfter(cut)
		p.move(there)
	}
	next := func() {
		for i := range p.sides {
			p.pass(i, step)
			p.sides[i].see()
		}
		p.renew()
		p.work()
		p.look()
	}
	for range tenMinutes / step {
		next()
	}
	require.True(p, p.acts(shore) || !p.acts(harbour), "with the network cut only the giver may act for long")
	p.cutAfter(-1)
	for range 2 * time.Minute / step {
		next()
	}
	require.True(p, p.acts(shore) != p.acts(harbour), "it is lost: %s", p.dump())
	at := shore
	if p.acts(harbour) {
		at = harbour
	}
	n := 0
	p.sides[at].query(`select count(*) from jobs where state = 'Finished' and type <> 'DeleteDeployment'`, func(row pgx.CollectableRow) error { return row.Scan(&n) })
	require.Equal(p, 1, n, "it runs where it is")
}
