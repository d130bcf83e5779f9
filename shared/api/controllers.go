package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Controller is one that has registered at the lighthouse.
type Controller struct {
	Name      string     `json:"name"`
	Address   string     `json:"address"`
	SeenAt    time.Time  `json:"seenAt"`
	Healthy   *bool      `json:"healthy,omitempty"` // as the lighthouse found; nil = it has not asked yet
	CheckedAt *time.Time `json:"checkedAt,omitempty"`
	Trouble   string     `json:"trouble,omitempty"`
}

// State is Healthy, Unhealthy or Unknown.
func (c *Controller) State() string {
	switch {
	case c.Healthy == nil:
		return "Unknown"
	case *c.Healthy:
		return "Healthy"
	}
	return "Unhealthy"
}

// Controllers lists those that the lighthouse of this server knows.
func (c *Client) Controllers(ctx context.Context) ([]Controller, error) {
	list := []Controller{}
	_, err := c.do(ctx, get("/api/v3/controller/", nil), &list)
	return list, err
}

// Handover is how far the move of an application to another controller is.
type Handover struct {
	Application string     `json:"application"`
	Side        string     `json:"side"`  // giver, receiver
	State       string     `json:"state"` // home, offered, released; accepted, held, returning, over
	Peer        string     `json:"peer,omitempty"`
	Epoch       int64      `json:"epoch"`
	Until       *time.Time `json:"until,omitempty"`
	Recalled    bool       `json:"recalled"`
	Reason      string     `json:"reason,omitempty"`
	ChangedAt   time.Time  `json:"changedAt"`
}

// Handovers lists them, those that changed last first.
func (c *Client) Handovers(ctx context.Context) ([]Handover, error) {
	list, err := one[[]Handover](ctx, c, get("/controller/handovers", nil))
	if err != nil {
		return nil, err
	}
	return *list, nil
}

// HandOver begins to move an application to a controller; "" means any that takes it.
func (c *Client) HandOver(ctx context.Context, id, to string) (*Handover, error) {
	return c.move(ctx, map[string]any{"application": id, "to": to})
}

// BringHome begins to move an application back to the controller that it was submitted to.
func (c *Client) BringHome(ctx context.Context, id string) (*Handover, error) {
	return c.move(ctx, map[string]any{"application": id, "home": true})
}

func (c *Client) move(ctx context.Context, what map[string]any) (*Handover, error) {
	body, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	return one[Handover](ctx, c, request{method: http.MethodPost, path: "/controller/handovers", media: mediaJSON, body: body, idempotent: true})
}

// AddController tells the lighthouse of a controller; fresh reports whether it was unknown.
func (c *Client) AddController(ctx context.Context, about Controller) (fresh bool, err error) {
	body, err := json.Marshal(map[string]string{"name": about.Name, "address": about.Address})
	if err != nil {
		return false, err
	}
	h, err := c.do(ctx, request{method: http.MethodPost, path: "/api/v3/controller/", media: mediaJSON, body: body, idempotent: true}, nil)
	if err != nil {
		return false, err
	}
	return h.status == http.StatusCreated, nil
}

// theirs is what another controller recorded of an application.
type theirs[T any] struct {
	Controller string `json:"controller"`
	Records    T      `json:"records"`
}

func askTheirs[T any](ctx context.Context, c *Client, app, records string, q url.Values) (controller string, list T, err error) {
	answer, err := one[theirs[T]](ctx, c, get("/controller/applications/"+app+"/"+records, q))
	if err != nil {
		return "", list, err
	}
	return answer.Controller, answer.Records, nil
}

// PeerHistory lists what the controller recorded that has the application from this one, or had it last, or gave it: entries with an
// id of that controller above after, or the newest ones if that is negative, oldest first.
func (c *Client) PeerHistory(ctx context.Context, app string, after int64, limit int) (controller string, list []Entry, err error) {
	q := url.Values{}
	if after >= 0 {
		q.Set("after", strconv.FormatInt(after, 10))
	}
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	controller, list, err = askTheirs[[]Entry](ctx, c, app, "history", q)
	for i := range list {
		list[i].Controller = controller
	}
	return controller, list, err
}

// PeerLogs reads lines and moves that are recorded at that controller.
func (c *Client) PeerLogs(ctx context.Context, q LogsQuery) (controller string, found Logs, err error) {
	values := q.query()
	values.Del("app")
	return askTheirs[Logs](ctx, c, q.App, "logs", values)
}
