package contracts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

type revision struct {
	Revision   int64
	Author     string
	Restores   int64
	Summary    string
	Descriptor string
	Against    int64
	Fields     []struct {
		Component, Object, Path, Action string
		From, To                        any
		Restarts                        bool
	}
}

// TestRevisions: every descriptor is kept with its author, can be compared, and can be gone back to.
func TestRevisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop)
	path := "/jobmanager/groups/" + g.ID
	next := strings.Replace(hubShop, "name: shop\n", "name: shop\ndescription: second\n", 1)
	w.operator.call(t, http.MethodPut, path, next).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, path, next).is(t, http.StatusOK) // the same again is none

	list := decode[[]revision](t, w.viewer.get(t, path+"/revisions"))
	require.Len(t, list, 2)
	require.EqualValues(t, 2, list[0].Revision)
	require.NotEmpty(t, list[0].Author)
	require.Equal(t, list[1].Author, list[0].Author)
	require.Empty(t, list[0].Descriptor, "not in a listing")

	first := decode[revision](t, w.viewer.get(t, path+"/revisions/1"))
	require.Equal(t, hubShop, first.Descriptor)
	require.Empty(t, first.Fields)
	latest := decode[revision](t, w.viewer.get(t, path+"/revisions/latest"))
	require.Equal(t, next, latest.Descriptor)
	require.EqualValues(t, 1, latest.Against)
	require.Len(t, latest.Fields, 1)
	require.Equal(t, "description", latest.Fields[0].Path)
	require.Equal(t, "second", latest.Fields[0].To)

	w.operator.call(t, http.MethodPut, "/jobmanager/groups/rollback/"+g.ID, "").is(t, http.StatusOK)
	third := decode[revision](t, w.viewer.get(t, path+"/revisions/3"))
	require.Equal(t, hubShop, third.Descriptor)
	require.EqualValues(t, 1, third.Restores)
	require.Contains(t, third.Summary, "back to revision 1")
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/rollback/"+g.ID+"?to=1", "").is(t, http.StatusOK)
	require.Len(t, decode[[]revision](t, w.viewer.get(t, path+"/revisions")), 3, "it is that already")

	w.unchanged(t, func() {
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/rollback/"+g.ID+"?to=9", "").refused(t, http.StatusNotFound)
		w.operator.call(t, http.MethodPut, "/jobmanager/groups/rollback/"+g.ID, "", "If-Match", `"1"`).
			refused(t, http.StatusPreconditionFailed)
		w.viewer.call(t, http.MethodGet, path+"/revisions/0", "").refused(t, http.StatusBadRequest)
		w.viewer.call(t, http.MethodGet, path+"/revisions/9", "").refused(t, http.StatusNotFound)
		w.viewer.call(t, http.MethodGet, "/jobmanager/groups/"+uuid.NewString()+"/revisions", "").refused(t, http.StatusNotFound)
	})
}

// TestTheFirstRevisionHasNoneBefore: there is nothing to go back to.
func TestTheFirstRevisionHasNoneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/rollback/"+g.ID, "").refused(t, http.StatusConflict)
}

// TestARevisionHasItsAuthor: whichever operation the descriptor came by.
func TestARevisionHasItsAuthor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.submit(t, hubShop)
	next := strings.Replace(hubShop, "name: shop\n", "name: shop\ndescription: by the shell\n", 1)
	w.operator.call(t, http.MethodPut, "/api/v3/deployment/"+g.ID, next).is(t, http.StatusOK)
	list := decode[[]revision](t, w.viewer.get(t, "/jobmanager/groups/"+g.ID+"/revisions"))
	require.Len(t, list, 2)
	require.NotEmpty(t, list[0].Author)
	require.Equal(t, list[1].Author, list[0].Author)
}
