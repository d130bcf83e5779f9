package api

import (
	"context"
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
