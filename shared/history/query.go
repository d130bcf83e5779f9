package history

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/function"
)

// Query selects entries.
type Query struct {
	Application *uuid.UUID // nil = all
	After       int64      // entries with a higher id, oldest first; negative = the newest ones
	Before      int64      // the newest ones with a lower id
	Limit       int
	Events      []string // of these kinds; none = all
}

// Asked reads the query of a request: ?after= or ?before= and ?limit=, ?app= narrows to one application, ?event= to one
// kind of event or several, with commas between. The error is Malformed.
func Asked(r *http.Request) (Query, error) {
	query := function.NewQuery(r, "app", "after", "before", "limit", "event")
	q := Query{
		Application: query.ID("app"),
		After:       query.Int("after", -1, 0, math.MaxInt64),
		Before:      query.Int("before", math.MaxInt64, 0, math.MaxInt64),
		Limit:       int(query.Int("limit", function.DefaultLimit, 1, function.MaxLimit)),
	}
	if text := query.Text("event"); text != "" {
		q.Events = strings.Split(text, ",")
	}
	query.Either("after", "before") // each says which way to read
	return q, query.Err()
}

// Write answers the entries. With the newest ones it adds a Link to those before them, if there may be any: the answer
// has as many as asked for, or was cut short since entries are large.
func (q *Query) Write(w http.ResponseWriter, r *http.Request, entries []Entry, cut bool) error {
	if q.After < 0 && len(entries) > 0 && (cut || len(entries) == q.Limit) {
		function.Link(w, r, "prev", "before", strconv.FormatInt(entries[0].ID, 10))
	}
	return function.WriteJSON(w, http.StatusOK, entries)
}
