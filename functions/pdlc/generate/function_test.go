package generate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/pdlc/generate"
	"github.com/littoral-project/littoral/shared/generator"
	"github.com/littoral-project/littoral/shared/problem"
)

func ask(t *testing.T, file, query string) (*httptest.ResponseRecorder, error) {
	t.Helper()
	f, err := generate.New(nil)
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pdlc/generated/"+file+query, nil)
	r.SetPathValue("generated", file)
	w := httptest.NewRecorder()
	return w, f.Handle(w, r)
}

// TestAWorldOverHTTP is the one that the command writes.
func TestAWorldOverHTTP(t *testing.T) {
	t.Parallel()
	o := generator.Default()
	o.Nodes, o.Seed = 12, 7
	world, err := generator.New(o)
	require.NoError(t, err)
	for _, f := range world.Files(generator.Measured{For: 30 * time.Minute, Step: 5 * time.Minute, Legacy: true}) {
		var want strings.Builder
		require.NoError(t, f.Write(&want))
		got, err := ask(t, f.Name, "?nodes=12&seed=7&minutes=30&step=300&legacy=true")
		require.NoError(t, err)
		require.Equal(t, want.String(), got.Body.String(), f.Name)
		require.Equal(t, f.Type, got.Header().Get("Content-Type"))
	}
}

// TestAWorldIsBounded: what would be too much is refused before anything is made, with the parameter's name.
func TestAWorldIsBounded(t *testing.T) {
	t.Parallel()
	for query, path := range map[string]string{
		"?nodes=1001": "query.nodes", "?nodes=0": "query.nodes", "?nodes=3&clusters=4": "query.clusters", "?nodes=1000&minutes=44640": "query.minutes",
		"?step=7200&minutes=60": "query.step", "?users=10001": "query.users", "?seed=-1": "query.seed", "?edges=1": "query.edges",
	} {
		w, err := ask(t, "data.csv", query)
		var p *problem.Error
		require.ErrorAs(t, err, &p, query)
		require.Equal(t, path, p.Fields[0].Path, query)
		require.Zero(t, w.Body.Len())
	}
	_, err := ask(t, "events-99.json", "")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
	_, err = ask(t, "../etc", "")
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}
