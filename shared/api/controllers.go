package api

import (
	"context"
	"encoding/json"
	"net/http"
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
