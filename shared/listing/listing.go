// Package listing reads and answers the listings over HTTP that several functions share: those of jobs and applications,
// and the history, whether it is in the store or in the archive.
package listing

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/paging"
)

// parameters are those that the listings of jobs and of applications share.
var parameters = []string{"state", "orchestrator", "owner", "app", "manifests", "limit", "cursor"}

// Jobs reads the parameters of a listing of jobs: state, orchestrator, owner, app, manifests, limit and cursor.
func Jobs(r *http.Request) (job.Filter, paging.Page, error) {
	q := function.NewQuery(r, parameters...)
	f, page := jobs(q)
	return f, page, q.Err()
}

// Applications reads those of a listing of applications: the same, and health, which is one of healths.
func Applications(r *http.Request, healths ...string) (f job.Filter, health string, page paging.Page, err error) {
	q := function.NewQuery(r, append([]string{"health"}, parameters...)...)
	f, page = jobs(q)
	health = q.OneOf("health", healths...)
	return f, health, page, q.Err()
}

func jobs(q *function.Query) (job.Filter, paging.Page) {
	f := job.Filter{
		State:        q.OneOf("state", string(job.Created), string(job.Progressing), string(job.Finished), string(job.Degraded)),
		Orchestrator: q.OneOf("orchestrator", kinds.Names()...),
		Owner:        q.Text("owner"),
		Application:  q.Text("app"),
		Light:        q.OneOf("manifests", "true", "false") == "false",
	}
	return f, q.Page()
}

// History reads the query of a request: ?after= or ?before= and ?limit=, ?app= narrows to one application, ?event= to one
// kind of event or several, with commas between, ?data=false leaves out their data. The error is Malformed.
func History(r *http.Request) (history.Query, error) {
	query := function.NewQuery(r, "app", "after", "before", "limit", "event", "data")
	q := history.Query{
		Application: query.ID("app"),
		After:       query.Int("after", -1, 0, math.MaxInt64),
		Before:      query.Int("before", math.MaxInt64, 0, math.MaxInt64),
		Limit:       int(query.Int("limit", paging.DefaultLimit, 1, paging.MaxLimit)),
		Light:       query.OneOf("data", "true", "false") == "false",
	}
	if text := query.Text("event"); text != "" {
		q.Events = strings.Split(text, ",")
	}
	query.Either("after", "before") // each says which way to read
	return q, query.Err()
}

// WriteHistory answers the entries. With the newest ones it adds a Link to those before them, if there may be any: the answer
// has as many as asked for, or was cut short since entries are large.
func WriteHistory(w http.ResponseWriter, r *http.Request, q *history.Query, entries []history.Entry, cut bool) error {
	if q.After < 0 && len(entries) > 0 && (cut || len(entries) == q.Limit) {
		function.Link(w, r, "prev", "before", strconv.FormatInt(entries[0].ID, 10))
	}
	if q.Light { // which the archive does not know
		for i := range entries {
			entries[i].Data = nil
		}
	}
	return function.WriteJSON(w, http.StatusOK, entries)
}
