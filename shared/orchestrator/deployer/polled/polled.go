// Package polled keeps the jobs of a deployer behind the public API, for an agent on a machine of its own: it asks for jobs,
// takes them and reports on them as any agent of ICOS does (shared/docs/contracts.md §1.6).
//
// What a newcomer gets wrong: the API tells an agent of every free job of its orchestrator, so those for other machines are
// left out here.
package polled

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/deployer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// Jobs are those of one agent.
type Jobs struct {
	Base     string       // of the public API
	HTTP     *http.Client // adds the token
	Clusters []string     // under which targets know the agent's machine
}

var _ deployer.Jobs = (*Jobs)(nil)

const (
	most  = 64 << 20 // bytes of an answer
	limit = 30 * time.Second
	page  = 200 // jobs in an answer
)

func (a *Jobs) mine(j *icoswire.Job) bool { return slices.Contains(a.Clusters, j.Targets.Cluster) }

// Get reads a job.
func (a *Jobs) Get(ctx context.Context, id uuid.UUID) (*job.Job, error) {
	var j icoswire.Job
	if _, err := a.call(ctx, http.MethodGet, "/jobmanager/jobs/"+id.String(), nil, &j); err != nil {
		return nil, err
	}
	return j.Read(), nil
}

// Executable lists what the agent may take now on its machine.
func (a *Jobs) Executable(ctx context.Context, kind, owner string) (jobs []*job.Job, err error) {
	var listed []icoswire.Job
	path := "/jobmanager/jobs/executable/" + url.PathEscape(kind) + "/" + url.PathEscape(owner)
	if _, err := a.call(ctx, http.MethodGet, path, nil, &listed); err != nil {
		return nil, err
	}
	for i := range listed {
		if a.mine(&listed[i]) {
			jobs = append(jobs, listed[i].Read())
		}
	}
	return jobs, nil
}

// HeldIn names the clusters of the machine: there is one engine behind all of them.
func (a *Jobs) HeldIn(context.Context, string, string) ([]string, error) { return a.Clusters, nil }

