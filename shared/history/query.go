package history

import (
	"math"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/function"
)

// Query selects entries.
type Query struct {
	Application *uuid.UUID // nil = all
	After       int64      // entries with a higher id, oldest first; negative = the newest ones
	Limit       int
	Events      []string // of these kinds; none = all
}

// Asked reads the query of a request: ?after= and ?limit=, ?app= narrows to one application, ?event= to one kind of event
// or several, with commas between. The error is Malformed.
func Asked(r *http.Request) (Query, error) {
	query := function.NewQuery(r, "app", "after", "limit", "event")
	q := Query{
		Application: query.ID("app"),
		After:       query.Int("after", -1, 0, math.MaxInt64),
		Limit:       int(query.Int("limit", function.DefaultLimit, 1, function.MaxLimit)),
	}
	if text := query.Text("event"); text != "" {
		q.Events = strings.Split(text, ",")
	}
	return q, query.Err()
}
