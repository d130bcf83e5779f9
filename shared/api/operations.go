package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Filter restricts a listing of applications or jobs; empty fields are ignored.
type Filter struct {
	State        string // of a job
	Orchestrator string
	Owner        string // agent
	App          string // name or full id of an application
	Light        bool   // without manifests, which are most of an answer
	Health       string // of an application; not for jobs
}

func (f Filter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": f.State, "orchestrator": f.Orchestrator, "owner": f.Owner, "app": f.App, "health": f.Health,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Light {
		q.Set("manifests", "false")
	}
	return q
}

const (
	groups    = "/jobmanager/groups"
	mediaYAML = "application/yaml"
	mediaJSON = "application/json"
)

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query, idempotent: true}
}

// Applications lists the applications, oldest first; a state, orchestrator or owner selects those with at least one
// matching job.
func (c *Client) Applications(ctx context.Context, f Filter) ([]Application, error) {
	return list[Application](ctx, c, get(groups, f.query()))
}

// Application returns one application.
func (c *Client) Application(ctx context.Context, id string) (*Application, error) {
	return one[Application](ctx, c, get(groups+"/"+url.PathEscape(id), nil))
}

// CreateApplication submits a descriptor. A repeat with the same key returns the first application, so the call may be
// repeated if its answer was lost.
func (c *Client) CreateApplication(ctx context.Context, document []byte, key string, strict bool) (*Application, error) {
	r := request{
		method: http.MethodPost, path: groups, query: strictly(strict), media: mediaYAML, body: document, key: key,
		idempotent: key != "",
	}
	return one[Application](ctx, c, r)
}

// CreateFirst is CreateApplication on condition that no application has the name; otherwise the error is
// PreconditionFailed.
func (c *Client) CreateFirst(ctx context.Context, document []byte, key string, strict bool) (*Application, error) {
	r := request{
		method: http.MethodPost, path: groups, query: strictly(strict), media: mediaYAML, body: document, key: key,
		idempotent: key != "", first: true,
	}
	return one[Application](ctx, c, r)
}

// UpdateApplication gives an application a new descriptor.
func (c *Client) UpdateApplication(ctx context.Context, id string, document []byte, strict bool) (*Application, error) {
	path := groups + "/" + url.PathEscape(id)
	r := request{
		method: http.MethodPut, path: path, query: strictly(strict), media: mediaYAML, body: document, idempotent: true,
	}
	return one[Application](ctx, c, r)
}

// strictly is the query that has the warnings of a descriptor count as errors.
func strictly(strict bool) url.Values {
	if !strict {
		return nil
	}
	return url.Values{"strict": {"true"}}
}

// StartApplication asks a stopped application to run again.
func (c *Client) StartApplication(ctx context.Context, id string) (*Application, error) {
	path := groups + "/start/" + url.PathEscape(id)
	return one[Application](ctx, c, request{method: http.MethodPut, path: path, idempotent: true})
}

// StopApplication removes everything that runs of an application and keeps the application.
func (c *Client) StopApplication(ctx context.Context, id string) (*Application, error) {
	path := groups + "/stop/" + url.PathEscape(id)
	return one[Application](ctx, c, request{method: http.MethodPut, path: path, idempotent: true})
}

// DeleteApplication deletes an application. A running one is refused unless stop is set: then it is stopped first, and
// deleted when its last component is gone. gone reports whether it is gone already.
func (c *Client) DeleteApplication(ctx context.Context, id string, stop bool) (a *Application, gone bool, err error) {
	// Not retried: after a DELETE whose answer was lost, a second one gets a 404.
	r := request{method: http.MethodDelete, path: groups + "/" + url.PathEscape(id)}
	if stop {
		r.query = url.Values{"stop": {"true"}}
	}
	a = &Application{}
	h, err := c.do(ctx, r, a)
	if err != nil {
		return nil, false, err
	}
	return a, h.status == http.StatusOK, nil
}

// Jobs lists the jobs, oldest first.
func (c *Client) Jobs(ctx context.Context, f Filter) ([]Job, error) {
	return list[Job](ctx, c, get("/jobmanager/jobs", f.query()))
}

// Job returns one job.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	return one[Job](ctx, c, get("/jobmanager/jobs/"+url.PathEscape(id), nil))
}

// HistoryQuery selects entries. App "" means all applications; a negative After means the newest entries.
type HistoryQuery struct {
	App    string   // full id
	After  int64    // entries with a higher id, oldest first
	Limit  int      // 0 = the server's default
	Events []string // of these kinds only; none = all
}

// History lists entries, oldest first. The newest entries are read up to the limit, in as many requests as needed.
// Entries after an id come in one limited answer: to get all of them, a caller asks again after the last one until
// there are none.
func (c *Client) History(ctx context.Context, h HistoryQuery) ([]Entry, error) {
	return c.history(ctx, "/jobmanager/history", h)
}

