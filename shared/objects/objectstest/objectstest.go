// Package objectstest is the test suite that every object store must pass.
package objectstest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/problem"
)

// Run checks the stores that open returns, each empty, against the documentation of package objects.
func Run(t *testing.T, open func(t *testing.T) objects.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, objects.Store){
		"what is put is there":            put,
		"the last one counts":             replace,
		"what is absent":                  absent,
		"keys are listed in order":        list,
		"more keys than one answer holds": many,
		"keys that are none":              keys,
		"readers see all of it or none":   whole,
		"eight megabytes":                 large,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func put(t *testing.T, s objects.Store) {
	for _, body := range [][]byte{[]byte("text"), {}, {0, 255, '\n', 0}} {
		require.NoError(t, s.Put(t.Context(), "a/b-c_d.1/e", body))
		got, err := s.Get(t.Context(), "a/b-c_d.1/e")
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got), "%q", got)
	}
}

func replace(t *testing.T, s objects.Store) {
	require.NoError(t, s.Put(t.Context(), "k", []byte("a longer one")))
	require.NoError(t, s.Put(t.Context(), "k", []byte("new")))
	got, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

func absent(t *testing.T, s objects.Store) {
	_, err := s.Get(t.Context(), "nothing/here")
	require.Equal(t, problem.NotFound, problem.KindOf(err), "%v", err)
	require.NoError(t, s.Delete(t.Context(), "nothing/here"))
	found, err := s.List(t.Context(), "nothing")
	require.NoError(t, err)
	require.Empty(t, found)

	require.NoError(t, s.Put(t.Context(), "k", []byte("x")))
	require.NoError(t, s.Delete(t.Context(), "k"))
	_, err = s.Get(t.Context(), "k")
	require.Equal(t, problem.NotFound, problem.KindOf(err), "%v", err)
}

func list(t *testing.T, s objects.Store) {
	for _, key := range []string{"h/2", "h/10", "h/1", "h-other", "t/1", "h/sub/3"} {
		require.NoError(t, s.Put(t.Context(), key, []byte(key)))
	}
	for prefix, want := range map[string][]string{
		"":     {"h-other", "h/1", "h/10", "h/2", "h/sub/3", "t/1"},
		"h/":   {"h/1", "h/10", "h/2", "h/sub/3"},
		"h/1":  {"h/1", "h/10"},
		"none": nil,
	} {
		got, err := s.List(t.Context(), prefix)
		require.NoError(t, err)
		require.Equal(t, want, got, prefix)
	}
	require.NoError(t, s.Put(t.Context(), "h/10", []byte("0123456789")))
	all, err := s.Describe(t.Context(), "h/1")
	require.NoError(t, err)
	require.Equal(t, []string{"h/1", "h/10"}, objects.Keys(all))
	require.Equal(t, []int64{3, 10}, []int64{all[0].Size, all[1].Size})
	require.WithinDuration(t, time.Now(), all[1].ModifiedAt, time.Hour)
}

func many(t *testing.T, s objects.Store) {
	const n = 1005 // more than S3's limit of one listing, a thousand
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	failed := make(chan error, n)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			failed <- s.Put(t.Context(), fmt.Sprintf("m/%04d", i), nil)
			<-slots
		})
	}
	all.Wait()
	for range n {
		require.NoError(t, <-failed)
	}
	got, err := s.List(t.Context(), "m/")
	require.NoError(t, err)
	require.Len(t, got, n)
	require.Equal(t, "m/0000", got[0])
	require.Equal(t, fmt.Sprintf("m/%04d", n-1), got[n-1])
}

func keys(t *testing.T, s objects.Store) {
	for _, key := range []string{
		"", "/a", "a/", "a//b", "../a", "a/./b", "a b", "ü", "a\x00b", "~a",
		strings.Repeat("a", 201), strings.Repeat("a/", 400) + "a",
	} {
		require.Equal(t, problem.Invalid, problem.KindOf(s.Put(t.Context(), key, nil)), "%q", key)
		_, err := s.Get(t.Context(), key)
		require.Equal(t, problem.Invalid, problem.KindOf(err), "%q", key)
		require.Equal(t, problem.Invalid, problem.KindOf(s.Delete(t.Context(), key)), "%q", key)
	}
}

func whole(t *testing.T, s objects.Store) {
	one, two := bytes.Repeat([]byte("1"), 1<<18), bytes.Repeat([]byte("2"), 1<<17)
	require.NoError(t, s.Put(t.Context(), "k", one))
	writers, failed := sync.WaitGroup{}, make(chan error, 2)
	for _, body := range [][]byte{one, two} {
		writers.Go(func() {
			for range 10 {
				if err := s.Put(t.Context(), "k", body); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	for range 20 {
		got, err := s.Get(t.Context(), "k")
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, one) || bytes.Equal(got, two), "%d bytes", len(got))
	}
	writers.Wait()
	close(failed)
	require.NoError(t, <-failed)
}

func large(t *testing.T, s objects.Store) {
	body := make([]byte, 8<<20)
	_, _ = rand.Read(body)
	require.NoError(t, s.Put(t.Context(), "large", body))
	got, err := s.Get(t.Context(), "large")
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
}
