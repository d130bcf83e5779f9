// Package cypher answers questions about the metadata graph in Cypher.
package cypher

import (
	"encoding/json"
	"mime"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/decode"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/cypher"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /mdm/graph/cypher", Role: auth.Viewer, Aliases: []string{"POST /graph/cypher"}}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct {
	db   *store.DB
	Role string `envconfig:"MDM_QUERY_ROLE"` // of Postgres, that may read and nothing else
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(f)
}

// Truncated is the header that says that there are more rows than an answer takes.
const Truncated = "Littoral-Truncated"

// Handle answers the rows of the query in the body: a text, or an object of query and parameters.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	body, err := function.Body(r)
	if err != nil {
		return err
	}
	asked := struct {
		Query      string                     `json:"query"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}{Query: string(body)}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == "application/json" {
		asked.Query = ""
		if err := decode.JSON(body, &asked); err != nil {
			return err
		}
	}
	answer, err := cypher.Run(r.Context(), f.db, asked.Query, asked.Parameters, cypher.Bounds{Role: f.Role})
	if err != nil {
		return err
	}
	if answer.Truncated {
		w.Header().Set(Truncated, "true")
	}
	return function.WriteJSON(w, http.StatusOK, answer.Rows)
}
