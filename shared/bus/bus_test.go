package bus_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var errEnough = errors.New("enough")

func publish(t testing.TB, db *store.DB, changes ...bus.Change) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return bus.Publish(ctx, tx, changes...)
	}))
}

func text(key, value string) bus.Change {
	return bus.Change{Key: keyexpr.Expr(key), Encoding: "text/plain", Payload: []byte(value)}
}

func gone(key string) bus.Change { return bus.Change{Key: keyexpr.Expr(key), Delete: true} }

// show is a value in short.
func show(v bus.Value) string {
	if v.Deleted {
		return string(v.Key) + " gone"
	}
	return string(v.Key) + "=" + string(v.Payload)
}

func get(t testing.TB, db *store.DB, selection keyexpr.Expr) []string {
	t.Helper()
	list := []string{}
	require.NoError(t, bus.Get(t.Context(), db, selection, func(v bus.Value) error {
		list = append(list, show(v))
		return nil
	}))
	return list
}

// next reads n changes of the subscription and returns them with the number of the last.
func next(t testing.TB, s *bus.Subscription, n int, during func()) (got []string, last int64) {
	t.Helper()
	return until(t, s, func(got []string) bool { return len(got) == n }, during)
}

// until reads changes until there are enough. After the first it calls during.
func until(t testing.TB, s *bus.Subscription, enough func(got []string) bool, during func()) (got []string, last int64) {
	t.Helper()
	err := s.Follow(t.Context(), time.Minute, func(v bus.Value) error {
		got, last = append(got, show(v)), v.Number
		if during != nil {
			during()
			during = nil
		}
		if enough(got) {
			return errEnough
		}
		return nil
	}, func() error { return errors.New("nothing came") })
	require.ErrorIs(t, err, errEnough)
	return got, last
}

func subscribe(t testing.TB, f *bus.Feed, selection keyexpr.Expr, after *int64) *bus.Subscription {
	t.Helper()
	s, err := f.Subscribe(t.Context(), selection, after)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestTheLastValueOfEachKeyIsRetained(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, text("a/b", "1"), text("a/c", "1"), text("ab", "1"), text("@x/y", "1"))
	publish(t, db, text("a/b", "2"))
	publish(t, db, gone("a/c"), gone("never/there"))
	require.Equal(t, []string{"a/b=2"}, get(t, db, "a/b"))
	require.Equal(t, []string{"a/b=2"}, get(t, db, "a/*"))
	require.Equal(t, []string{"a/b=2", "ab=1"}, get(t, db, "**"))
	require.Equal(t, []string{"@x/y=1"}, get(t, db, "@x/*"))
	require.Empty(t, get(t, db, "a"))
}

func TestMoreKeysThanArePagedAreAllRead(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var changes []bus.Change
	for i := range 1000 {
		changes = append(changes, text("app/"+strconv.Itoa(i), "x"))
	}
	publish(t, db, changes...)
	require.Len(t, get(t, db, "app/**"), 1000)
	got, _ := next(t, subscribe(t, bus.NewFeed(db), "app/*", nil), 1000, nil)
	require.Len(t, got, 1000)
}

func TestAPublicationNeedsAKey(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for _, key := range []string{"", "a/*", "a//b", "/a", "a#"} {
		require.Error(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return bus.Publish(ctx, tx, text(key, "x"))
		}), key)
	}
	require.Empty(t, get(t, db, "**"))
}

func TestASubscriberGetsTheStateAndThenChanges(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, text("a/b", "1"), text("c", "1"), text("a/d", "1"))
	publish(t, db, gone("a/d"))
	s := subscribe(t, bus.NewFeed(db), "a/**", nil)
	got, _ := until(t, s, func(got []string) bool { return slices.Contains(got, "a/e=1") }, func() {
		publish(t, db, text("a/b", "2"), text("c", "2"))
		publish(t, db, gone("a/b"))
		publish(t, db, text("a/e", "1"))
	})
	got = slices.DeleteFunc(got, func(v string) bool { return v == "a/b=2" }) // a value that was replaced at once may be left out
	require.Equal(t, []string{"a/b=1", "a/b gone", "a/e=1"}, got)
}

func TestASubscriberWhoComesAgainMissesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, text("a", "1"))
	publish(t, db, text("b", "1"))
	_, last := next(t, subscribe(t, bus.NewFeed(db), "**", nil), 2, nil)
	publish(t, db, gone("a"))
	publish(t, db, text("b", "2"))
	s := subscribe(t, bus.NewFeed(db), "**", &last)
	require.False(t, s.Anew)
	got, _ := next(t, s, 2, nil)
	require.Equal(t, []string{"a gone", "b=2"}, got)
}

// TestWhoWasAwayTooLongBeginsAnew: the tombstone that it would have to be told of may be gone.
func TestWhoWasAwayTooLongBeginsAnew(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, text("a", "1"))
	publish(t, db, text("b", "1"))
	_, last := next(t, subscribe(t, bus.NewFeed(db), "**", nil), 2, nil)
	publish(t, db, gone("b"))
	require.NoError(t, bus.Forget(t.Context(), db, time.Hour))
	require.False(t, subscribe(t, bus.NewFeed(db), "**", &last).Anew, "it is still there")
	require.NoError(t, bus.Forget(t.Context(), db, 0))
	s := subscribe(t, bus.NewFeed(db), "**", &last)
	require.True(t, s.Anew)
	got, last := next(t, s, 2, func() { publish(t, db, text("c", "1")) })
	require.Equal(t, []string{"a=1", "c=1"}, got)
	require.False(t, subscribe(t, bus.NewFeed(db), "**", &last).Anew)
	ahead := last + 1000
	require.True(t, subscribe(t, bus.NewFeed(db), "**", &ahead).Anew, "a number of another database")
}

// TestNumbersBecomeVisibleInTheirOrder: a transaction that began first and commits last must not hide its change from
// whoever has seen a later one.
func TestNumbersBecomeVisibleInTheirOrder(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- db.Tx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			if err := bus.Publish(ctx, tx, text("slow", "1")); err != nil {
				return err
			}
			close(begun)
			<-goOn
			return nil
		})
	}()
	<-begun
	go func() {
		done <- db.Tx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
			return bus.Publish(ctx, tx, text("quick", "1"))
		})
	}()
	s := subscribe(t, bus.NewFeed(db), "**", nil)
	close(goOn)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	got, _ := next(t, s, 2, nil)
	require.Equal(t, []string{"slow=1", "quick=1"}, got)
}

func TestAnApplicationReadsItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	tokens := bus.Tokens{Key: "key"}
	recognize := func(tokens bus.Tokens, token string) (auth.Principal, bool) {
		r := httptest.NewRequest(http.MethodGet, "/bus/a", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return tokens.Recognize(r)
	}
	caller, known := recognize(tokens, tokens.For("shop-1"))
	require.True(t, known)
	require.True(t, caller.Can(auth.Viewer))
	require.False(t, caller.Can(auth.Operator))
	for selection, may := range map[keyexpr.Expr]bool{
		"shop-1/web": true, "shop-1/**": true, "shop-1": true, "**": false, "shop-2/web": false, "*/web": false, "shop-1$*/web": false,
	} {
		err := bus.Permit(caller, selection)
		require.Equal(t, may, err == nil, selection)
		if !may {
			require.Equal(t, problem.Forbidden, problem.KindOf(err))
		}
	}
	require.NoError(t, bus.Permit(auth.Principal{Roles: []auth.Role{auth.Viewer}}, "**"))
	for _, name := range []string{"*", "**", "shop-$*", "shop-1/../shop-2"} {
		require.Error(t, bus.Permit(auth.Principal{Application: name}, "shop-2/web"), name)
	}

	_, known = recognize(bus.Tokens{Key: "new", Former: "key"}, tokens.For("shop-1"))
	require.True(t, known, "while the key is being changed")
	for name, token := range map[string]string{
		"another key":         bus.Tokens{Key: "other"}.For("shop-1"),
		"another application": tokens.For("shop-2")[:len("app.c2hvcC0y")] + tokens.For("shop-1")[len("app.c2hvcC0x"):],
		"no signature":        "app.c2hvcC0x.", "nothing": "app.", "a JWT": "a.b.c",
	} {
		_, known := recognize(tokens, token)
		require.False(t, known, name)
	}
	require.Empty(t, bus.Tokens{}.For("shop-1"))
	_, known = recognize(bus.Tokens{}, tokens.For("shop-1"))
	require.False(t, known, "without a key nobody is known")
}
