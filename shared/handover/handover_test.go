package handover_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const shop = `name: shop
components:
  - name: web
    type: kubernetes
    manifests:
      - name: web
        manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {image: "a:%d"}}
`

var limits = handover.Settings{Lease: time.Minute, Margin: 20 * time.Second}

// world is two controllers, each with its own store, and one application that was submitted at shore.
type world struct {
	*testing.T
	shore, harbour *store.DB
	id             uuid.UUID
	limits         handover.Settings
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, shore: storetest.New(t), harbour: storetest.New(t), limits: limits}
	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) error {
		a, _, err := applicationtest.Put(ctx, tx, application.Submission{Document: fmt.Appendf(nil, shop, 1), Caller: "alice", LostAfter: time.Minute})
		if err == nil {
			w.id = a.ID
		}
		return err
	})
	return w
}

func (w *world) tx(db *store.DB, do func(context.Context, *store.Tx) error) {
	w.Helper()
	require.NoError(w, w.try(db, do))
}

func (w *world) try(db *store.DB, do func(context.Context, *store.Tx) error) error {
	return db.Tx(store.WithSource(w.Context(), "/test"), do)
}

// The steps, as functions/controller takes them; each may be lost, repeated or late.

func (w *world) request() error {
	return w.try(w.shore, func(ctx context.Context, tx *store.Tx) error {
		_, err := handover.Request(ctx, tx, w.id, "harbour", "test")
		return err
	})
}

func (w *world) row(db *store.DB) *handover.Handover {
	w.Helper()
	h, err := handover.Get(w.Context(), db, w.id)
	if problem.KindOf(err) == problem.NotFound {
		return &handover.Handover{}
	}
	require.NoError(w, err)
	return h
}

// offer returns what shore would send to harbour now; nil for nothing.
func (w *world) offer() (h *handover.Handover) {
	w.Helper()
	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) (err error) {
		h, err = handover.Current(ctx, tx, w.id, w.row(w.shore).Epoch)
		return err
	})
	return h
}

func (w *world) accept(h *handover.Handover) error {
	return w.try(w.harbour, func(ctx context.Context, tx *store.Tx) error {
		return handover.Accept(ctx, tx, "shore", w.id, h.Epoch, *h.Content)
	})
}

func (w *world) let(h *handover.Handover) {
	w.Helper()
	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) error {
		return handover.Let(ctx, tx, w.id, h.Epoch, "https://harbour.example", w.limits)
	})
}

// claim is a question of harbour on its way to shore.
type claim struct {
	handover.Claim
	asked time.Time
}

func (w *world) claim() *claim {
	w.Helper()
	asked, err := handover.Now(w.Context(), w.harbour)
	require.NoError(w, err)
	all, err := handover.ClaimsOf(w.Context(), w.harbour)
	require.NoError(w, err)
	if len(all["shore"]) == 0 {
		return nil
	}
	return &claim{all["shore"][0], asked}
}

func (w *world) grant(c *claim) (l handover.Lease) {
	w.Helper()
	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) (err error) {
		l, err = handover.Grant(ctx, tx, "harbour", "https://harbour.example", c.Claim, w.limits, time.Minute)
		return err
	})
	return l
}

func (w *world) took(c *claim, l handover.Lease) {
	w.Helper()
	w.tx(w.harbour, func(ctx context.Context, tx *store.Tx) error {
		return handover.Took(ctx, tx, "shore", c.Claim, l, c.asked, time.Minute)
	})
}

// renew is a claim with its answer, and nothing lost.
func (w *world) renew() {
	w.Helper()
	if c := w.claim(); c != nil {
		w.took(c, w.grant(c))
	}
}

func (w *world) watch() {
	w.Helper()
	var silent []uuid.UUID
	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) (err error) {
		silent, err = handover.Silent(ctx, tx, w.limits)
		return err
	})
	for _, id := range silent {
		w.tx(w.shore, func(ctx context.Context, tx *store.Tx) error { return handover.TakeOver(ctx, tx, id, time.Minute) })
	}
}

