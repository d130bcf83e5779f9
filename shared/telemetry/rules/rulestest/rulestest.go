// Package rulestest is the test suite that every store of rule groups must pass.
package rulestest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Place is a store for one test.
type Place struct {
	Store rules.Store

	Count func() int // number of groups in the backend, from any source
	Stop  func()     // makes the backend unreachable; nil = not possible
}

// Group returns an alerting group like those of the policy manager.
func Group(name, expr string) rules.Group {
	return rules.Group{Name: name, Rules: []rules.Rule{{
		Alert: name + ":rule-0", Expr: expr, For: "1m",
		Annotations: map[string]string{"plm_id": "1", "plm_expr_value": "{{ $value }}"},
	}}}
}

// Run runs the suite; open creates an empty place.
func Run(t *testing.T, open func(t *testing.T) Place) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, Place){
		"what is put is listed as it was put":                    listed,
		"putting again is an update, never a second object":      updated,
		"names that look alike are groups of their own":          alike,
		"deleting removes one and says when there is none":       deleted,
		"an id that cannot be is not found and touches nothing":  hostile,
		"many at once leave one group of each name":              raced,
		"an empty place lists nothing":                           empty,
		"every member of a group comes back":                     whole,
		"a place that is away says so and takes it up afterward": away,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

func put(t *testing.T, s rules.Store, groups ...rules.Group) {
	t.Helper()
	for _, g := range groups {
		require.NoError(t, s.Put(t.Context(), g))
	}
}

func holds(t *testing.T, p Place, want ...rules.Group) {
	t.Helper()
	got, err := p.Store.List(t.Context())
	require.NoError(t, err)
	slices.SortFunc(want, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i])
	}
	require.Equal(t, len(want), p.Count(), "the back end holds what is listed and nothing else")
}

func listed(t *testing.T, p Place) {
	first, second := Group("shop-cpu", "up > 1"), Group("shop-memory", `{job="a"} < 2`)
	put(t, p.Store, first)
	holds(t, p, first)
	put(t, p.Store, second)
	holds(t, p, first, second)
}

func updated(t *testing.T, p Place) {
	put(t, p.Store, Group("shop-cpu", "up > 1"), Group("shop-cpu", "up > 1"))
	holds(t, p, Group("shop-cpu", "up > 1"))
	put(t, p.Store, Group("shop-cpu", "up > 2"))
	holds(t, p, Group("shop-cpu", "up > 2"))
}

func alike(t *testing.T, p Place) {
	long := strings.Repeat("a", 300)
	var groups []rules.Group
	for _, name := range []string{
		"shop", "Shop", "shop!", "shop/", "../shop", "shop?x=1#y", "läden & mehr", "日本", long, long + "b", `quo"te\`,
		" shop", "%2e",
	} {
		groups = append(groups, Group(name, "up"))
	}
	put(t, p.Store, groups...)
	holds(t, p, groups...)
	for _, g := range groups {
		require.NoError(t, p.Store.Delete(t.Context(), rules.ID(g.Name)), g.Name)
	}
	holds(t, p)
}

func deleted(t *testing.T, p Place) {
	keep, gone := Group("keep", "up"), Group("gone", "up")
	put(t, p.Store, keep, gone)
	require.NoError(t, p.Store.Delete(t.Context(), rules.ID("gone")))
	holds(t, p, keep)
	err := p.Store.Delete(t.Context(), rules.ID("gone"))
	require.Equal(t, problem.NotFound, problem.KindOf(err), "%v", err)
	put(t, p.Store, gone)
	holds(t, p, keep, gone)
}

func hostile(t *testing.T, p Place) {
	g := Group("keep", "up")
	put(t, p.Store, g)
	for _, id := range []string{
		"", ".", "..", "../keep", "/", "keep", "*", "%2e%2e", "a\x00b", "littoral-keep", strings.Repeat("a", 9999),
	} {
		err := p.Store.Delete(t.Context(), id)
		require.Equal(t, problem.NotFound, problem.KindOf(err), "%q: %v", id, err)
	}
	holds(t, p, g)
}

func raced(t *testing.T, p Place) {
	const writers, names = 6, 3
	errs := make(chan error, writers*names)
	var all sync.WaitGroup
	for w := range writers {
		for n := range names {
			all.Go(func() { errs <- insist(t.Context(), p.Store, Group(fmt.Sprint("shop-", n), fmt.Sprint("up > ", w))) })
		}
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	got, err := p.Store.List(t.Context())
	require.NoError(t, err)
	require.Len(t, got, names)
	require.Equal(t, names, p.Count())
}

// insist tries again as long as the store asks to.
func insist(ctx context.Context, s rules.Store, g rules.Group) error {
	for {
		if err := s.Put(ctx, g); problem.KindOf(err) != problem.Unavailable {
			return err
		}
	}
}

func empty(t *testing.T, p Place) { holds(t, p) }

func whole(t *testing.T, p Place) {
	g := rules.Group{
		Name: "whole", Interval: "5s", QueryOffset: "1s", Limit: 7, Labels: map[string]string{"team": "a: b"},
		Rules: []rules.Rule{
			{Record: "job:up:sum", Expr: "sum by (job) (up)", Labels: map[string]string{"yes": "no", "n": "0012"}},
			{
				Alert: "Down", Expr: "up == 0 # not up\nor up < 0", For: "1m", KeepFiringFor: "2m",
				Labels: map[string]string{
					"severity": "page",
				}, Annotations: map[string]string{"text": "{{ $labels.job }}: 'down'\n"},
			},
		},
	}
	put(t, p.Store, g)
	holds(t, p, g)
}

func away(t *testing.T, p Place) {
	if p.Stop == nil {
		t.Skip("this place is never away")
	}
	put(t, p.Store, Group("before", "up"))
	p.Stop()
	ctx := context.WithoutCancel(t.Context())
	require.Equal(t, problem.Unavailable, problem.KindOf(p.Store.Put(ctx, Group("shop", "up"))))
	require.Equal(t, problem.Unavailable, problem.KindOf(p.Store.Delete(ctx, rules.ID("before"))))
}
