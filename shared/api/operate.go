package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Scale changes how many replicas a component has.
func (c *Client) Scale(ctx context.Context, id, component string, replicas int) (*Application, error) {
	q := url.Values{"component": {component}, "replicas": {strconv.Itoa(replicas)}}
	r := request{method: http.MethodPut, path: groups + "/scale/" + url.PathEscape(id), query: q, idempotent: true}
	return one[Application](ctx, c, r)
}

// Pin fixes a component to a node; with an empty cluster it may go anywhere again.
func (c *Client) Pin(ctx context.Context, id, component, cluster, node string) (*Application, error) {
	q := url.Values{"component": {component}}
	if cluster != "" {
		q.Set("cluster", cluster)
		q.Set("node", node)
	}
	r := request{method: http.MethodPut, path: groups + "/pin/" + url.PathEscape(id), query: q, idempotent: true}
	return one[Application](ctx, c, r)
}

// Cordon is a node that takes nothing new.
type Cordon struct {
	Cluster    string     `json:"cluster"`
	Node       string     `json:"node"`
	Drain      bool       `json:"drain"` // what runs there has to leave
	Deadline   *time.Time `json:"deadline,omitempty"`
	Since      time.Time  `json:"since"`
	Author     string     `json:"author"`
	Components []struct {
		Application string `json:"application"`
		Name        string `json:"name"` // of the application
		Component   string `json:"component"`
		Replica     int    `json:"replica"`
	} `json:"components,omitempty"` // what still runs there; only in a listing
}

// Closed lists the nodes that are cordoned or drained.
func (c *Client) Closed(ctx context.Context) ([]Cordon, error) {
	list, err := one[[]Cordon](ctx, c, get("/matchmaker/nodes", nil))
	if err != nil {
		return nil, err
	}
	return *list, nil
}

// CordonNode closes a node to new components.
func (c *Client) CordonNode(ctx context.Context, cluster, node string) (*Cordon, error) {
	return one[Cordon](ctx, c, nodeRequest(cluster, node, "cordon", nil))
}

// DrainNode closes a node and has its components moved; after the deadline those that have no other place leave, too.
func (c *Client) DrainNode(ctx context.Context, cluster, node string, deadline time.Duration) (*Cordon, error) {
	var q url.Values
	if deadline > 0 {
		q = url.Values{"deadline": {deadline.String()}}
	}
	return one[Cordon](ctx, c, nodeRequest(cluster, node, "drain", q))
}

// UncordonNode opens a node again and says whether it was closed.
func (c *Client) UncordonNode(ctx context.Context, cluster, node string) (changed bool, err error) {
	answer, err := one[struct {
		Changed bool `json:"changed"`
	}](ctx, c, nodeRequest(cluster, node, "uncordon", nil))
	if err != nil {
		return false, err
	}
	return answer.Changed, nil
}

func nodeRequest(cluster, node, what string, q url.Values) request {
	path := "/matchmaker/nodes/" + url.PathEscape(cluster) + "/" + url.PathEscape(node) + "/" + what
	return request{method: http.MethodPut, path: path, query: q, idempotent: true}
}

// Question supposes changes, in any combination.
type Question struct {
	Drain      []string                      `json:"drain,omitempty"` // nodes, as CLUSTER/NODE
	Cut        []string                      `json:"cut,omitempty"`   // clusters
	Set        map[string]map[string]float64 `json:"set,omitempty"`   // by CLUSTER/NODE
	Descriptor string                        `json:"descriptor,omitempty"`
	App        string                        `json:"app,omitempty"` // full id
}

// Outcome is what would happen.
type Outcome struct {
	Moves    []Shift  `json:"moves"`
	Losers   []Shift  `json:"losers"`
	Arrivals []Shift  `json:"arrivals"`
	Plan     *Preview `json:"plan,omitempty"`
	Downtime struct {
		EachSeconds  *float64 `json:"eachSeconds"`
		TotalSeconds *float64 `json:"totalSeconds"`
		From         int      `json:"from"`
	} `json:"downtime"`
	Before Capacity `json:"before"`
	After  Capacity `json:"after"`
	Gap    float64  `json:"gap"`
	Exact  bool     `json:"exact"`
	Looked int      `json:"looked"`
}

// Shift is what would become of one component.
type Shift struct {
	Application string  `json:"application"`
	Name        string  `json:"name"` // of the application
	Component   string  `json:"component"`
	Replica     int     `json:"replica"`
	From        *Target `json:"from,omitempty"`
	To          *Target `json:"to,omitempty"`
	Why         string  `json:"why,omitempty"`
}

// Capacity is what the nodes have that take components.
type Capacity struct {
	Nodes          int   `json:"nodes"`
	CPUMilli       int64 `json:"cpuMilli"`
	MemoryBytes    int64 `json:"memoryBytes"`
	CPUReserved    int64 `json:"cpuReservedMilli"`
	MemoryReserved int64 `json:"memoryReservedBytes"`
}

// WhatIf says what would happen; nothing is changed.
func (c *Client) WhatIf(ctx context.Context, q Question) (*Outcome, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	r := request{method: http.MethodPost, path: "/matchmaker/whatif", media: mediaJSON, body: body, idempotent: true}
	return one[Outcome](ctx, c, r)
}