// pass lets time pass for both, which is to make what they remember older.
func (w *world) pass(d time.Duration) {
	w.Helper()
	for _, db := range []*store.DB{w.shore, w.harbour} {
		for _, sql := range []string{
			`update handovers set until = until - $1::interval, looked_at = looked_at - $1::interval`,
			`update applications set acts_until = acts_until - $1::interval`,
		} {
			_, err := db.Exec(w.Context(), sql, d)
			require.NoError(w, err)
		}
	}
}

// acts reports whether a controller acts on the application, which is to say that it may place, change or hand out its work.
func (w *world) acts(db *store.DB) bool {
	w.Helper()
	a, err := application.Get(w.Context(), db, w.id)
	if problem.KindOf(err) == problem.NotFound {
		return false
	}
	require.NoError(w, err)
	return a.Desired == application.Running
}

func (w *world) never2() {
	w.Helper()
	if w.acts(w.shore) && w.acts(w.harbour) {
		w.Fatalf("both act: shore %+v, harbour %+v", w.row(w.shore), w.row(w.harbour))
	}
}

// handOver goes all the way.
func (w *world) handOver() {
	w.Helper()
	require.NoError(w, w.request())
	h := w.offer()
	require.NoError(w, w.accept(h))
	require.True(w, w.acts(w.shore))
	require.False(w, w.acts(w.harbour), "it has accepted, and does not act")
	w.renew()
	require.True(w, w.acts(w.shore), "there is no lease before the release")
	require.False(w, w.acts(w.harbour))
	w.let(h)
	require.False(w, w.acts(w.shore))
	w.renew()
	require.True(w, w.acts(w.harbour))
}

func (w *world) update(db *store.DB, image int) error {
	return w.try(db, func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, w.id, fmt.Appendf(nil, shop, image), time.Minute)
		return err
	})
}

func (w *world) get(db *store.DB) *application.Application {
	w.Helper()
	a, err := application.Get(w.Context(), db, w.id)
	require.NoError(w, err)
	return a
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handOver()
	there := w.get(w.harbour)
	require.Equal(t, w.get(w.shore).Namespace, there.Namespace)
	require.Len(t, there.Jobs, 1)
	require.Equal(t, "alice", there.Owner)

	require.Equal(t, problem.Conflict, problem.KindOf(w.update(w.shore, 2)), "only the responsible controller changes it")
	require.NoError(t, w.update(w.harbour, 2))
	w.renew()
	status, message := w.get(w.shore).Status()
	require.Equal(t, application.Handed, status)
	require.Contains(t, message, "at controller harbour: Pending")

	w.tx(w.shore, func(ctx context.Context, tx *store.Tx) error {
		_, err := handover.Recall(ctx, tx, w.id, "test")
		return err
	})
	w.renew() // is told
	require.False(t, w.acts(w.harbour))
	require.False(t, w.acts(w.shore), "it has not heard yet that the other one has stopped")
	w.renew()
	require.True(t, w.acts(w.shore))
	require.Contains(t, w.get(w.shore).Descriptor, "a:2", "what was changed there is not lost")
	require.Equal(t, job.Create, w.get(w.shore).Jobs[0].Type)
	require.Equal(t, handover.Over, w.row(w.harbour).State)

	w.handOver() // again
	require.Greater(t, w.row(w.harbour).Epoch, int64(2))
}

// TestASilentReceiverIsTakenOverAfterItsLease, and not before; when it comes back it has nothing to say any more.
func TestASilentReceiverIsTakenOverAfterItsLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handOver()
	w.watch()
	late := w.claim() // on its way for long
	w.pass(limits.Lease + time.Second)
	require.False(t, w.acts(w.harbour), "nobody has told it, and still it stops")
	require.Equal(t, problem.Unavailable, problem.KindOf(w.update(w.harbour, 2)))
	w.watch()
	require.False(t, w.acts(w.shore), "it has been away itself, and listens first")
	for range 4 {
		w.pass(limits.Margin)
		w.watch()
	}
	require.True(t, w.acts(w.shore))

	require.Equal(t, handover.Ended, w.grant(late).Answer)
	w.renew()
	require.Equal(t, handover.Over, w.row(w.harbour).State)
	w.never2()
}

