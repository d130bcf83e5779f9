package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// client is one agent's client of the job manager's API for agents that pull.
type client struct {
	base         string
	http         *http.Client
	orchestrator string
	agentID      string
}

// answer is the job manager's answer to a request.
type answer int

const (
	accepted answer = iota
	refused         // 409: the job's state has changed
	unknown         // 404: there is no such job
)

const (
	maxAnswer   = 64 << 20 // bytes in a list of jobs
	callTimeout = 15 * time.Second
)

// executable lists the jobs that the agent may take or owns.
func (c *client) executable(ctx context.Context) ([]Job, error) {
	var jobs []Job
	path := "/jobmanager/jobs/executable/" + url.PathEscape(c.orchestrator) + "/" + url.PathEscape(c.agentID)
	_, err := c.call(ctx, http.MethodGet, path, nil, &jobs)
	return jobs, err
}

func (c *client) job(ctx context.Context, id string) (Job, answer, error) {
	var j Job
	a, err := c.call(ctx, http.MethodGet, "/jobmanager/jobs/"+url.PathEscape(id), nil, &j)
	return j, a, err
}

// promote tries to take the job.
func (c *client) promote(ctx context.Context, id string) (answer, error) {
	path := "/jobmanager/jobs/promote/" + url.PathEscape(id)
	return c.call(ctx, http.MethodPatch, path, map[string]string{"owner_id": c.agentID}, nil)
}

// report is the job as its agent reports it, without the manifests, which belong to the job manager.
type report struct {
	ID           string   `json:"id"`
	Type         enum     `json:"type"`
	SubType      enum     `json:"sub_type,omitempty"`
	State        string   `json:"state"`
	Epoch        int64    `json:"epoch"`
	OwnerID      string   `json:"owner_id"`
	Orchestrator string   `json:"orchestrator"`
	GroupID      string   `json:"job_group_id,omitempty"`
	GroupName    string   `json:"job_group_name,omitempty"`
	Namespace    string   `json:"namespace,omitempty"`
	Targets      target   `json:"targets"`
	Resource     Resource `json:"resource"`
}

// update reports the progress of a job.
func (c *client) update(ctx context.Context, j *Job, state string, r Resource) (answer, error) {
	return c.call(ctx, http.MethodPut, "/jobmanager/jobs", report{
		ID: j.ID, Type: j.Type, SubType: j.SubType, State: state, Epoch: j.Epoch, OwnerID: c.agentID,
		Orchestrator: c.orchestrator, GroupID: j.GroupID, GroupName: j.GroupName, Namespace: j.Namespace,
		Targets: j.Targets.target, Resource: r,
	}, nil)
}

// status is the state of a copy, reported between the updates of jobs.
type status struct {
	Resource
	OwnerID string `json:"owner_id"`
	Epoch   int64  `json:"epoch"`
}

// observed reports the state of a copy, which also renews the lease on its job.
func (c *client) observed(ctx context.Context, epoch int64, r Resource) (answer, error) {
	body := status{Resource: r, OwnerID: c.agentID, Epoch: epoch}
	return c.call(ctx, http.MethodPut, "/jobmanager/resources/status", body, nil)
}

// call sends one request. It returns an error for everything that may succeed later.
func (c *client) call(ctx context.Context, method, path string, body, into any) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", method, path, err)
		}
		payload = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base, "/")+path, payload)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if parent := trace.Parent(ctx); parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	got, err := c.http.Do(r)
	if err != nil {
		return 0, err // it already contains method and URL
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s %s: %w", method, path, err)
	case got.StatusCode == http.StatusConflict:
		return refused, nil
	case got.StatusCode == http.StatusNotFound:
		return unknown, nil
	case got.StatusCode/100 != 2:
		return 0, fmt.Errorf("%s %s: %s: %s", method, path, got.Status, problem.Brief(text, 300))
	case into == nil:
		return accepted, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return 0, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return accepted, nil
}
