package icos_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
	"github.com/littoral-project/littoral/shared/telemetry/rules/icos"
	"github.com/littoral-project/littoral/shared/telemetry/rules/rulestest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// service behaves like the rules service of ICOS: every POST creates a file with a name of its own choice, even if the
// same group was posted before.
type service struct {
	mu    sync.Mutex
	posts int
	files map[string]rules.Group
	named bool // it names a file after its content
	stuck bool // it removes nothing
	db    *store.DB
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/rules", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var in struct{ Data rules.Groups }
		if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Data.Groups) != 1 {
			http.Error(w, `{"error": "bad request"}`, http.StatusBadRequest)
			return
		}
		s.posts++
		file := fmt.Sprintf("rule file %d.yml", s.posts)
		if s.named {
			file = in.Data.Groups[0].Rules[0].Expr
		}
		s.files[file] = in.Data.Groups[0]
		_ = json.NewEncoder(w).Encode(map[string]string{"file": file, "status": "success"})
	})
	mux.HandleFunc("DELETE /api/v1/rules/{file}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stuck {
			http.Error(w, "disk is away", http.StatusInternalServerError)
			return
		}
		if _, ok := s.files[r.PathValue("file")]; !ok {
			http.Error(w, "no such file", http.StatusNotFound)
			return
		}
		delete(s.files, r.PathValue("file"))
	})
	return mux
}

func open(t *testing.T) (*icos.Store, *service, *httptest.Server) {
	t.Helper()
	s := &service{files: map[string]rules.Group{}}
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	remote, err := rules.NewRemote(server.URL+"/api/v1/rules", nil, server.Client())
	require.NoError(t, err)
	db := storetest.New(t)
	s.db = db
	return icos.New(remote, db), s, server
}

func TestStore(t *testing.T) {
	t.Parallel()
	rulestest.Run(t, func(t *testing.T) rulestest.Place {
		store, s, server := open(t)
		return rulestest.Place{Store: store, Count: func() int { return len(s.files) }, Stop: server.Close}
	})
}

func TestWhatTheServiceHasIsNotSentAgain(t *testing.T) {
	t.Parallel()
	store, s, _ := open(t)
	for range 3 {
		require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up")))
	}
	require.Equal(t, 1, s.posts)
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up > 1")))
	require.Equal(
		t,
		[]string{"rule file 2.yml"},
		slices.Collect(maps.Keys(s.files)),
		"the former file went after the new one came",
	)
}

func TestAFileThatIsGoneAlreadyIsAsGood(t *testing.T) {
	t.Parallel()
	store, s, _ := open(t)
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up")))
	clear(s.files)
	require.NoError(t, store.Delete(t.Context(), rules.ID("shop")))
	list, err := store.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestWhatCouldNotBeRemovedIsRemovedLater: otherwise the former rules would fire forever.
func TestWhatCouldNotBeRemovedIsRemovedLater(t *testing.T) {
	t.Parallel()
	store, s, _ := open(t)
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up > 1")))
	s.stuck = true
	for _, expr := range []string{"up > 2", "up > 3", "up > 3"} {
		require.Error(t, store.Put(t.Context(), rulestest.Group("shop", expr)))
	}
	require.Len(t, s.files, 3, "the new one is there before the others go")
	s.stuck = false
	for range 2 {
		require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up > 3")))
		require.Equal(t, []string{"rule file 3.yml"}, slices.Collect(maps.Keys(s.files)))
	}
	s.stuck = true
	require.Error(t, store.Put(t.Context(), rulestest.Group("shop", "up > 4")))
	require.Error(t, store.Delete(t.Context(), rules.ID("shop")))
	s.stuck = false
	require.NoError(t, store.Delete(t.Context(), rules.ID("shop")))
	require.Empty(t, s.files)
}

func TestAFileThatIsCalledAsItWasOnceStays(t *testing.T) {
	t.Parallel()
	store, s, _ := open(t)
	s.named = true
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up > 1")))
	s.stuck = true
	require.Error(t, store.Put(t.Context(), rulestest.Group("shop", "up > 2")))
	s.stuck = false
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up > 1")))
	require.Equal(t, []string{"up > 1"}, slices.Collect(maps.Keys(s.files)))
}

// TestATransactionThatRunsAgainMakesNoSecondFile: Postgres may ask for that at any time, and a file that is not recorded
// fires forever.
func TestATransactionThatRunsAgainMakesNoSecondFile(t *testing.T) {
	t.Parallel()
	store, s, _ := open(t)
	_, err := s.db.Exec(t.Context(), `create sequence attempts;
create function fail_once() returns trigger language plpgsql as $$ begin
  if nextval('attempts') = 1 then raise exception using errcode = '40001'; end if;
  return new;
end $$;
create trigger fail_once before insert on rule_files for each row execute function fail_once()`)
	require.NoError(t, err)
	require.NoError(t, store.Put(t.Context(), rulestest.Group("shop", "up")))
	require.Equal(t, []string{"rule file 1.yml"}, slices.Collect(maps.Keys(s.files)))
	require.NoError(t, store.Delete(t.Context(), rules.ID("shop")))
	require.Empty(t, s.files)
}