// TestAGiverThatWasAwayListensBeforeItTakesOver: the receiver, whose lease is over, renews and goes on.
func TestAGiverThatWasAwayListensBeforeItTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handOver()
	w.pass(time.Hour)
	w.watch()
	require.False(t, w.acts(w.shore))
	w.renew()
	require.True(t, w.acts(w.harbour))
	w.watch()
	require.False(t, w.acts(w.shore))
}

// TestAnAnswerThatTookTooLong gives no lease: the giver counts from when it gave it.
func TestAnAnswerThatTookTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handOver()
	w.renew()
	c := w.claim()
	l := w.grant(c)
	c.asked = c.asked.Add(-limits.Lease)
	w.pass(limits.Lease)
	w.took(c, l)
	require.False(t, w.acts(w.harbour))
}

// TestWhatIsDeletedThereIsDeletedHere.
func TestWhatIsDeletedThereIsDeletedHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handOver()
	w.tx(w.harbour, func(ctx context.Context, tx *store.Tx) error {
		_, gone, err := application.Delete(ctx, tx, w.id, true)
		require.True(t, gone)
		return err
	})
	w.renew()
	for _, db := range []*store.DB{w.shore, w.harbour} {
		_, err := application.Get(t.Context(), db, w.id)
		require.Equal(t, problem.NotFound, problem.KindOf(err))
	}
}

// TestNeverTwo takes random steps, with messages that are lost, doubled and late, crashes between any two steps, and time that
// passes; and looks after each whether both act. At the end the network is well again, and one of them has to act.
func TestNeverTwo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := rand.New(rand.NewPCG(seed, 32)) //nolint:gosec // a seed that can be repeated
			var offers []*handover.Handover
			type answer struct {
				*claim
				lease handover.Lease
			}
			var claims []*claim
			var answers []answer
			for range 120 {
				switch r.IntN(11) {
				case 0:
					_ = w.request() // may be refused
				case 1:
					if h := w.offer(); h != nil {
						offers = append(offers, h)
					}
				case 2: // any that was sent, once more
					if len(offers) > 0 {
						_ = w.accept(offers[r.IntN(len(offers))])
					}
				case 3: // only of an offer that was accepted
					if h := w.row(w.harbour); len(offers) > 0 && h.State == handover.Accepted && h.Epoch == offers[len(offers)-1].Epoch {
						w.let(offers[len(offers)-1])
					}
				case 4:
					if c := w.claim(); c != nil {
						claims = append(claims, c)
					}
				case 5:
					if len(claims) > 0 {
						c := claims[r.IntN(len(claims))]
						answers = append(answers, answer{c, w.grant(c)})
					}
				case 6:
					if len(answers) > 0 {
						a := answers[r.IntN(len(answers))]
						w.took(a.claim, a.lease)
					}
				case 7:
					w.watch()
				case 8:
					d := time.Duration(r.IntN(60)) * time.Second
					w.pass(d)
					for _, c := range claims {
						c.asked = c.asked.Add(-d)
					}
				case 9:
					_ = w.try(w.shore, func(ctx context.Context, tx *store.Tx) error {
						_, err := handover.Recall(ctx, tx, w.id, "test")
						return err
					})
				case 10:
					w.renew()
				}
				w.never2()
			}
			for range 8 {
				w.renew()
				w.pass(limits.Margin)
				w.renew()
				w.watch()
			}
			require.True(t, w.acts(w.shore) != w.acts(w.harbour), "shore %+v, harbour %+v", w.row(w.shore), w.row(w.harbour))
		})
	}
}