// Held lists the agent's jobs, all at once.
func (a *Jobs) Held(
	ctx context.Context, kind, owner string, _ uuid.UUID, subject *uuid.UUID, cluster string, _ int,
) (jobs []*job.Job, more bool, err error) {
	query := url.Values{"owner": {owner}, "orchestrator": {kind}, "limit": {strconv.Itoa(page)}}
	next := "/jobmanager/jobs?" + query.Encode()
	for next != "" {
		var listed []icoswire.Job
		header, err := a.call(ctx, http.MethodGet, next, nil, &listed)
		if err != nil {
			return nil, false, err
		}
		for i := range listed {
			j := listed[i].Read()
			about := subject == nil || j.ID == *subject || j.Cleans != nil && *j.Cleans == *subject
			if about && (cluster == "" || j.Cluster == cluster) {
				jobs = append(jobs, j)
			}
		}
		next = nextOf(header)
	}
	return jobs, false, nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>;\s*rel="next"`)

// nextOf is the path of the next page; "" when there is none.
func nextOf(header http.Header) string {
	for _, link := range header.Values("Link") {
		if found := nextLink.FindStringSubmatch(link); found != nil {
			if to, err := url.Parse(found[1]); err == nil {
				return to.RequestURI()
			}
		}
	}
	return ""
}

// OnLostNode is never so: the agent itself runs on the machine.
func (a *Jobs) OnLostNode(context.Context, uuid.UUID) (bool, error) { return false, nil }

// Claim takes the job, and reads what it has taken: it may have changed since it was listed.
func (a *Jobs) Claim(ctx context.Context, id uuid.UUID, epoch int64, owner string, _ time.Duration) (*job.Job, error) {
	body := map[string]any{"owner_id": owner, "epoch": epoch}
	_, err := a.call(ctx, http.MethodPatch, "/jobmanager/jobs/promote/"+id.String(), body, nil)
	switch kind := problem.KindOf(err); {
	case err != nil && (kind == problem.Conflict || kind == problem.NotFound):
		return nil, nil //nolint:nilnil // it is not to be had
	case err != nil:
		return nil, err
	}
	j, err := a.Get(ctx, id)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil, nil //nolint:nilnil // it is gone
	case err != nil:
		return nil, err
	case j.OwnerID != owner || j.State != job.Progressing || !slices.Contains(a.Clusters, j.Cluster):
		return nil, nil //nolint:nilnil // it has changed again; the next poll lists it
	}
	return j, nil
}

// report is a job as its agent reports it, without what belongs to the job manager.
type report struct {
	ID           uuid.UUID         `json:"id"`
	OwnerID      string            `json:"owner_id"`
	Type         job.Type          `json:"type"`
	SubType      string            `json:"sub_type,omitempty"`
	State        job.State         `json:"state"`
	Epoch        int64             `json:"epoch"`
	Orchestrator string            `json:"orchestrator"`
	Targets      job.Target        `json:"targets"`
	Resource     icoswire.Resource `json:"resource"`
}

// Report sends the result of the work on j. The job manager refuses it when the job has moved on, and by the job that it
// answers tells when the content has changed meanwhile.
func (a *Jobs) Report(ctx context.Context, j *job.Job, result job.Report, _ time.Duration) (deployer.Outcome, error) {
	var answered icoswire.Job
	_, err := a.call(ctx, http.MethodPut, "/jobmanager/jobs", report{
		ID: result.ID, OwnerID: result.OwnerID, Type: result.Type, SubType: j.SubType, State: result.State, Epoch: result.Epoch,
		Orchestrator: j.Orchestrator, Targets: j.Target, Resource: wire(j.ID, result.Resource),
	}, &answered)
	switch problem.KindOf(err) {
	case problem.NotFound:
		return deployer.Fenced, nil
	case problem.Conflict:
		return a.refused(ctx, j, result.OwnerID)
	}
	now := answered.Read()
	switch {
	case err != nil:
		return 0, err
	case now.OwnerID != result.OwnerID || now.Epoch != j.Epoch:
		return deployer.Stored, nil // by the report itself: it has left, or is to be placed anew
	case now.State == job.Created:
		return deployer.Waiting, nil
	case !deployer.SameWork(now, j) && now.Type == j.Type:
		return deployer.Changed, nil
	}
	return deployer.Stored, nil
}

// refused finds out why a report was not taken.
func (a *Jobs) refused(ctx context.Context, j *job.Job, owner string) (deployer.Outcome, error) {
	now, err := a.Get(ctx, j.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return deployer.Fenced, nil
	case err != nil:
		return 0, err
	case now.OwnerID != owner || now.Epoch != j.Epoch:
		return deployer.Fenced, nil
	}
	return deployer.Waiting, nil
}

// wire is a resource in the form of the API.
func wire(id uuid.UUID, r job.Resource) icoswire.Resource {
	return icoswire.Resource{JobID: icoswire.ID{UUID: id}, UUID: r.UUID, Name: r.Name, Conditions: r.Conditions}
}

// Observe sends what is seen of a copy, which also renews the lease on its job.
func (a *Jobs) Observe(ctx context.Context, seen job.Observation, _ time.Duration) error {
	_, err := a.call(ctx, http.MethodPut, "/jobmanager/status", struct {
		icoswire.Resource

		OwnerID string `json:"owner_id"`
		Epoch   int64  `json:"epoch"`
	}{wire(seen.Job, seen.Resource), seen.OwnerID, seen.Epoch}, nil)
	return err
}

// call sends one request. The kind of the error is that of the answer; Unavailable for whatever may succeed later.
func (a *Jobs) call(ctx context.Context, method, path string, body, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		payload = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.Base, "/")+path, payload)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if parent := trace.Parent(ctx); parent != "" {
		r.Header.Set("Traceparent", parent)
	}
	got, err := a.HTTP.Do(r)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the controller does not answer")
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(got.Body, most))
	switch {
	case err != nil:
		return nil, problem.Wrap(problem.Unavailable, err, "%s %s was cut off", method, path)
	case got.StatusCode/100 != 2:
		return nil, problem.New(kindOf(got.StatusCode), "%s %s: %s: %s", method, path, got.Status, problem.Brief(text, 300))
	case into == nil:
		return got.Header, nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "%s %s: the answer is not understood", method, path)
	}
	return got.Header, nil
}

// kindOf is what a status means to us.
func kindOf(status int) problem.Kind {
	switch status {
	case http.StatusNotFound:
		return problem.NotFound
	case http.StatusConflict:
		return problem.Conflict
	case http.StatusForbidden:
		return problem.Forbidden
	case http.StatusUnauthorized:
		return problem.Unauthenticated
	case http.StatusUnprocessableEntity:
		return problem.Invalid
	}
	return problem.Unavailable
}
