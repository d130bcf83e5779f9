package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Revision is a descriptor that an application was given.
type Revision struct {
	Number     int64     `json:"revision"` // the version of the application that it made
	At         time.Time `json:"at"`
	Author     string    `json:"author"`               // empty where that is not known any more
	Restores   int64     `json:"restores,omitempty"`   // the revision that a rollback went back to
	Summary    string    `json:"summary,omitempty"`    // what it changed
	Descriptor string    `json:"descriptor,omitempty"` // not in a listing
	Against    int64     `json:"against,omitempty"`    // the revision that Fields compares it with; 0 for the first
	Fields     []Field   `json:"fields,omitempty"`     // not in a listing
}

// Revisions lists the revisions of an application, newest first, without descriptors.
func (c *Client) Revisions(ctx context.Context, id string) ([]Revision, error) {
	var all []Revision
	q := url.Values{}
	for {
		page, err := one[[]Revision](ctx, c, get(revisions(id), q))
		if err != nil {
			return nil, err
		}
		all = append(all, *page...)
		if len(*page) == 0 || (*page)[len(*page)-1].Number <= 1 {
			return all, nil
		}
		q.Set("before", strconv.FormatInt((*page)[len(*page)-1].Number, 10))
	}
}

// Revision returns one revision with its descriptor, 0 for the newest, and what differs from the revision against, 0 for
// the one before it.
func (c *Client) Revision(ctx context.Context, id string, number, against int64) (*Revision, error) {
	which, q := "latest", url.Values{}
	if number != 0 {
		which = strconv.FormatInt(number, 10)
	}
	if against != 0 {
		q.Set("against", strconv.FormatInt(against, 10))
	}
	return one[Revision](ctx, c, get(revisions(id)+"/"+which, q))
}

// RollBack gives an application the descriptor of the revision, 0 for the one before the newest.
func (c *Client) RollBack(ctx context.Context, id string, to int64) (*Application, error) {
	r := request{method: http.MethodPut, path: groups + "/rollback/" + url.PathEscape(id)}
	if to != 0 {
		r.query = url.Values{"to": {strconv.FormatInt(to, 10)}}
		r.idempotent = true
	}
	return one[Application](ctx, c, r)
}

func revisions(id string) string { return groups + "/" + url.PathEscape(id) + "/revisions" }
