package api

import (
	"context"
	"net/url"
	"slices"
)

// LinkSide is what an application has in one cluster so that its components reach each other across clusters.
type LinkSide struct {
	Orchestrator string `json:"orchestrator"`
	Cluster      string `json:"cluster"`
	State        string `json:"state"`
	Message      string `json:"message,omitempty"`
	Links        []Link `json:"links"`
}

// Link lets the clients of a Service in one cluster reach its servers in others.
type Link struct {
	Service string   `json:"service"`
	Cluster string   `json:"cluster"` // of the clients
	Clients []string `json:"clients"` // components
	Servers []struct {
		Component string `json:"component"`
		Cluster   string `json:"cluster"`
	} `json:"servers"`
}

// Calls reports whether the component is one of its clients.
func (l *Link) Calls(component string) bool { return slices.Contains(l.Clients, component) }

// Links returns what an application has in each cluster for its links. The error is NotFound where the server has none.
func (c *Client) Links(ctx context.Context, app string) ([]LinkSide, error) {
	return list[LinkSide](ctx, c, get("/clusterlink/links", url.Values{"application": {app}}))
}
