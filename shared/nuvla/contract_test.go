package nuvla_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/nuvla"
	double "github.com/littoral-project/littoral/test/nuvla"
)

// exchange is a request and its answer as the contract describes them (shared/docs/contracts.md); ids are variables.
type exchange struct {
	Name   string            `json:"name"`
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Query  map[string]string `json:"query"`
	Body   any               `json:"body"`
	Status int               `json:"status"`
	Cookie string            `json:"cookie"` // that the answer sets
	Keep   string            `json:"keep"`   // the variable that the answer's id or location becomes
	Answer map[string]any    `json:"answer"` // what of it is documented
}

// given are the variables of the examples, by name.
type given map[string]string

func (g given) fill(text string) string {
	for name, value := range g {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}

// filled is the value with its variables filled in.
func filled[T any](t *testing.T, g given, v T) (out T) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(g.fill(string(text))), &out))
	return out
}

func examples(t *testing.T) (all []exchange) {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// holds demands that all of want is in have; lists have as many members, unless none are named.
func holds(t *testing.T, want, have any, at string) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		object, ok := have.(map[string]any)
		require.True(t, ok, at)
		for name, inner := range want {
			require.Contains(t, object, name, at)
			holds(t, inner, object[name], at+"."+name)
		}
	case []any:
		list, ok := have.([]any)
		require.True(t, ok, at)
		if len(want) == 0 {
			return
		}
		require.Len(t, list, len(want), at)
		for i := range want {
			holds(t, want[i], list[i], at)
		}
	default:
		require.Equal(t, want, have, at)
	}
}

// TestTheDoubleAnswersAsTheContractSays replays the examples to the double.
func TestTheDoubleAnswersAsTheContractSays(t *testing.T) {
	t.Parallel()
	s := double.Start(t)
	g := given{"key": double.Key, "secret": double.Secret, "nuvlabox": s.AddEdge("harbour", double.Docker)}
	g["credential"], _ = s.Of("credential")[0]["id"].(string)
	var cookies []*http.Cookie
	for _, e := range examples(t) {
		var body io.Reader
		if e.Body != nil {
			text, err := json.Marshal(filled(t, g, e.Body))
			require.NoError(t, err)
			body = bytes.NewReader(text)
		}
		query := url.Values{}
		for name, value := range e.Query {
			query.Set(name, value)
		}
		r, err := http.NewRequestWithContext(t.Context(), e.Method, s.URL+g.fill(e.Path)+"?"+query.Encode(), body)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, e.Status, resp.StatusCode, "%s: %s", e.Name, text)
		var answer map[string]any
		require.NoError(t, json.Unmarshal(text, &answer), e.Name)
		if e.Keep != "" {
			id, _ := answer["location"].(string)
			if made, ok := answer["resource-id"].(string); ok && e.Status == http.StatusCreated {
				id = made
				require.Equal(t, id, resp.Header.Get("Location"), e.Name)
			}
			g[e.Keep] = id
		}
		if e.Cookie != "" {
			cookies = resp.Cookies()
			require.Equal(t, e.Cookie, cookies[0].Name)
		}
		holds(t, filled(t, g, e.Answer), answer, e.Name)
	}
}

// TestTheClientSpeaksAsTheContractSays has the client make the calls of the examples, and answers them as they are.
func TestTheClientSpeaksAsTheContractSays(t *testing.T) {
	t.Parallel()
	g := given{"key": "credential/6f2e0000-0000-4000-8000-000000000009", "secret": "a secret", "credential": "credential/c"}
	for _, name := range []string{"session", "nuvlabox", "project", "module", "deployment", "job"} {
		g[name] = name + "/11111111-0000-4000-8000-000000000001"
	}
	all := examples(t)
	at := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &all[at]
		if r.URL.Path == "/api/session" {
			e = &all[0]
		}
		text, _ := io.ReadAll(r.Body)
		var body any
		if len(text) > 0 {
			_ = json.Unmarshal(text, &body)
		}
		query := map[string]string{}
		for name := range r.URL.Query() {
			query[name] = r.URL.Query().Get(name)
		}
		wrong := r.Method != e.Method || r.URL.Path != g.fill(e.Path) || !maps.Equal(query, e.Query) && len(query)+len(e.Query) > 0
		if !wrong {
			want, _ := json.Marshal(filled(t, g, e.Body))
			have, _ := json.Marshal(body)
			wrong = !bytes.Equal(want, have)
		}
		if wrong {
			http.Error(w, `{"status": 418, "message": "`+e.Name+` was expected"}`, http.StatusTeapot)
			return
		}
		if e.Cookie != "" {
			http.SetCookie(w, &http.Cookie{Name: e.Cookie, Value: "of the session", Path: "/"})
		}
		w.WriteHeader(e.Status)
		_ = json.NewEncoder(w).Encode(filled(t, g, e.Answer))
	}))
	t.Cleanup(server.Close)
	c, err := nuvla.New(server.URL, g["key"], g["secret"], nil)
	require.NoError(t, err)
	for at = 1; at < len(all); at++ {
		e := all[at]
		id := strings.TrimPrefix(g.fill(e.Path), "/api/")
		body := filled(t, g, e.Body)
		kind, rest, single := strings.Cut(id, "/")
		_, action, acts := strings.Cut(rest, "/")
		var err error
		var got string
		switch {
		case e.Method == http.MethodGet && single:
			var read map[string]any
			if err = c.Get(t.Context(), id, &read); err == nil {
				holds(t, filled(t, g, e.Answer), read, e.Name)
			}
		case e.Method == http.MethodGet:
			most := 0
			if e.Query["last"] == "2" {
				most = 2
			}
			var boxes []box
			if boxes, err = nuvla.List[box](t.Context(), c, kind, nuvla.Query{Filter: e.Query["filter"], Most: most}); err == nil {
				require.Equal(t, []box{{g["nuvlabox"], "harbour"}}, boxes)
			}
		case e.Method == http.MethodPost && acts:
			got, err = c.Act(t.Context(), strings.TrimSuffix(id, "/"+action), action, body)
		case e.Method == http.MethodPost:
			got, err = c.Create(t.Context(), kind, body)
		case e.Method == http.MethodPut:
			err = c.Edit(t.Context(), id, body)
		default:
			err = c.Delete(t.Context(), id)
		}
		if e.Status >= http.StatusBadRequest {
			require.True(t, nuvla.IsStatus(err, e.Status), "%s: %v", e.Name, err)
			continue
		}
		require.NoError(t, err, e.Name)
		if e.Keep != "" {
			require.Equal(t, g[e.Keep], got, e.Name)
		}
	}
}
