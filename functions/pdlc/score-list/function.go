// Package scorelist lists what nodes are worth for each profile, as JSON, as CODECO's ca.csv, or as custom resources.
package scorelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /pdlc/scores", Role: auth.Viewer}}, Class: function.Medium}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the scores of a profile, or of all, in the form that ?format= says: json, csv or cr.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "profile", "format")
	name, format := query.Text("profile"), query.OneOf("format", "json", "csv", "cr")
	if err := query.Err(); err != nil {
		return err
	}
	scores, err := awareness.Scores(r.Context(), f.db, name)
	if err != nil {
		return err
	}
	if format == "" || format == "json" {
		return function.WriteJSON(w, http.StatusOK, scores)
	}
	nodes, err := awareness.Nodes(r.Context(), f.db)
	if err != nil {
		return err
	}
	if format == "csv" {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		return awareness.WriteCSV(w, nodes, scores)
	}
	w.Header().Set("Content-Type", "application/yaml")
	return awareness.WriteObjects(w, nodes, scores)
}