// ArchivedHistory lists old entries that were moved to the archive, in the same way as History.
func (c *Client) ArchivedHistory(ctx context.Context, h HistoryQuery) ([]Entry, error) {
	return c.history(ctx, "/jobmanager/history/archived", h)
}

func (c *Client) history(ctx context.Context, path string, h HistoryQuery) ([]Entry, error) {
	q := url.Values{}
	if h.App != "" {
		q.Set("app", h.App)
	}
	if h.After >= 0 {
		q.Set("after", strconv.FormatInt(h.After, 10))
	}
	if h.Limit > 0 {
		q.Set("limit", strconv.Itoa(h.Limit))
	}
	if len(h.Events) > 0 {
		q.Set("event", strings.Join(h.Events, ","))
	}
	entries := []Entry{}
	for {
		var page []Entry
		answer, err := c.do(ctx, get(path, q), &page)
		if err != nil {
			return nil, err
		}
		entries = append(page, entries...)
		before := linked(answer.header.Values("Link"), "prev", "before")
		if before == "" || before == q.Get("before") || len(entries) >= h.Limit {
			return entries, nil
		}
		q.Set("before", before)
		q.Set("limit", strconv.Itoa(h.Limit-len(entries)))
	}
}

// Plan shows what submitting the descriptor would change. app is the application to update; "" means the only one with
// that name, else a new one.
func (c *Client) Plan(ctx context.Context, document []byte, app string, strict bool) (*Preview, error) {
	r := ask("/matchmaker/plan", document, app)
	if strict {
		if r.query == nil {
			r.query = url.Values{}
		}
		r.query.Set("strict", "true")
	}
	return one[Preview](ctx, c, r)
}

// Explain returns where the components of a descriptor would run, why, and why nowhere else.
func (c *Client) Explain(ctx context.Context, document []byte) (*Answer, error) {
	return one[Answer](ctx, c, ask("/matchmaker/explain", document, ""))
}

// ExplainApplication returns why the components of an application are where they are.
func (c *Client) ExplainApplication(ctx context.Context, id string) (*Answer, error) {
	return one[Answer](ctx, c, ask("/matchmaker/explain", nil, id))
}

// ask makes a request that changes nothing.
func ask(path string, document []byte, app string) request {
	r := request{method: http.MethodPost, path: path, media: mediaYAML, body: document, idempotent: true}
	if app != "" {
		r.query = url.Values{"app": {app}}
	}
	return r
}

// Taxonomy returns the infrastructure as it is now.
func (c *Client) Taxonomy(ctx context.Context) (*Taxonomy, error) {
	return one[Taxonomy](ctx, c, get("/aggregator/", nil))
}

// Fleet returns the simulated infrastructure of a laptop host.
func (c *Client) Fleet(ctx context.Context) (*Fleet, error) {
	return one[Fleet](ctx, c, get("/fleet", nil))
}

// ChangeFleet carries out drain, restore, set, cut or heal and returns the resulting state of the cluster.
func (c *Client) ChangeFleet(ctx context.Context, command string, in FleetCommand) (*FleetCluster, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	path := "/fleet/" + url.PathEscape(command)
	r := request{method: http.MethodPost, path: path, media: mediaJSON, body: body, idempotent: true}
	return one[FleetCluster](ctx, c, r)
}

// SetComponents makes the rollouts of components fail, or succeed again, and returns the resulting state of the fleet.
func (c *Client) SetComponents(ctx context.Context, set map[string]string) (*Fleet, error) {
	body, err := json.Marshal(FleetCommand{Set: set})
	if err != nil {
		return nil, err
	}
	r := request{method: http.MethodPost, path: "/fleet/set", media: mediaJSON, body: body, idempotent: true}
	return one[Fleet](ctx, c, r)
}

func one[T any](ctx context.Context, c *Client, r request) (*T, error) {
	v := new(T)
	if _, err := c.do(ctx, r, v); err != nil {
		return nil, err
	}
	return v, nil
}

// Session is who the server takes a caller for.
type Session struct {
	SignedIn bool       `json:"signedIn"`
	Refused  string     `json:"refused,omitempty"` // why what was sent is not taken
	Subject  string     `json:"subject,omitempty"`
	Name     string     `json:"name,omitempty"`
	Roles    []string   `json:"roles,omitempty"`
	Agent    string     `json:"agent,omitempty"`
	Expires  *time.Time `json:"expires,omitempty"`
	Issuer   string     `json:"issuer,omitempty"`
}

// Session returns who the caller is.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	return one[Session](ctx, c, get("/auth/session", nil))
}

// Provider is the issuer that programs get tokens from.
type Provider struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"clientId"`
	Audience string   `json:"audience"`
	Scopes   []string `json:"scopes"`
}

// Provider returns the issuer.
func (c *Client) Provider(ctx context.Context) (*Provider, error) {
	return one[Provider](ctx, c, get("/auth/provider", nil))
}
