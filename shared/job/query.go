package job

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/function"
)

// Query reads the parameters that the listings of jobs and of applications share: state, orchestrator, owner, app,
// manifests, limit and cursor.
func Query(r *http.Request) (Filter, function.Page, error) {
	q := function.NewQuery(r, "state", "orchestrator", "owner", "app", "manifests", "limit", "cursor")
	f := Filter{
		State:        q.OneOf("state", string(Created), string(Progressing), string(Finished), string(Degraded)),
		Orchestrator: q.OneOf("orchestrator", Orchestrators...),
		Owner:        q.Text("owner"),
		Application:  q.Text("app"),
		Light:        q.OneOf("manifests", "true", "false") == "false",
	}
	page := q.Page()
	return f, page, q.Err()
}
