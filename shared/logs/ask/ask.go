// Package ask reads from a request which lines of logs it is about.
package ask

import (
	"time"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/logs"
)

// Names lists the parameters.
func Names() []string { return []string{"component", "since", "until", "tail", "text"} }

const reach = time.Hour // how far back an answer goes that is not asked for more

// Query reads the parameters, without the application. Without tail there are as many lines as usual.
func Query(q *function.Query, now time.Time, usual, most int) logs.Query {
	ask := logs.Query{
		Component: q.Text("component"), Text: q.Text("text"), Newest: true, Limit: int(q.Int("tail", int64(usual), 1, int64(most))),
		From: now.Add(-reach),
	}
	if at, given := q.Instant("since", now); given {
		ask.From = at
	}
	ask.To, _ = q.Instant("until", now)
	return ask
}
