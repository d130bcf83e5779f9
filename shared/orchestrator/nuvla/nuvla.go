// Package nuvla carries out jobs through Nuvla: one module per copy, and one deployment of it at the NuvlaEdge that the
// job's target names. A component of type docker becomes a compose application, any other a Kubernetes one.
//
// The record of a copy is in the tags of its deployment. Nuvla has no conditional writes, so content and record are
// written in one call, right after they were read; if two decisions still cross, the synchronisation finds the older
// record and writes again. What a newcomer gets wrong: Nuvla answers at once and works later, so a deployment that is
// STARTED says that the edge was told, not that containers run; that comes from what the edge reports.
package nuvla

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/nuvla"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Endpoint string `envconfig:"NUVLA_ENDPOINT"` // empty leaves jobs to agents that poll
	Key      string `envconfig:"NUVLA_API_KEY"`
	Secret   string `envconfig:"NUVLA_API_SECRET"`
	Project  string `envconfig:"NUVLA_PROJECT"    default:"littoral"` // path of the project that holds our modules
}

// Open returns the orchestrator for the settings, without dialling; nil when they name no server. wrap is put around its
// calls.
func Open(s Config, wrap func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error) {
	if s.Endpoint == "" {
		return nil, nil
	}
	client, err := nuvla.New(s.Endpoint, s.Key, s.Secret, wrap(http.DefaultTransport))
	if err != nil {
		return nil, fmt.Errorf("NUVLA_ENDPOINT, NUVLA_API_KEY, NUVLA_API_SECRET: %w", err)
	}
	return New(client, s.Project), nil
}

// Nuvla is an orchestrator over one server.
type Nuvla struct {
	client  *nuvla.Client
	project string
	seen    *view // answers Observe when set
}

var _ orchestrator.Orchestrator = (*Nuvla)(nil)

// New returns the orchestrator. project is the path under which it keeps its modules.
func New(client *nuvla.Client, project string) *Nuvla {
	return &Nuvla{client: client, project: project}
}

// view is what was listed at one moment, and what was asked about edges since.
type view struct {
	modules     map[string]*module      // by path
	deployments map[string][]deployment // by module

	mu    sync.Mutex // held while an edge is asked about, so that it is once
	edges map[string]looked
}

type looked struct {
	edge *edge
	err  error
}

// Knows reports whether Nuvla has an edge of the name.
func (n *Nuvla) Knows(ctx context.Context, cluster string) (bool, error) {
	_, err := n.edge(ctx, cluster)
	return orchestrator.Known(classify(err, "NuvlaEdge "+cluster))
}

// Apply makes the module and the deployment as the job describes them and has the edge told. While the edge is at work on
// something else, the error asks for a repeat.
func (n *Nuvla) Apply(ctx context.Context, j *job.Job) error {
	return classify(n.apply(ctx, j), "component "+j.Component)
}

func (n *Nuvla) apply(ctx context.Context, j *job.Job) error {
	at, err := n.edge(ctx, j.Cluster)
	switch {
	case err != nil:
		return err
	case at.offline != "":
		return fmt.Errorf("%w: %s", orchestrator.ErrSilent, at.offline)
	}
	c, err := n.find(ctx, j)
	if err != nil {
		return err
	}
	switch {
	case c.record.Epoch > j.Epoch:
		return orchestrator.ErrFenced
	case c.leaving: // whoever began to remove it may be gone, with a database that was restored since
		if err := n.erase(ctx, c); err != nil {
			return err
		}
		return orchestrator.ErrLeaving
	}
	next, err := render(ctx, j, c)
	if err != nil {
		return err
	}
	if c.module != nil && c.module.Subtype != next.subtype { // it ran on another kind of engine
		if err := n.erase(ctx, c); err != nil {
			return err
		}
		return orchestrator.ErrLeaving
	}
	for _, other := range c.others { // two calls made one each; the first made is the copy
		if _, err := n.end(ctx, other); err != nil {
			return err
		}
	}
	return n.put(ctx, j, at, c, next)
}

// put writes what is new about the copy, in an order that a repeat after a crash continues.
func (n *Nuvla) put(ctx context.Context, j *job.Job, at *edge, c *copied, next *content) error {
	want := orchestrator.RecordOf(j)
	d := c.deployment
	if d != nil && d.busy() {
		if c.record == want && !c.asked {
			return nil // the edge is at work on just this
		}
		return problem.New(problem.Unavailable, "%s of component %s is %s; try again", d.ID, j.Component, d.State)
	}
	credential, err := n.credential(ctx, at, next.subtype)
	if err != nil {
		return err
	}
	href, err := n.keepModule(ctx, j, c, next)
	if err != nil {
		return err
	}
	if d == nil {
		if d, err = n.deploy(ctx, href, credential); err != nil {
			return err
		}
	}
	if c.record == want && !c.asked && d.State == started && d.Module.Href == href && d.Parent == credential {
		return nil
	}
	tags := tagsOf(j.Cluster, want, next.runs)
	err = n.client.Edit(ctx, d.ID, map[string]any{
		"name": j.Component + " of " + j.ApplicationName, "description": "deployed by Littoral",
		"tags": append(tags, tagAsked), "parent": credential, "module": map[string]string{"href": href},
	})
	if err != nil {
		return err
	}
	action := "update"
	if d.State == created || d.State == stopped {
		action = "start"
	}
	if _, err := n.client.Act(ctx, d.ID, action, nil); err != nil {
		return err
	}
	return n.client.Edit(ctx, d.ID, map[string]any{"tags": tags})
}

// deploy makes the deployment of a module. Another call at the same time may have made one too: the one that all would
// choose is kept.
func (n *Nuvla) deploy(ctx context.Context, href, credential string) (*deployment, error) {
	id, err := n.client.Create(ctx, "deployment", map[string]any{
		"module": map[string]string{"href": href}, "parent": credential,
	})
	if err != nil {
		return nil, err
	}
	all, err := n.deployments(ctx, base(href))
	if err != nil {
		return nil, err
	}
	chosen, others := choose(all)
	if chosen == nil {
		return nil, problem.New(problem.Unavailable, "%s is gone again; try again", id)
	}
	for _, other := range others {
		if other.State == created {
			if err := n.client.Delete(ctx, other.ID); err != nil && !nuvla.IsStatus(err, http.StatusConflict) {
				return nil, err
			}
		}
	}
	return chosen, nil
}

// Remove stops and deletes the deployment, and then its module. It has to be repeated until Observe finds nothing.
func (n *Nuvla) Remove(ctx context.Context, j *job.Job) error {
	return classify(n.remove(ctx, j), "component "+j.Component)
}

func (n *Nuvla) remove(ctx context.Context, j *job.Job) error {
	at, err := n.edge(ctx, j.Cluster)
	if err != nil {
		return err
	}
	c, err := n.find(ctx, j)
	switch {
	case err != nil:
		return err
	case c.module == nil:
		return nil
	case c.record.Epoch > j.Epoch:
		return orchestrator.ErrFenced
	case at.offline != "":
		return fmt.Errorf("%w: %s", orchestrator.ErrSilent, at.offline)
	}
	if d := c.deployment; d != nil && !c.leaving {
		if err := n.client.Edit(ctx, d.ID, map[string]any{"tags": append(d.Tags, tagLeaving)}); err != nil {
			return err
		}
	}
	return n.erase(ctx, c)
}

// erase takes a step towards the end of everything that was made for a copy.
func (n *Nuvla) erase(ctx context.Context, c *copied) error {
	gone := true
	for _, d := range c.all() {
		ended, err := n.end(ctx, d)
		if err != nil {
			return err
		}
		gone = gone && ended
	}
	if !gone || c.module == nil {
		return nil
	}
	return n.client.Delete(ctx, c.module.ID)
}

// end stops a deployment, or deletes it if it is stopped, and reports whether it is gone.
func (n *Nuvla) end(ctx context.Context, d deployment) (gone bool, err error) {
	switch d.State {
	case created, stopped:
		err := n.client.Delete(ctx, d.ID)
		return err == nil, err
	case stopping:
		return false, nil
	}
	_, err = n.client.Act(ctx, d.ID, "stop", nil)
	if nuvla.IsStatus(err, http.StatusNotFound) {
		return true, nil
	}
	return false, err
}

// Copies lists our modules and deployments. An edge that is offline leaves nothing out: Nuvla knows what it has.
func (n *Nuvla) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	seen := &view{modules: map[string]*module{}, deployments: map[string][]deployment{}, edges: map[string]looked{}}
	err := n.modules(ctx, func(m *module) { seen.modules[m.Path] = m })
	if err == nil {
		err = n.ours(ctx, func(d deployment) {
			at := base(d.Module.Href)
			seen.deployments[at] = append(seen.deployments[at], d)
		})
	}
	var copies []orchestrator.Copy
	switch err = classify(err, "what is deployed"); {
	case errors.Is(err, orchestrator.ErrSilent), errors.Is(err, orchestrator.ErrFailing):
		return nil, &Nuvla{client: n.client, project: n.project}, nil // the jobs report it
	case err != nil:
		return nil, nil, err
	}
	for _, m := range seen.modules {
		c := assemble(m, seen.deployments[m.ID])
		if c.ours {
			copies = append(copies, orchestrator.Copy{Record: c.record, Cluster: c.cluster})
		}
	}
	return copies, &Nuvla{client: n.client, project: n.project, seen: seen}, nil
}

// classify turns an error of Nuvla into what it means for a job.
func classify(err error, what string) error {
	var refusal *orchestrator.Refusal
	var known *problem.Error
	var said *nuvla.Error
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil, errors.As(err, &refusal), errors.As(err, &known), errors.Is(err, orchestrator.ErrFenced):
		return err
	case errors.As(err, &certificate):
		return &orchestrator.Refusal{Reason: "BadCertificate", Message: certificate.Error(), Err: err}
	case errors.As(err, &said):
		return refused(said, what)
	case errors.As(err, &network), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "connection reset"):
		return fmt.Errorf("%w: %v", orchestrator.ErrSilent, err) //nolint:errorlint // the cause is for people only
	}
	return problem.Wrap(problem.Unavailable, err, "Nuvla does not take %s now; try again", what)
}

// refused says what an answer means. A state that does not allow it, something that has just gone and too many calls pass.
func refused(said *nuvla.Error, what string) error {
	no := func(reason string) error {
		return &orchestrator.Refusal{Reason: reason, Message: what + ": " + said.Error(), Err: said}
	}
	switch code := said.Status; {
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return no("Forbidden")
	case code == http.StatusPaymentRequired, strings.Contains(strings.ToLower(said.Message), "quota"):
		return no(orchestrator.ReasonQuotaExceeded)
	case code == http.StatusConflict, code == http.StatusNotFound, code == http.StatusTooManyRequests,
		code == http.StatusRequestTimeout:
	case code >= http.StatusInternalServerError:
		return problem.Wrap(problem.Unavailable, orchestrator.Failed(said), "Nuvla does not take %s now; try again", what)
	default:
		return no(orchestrator.ReasonDenied)
	}
	return problem.Wrap(problem.Unavailable, said, "Nuvla does not take %s now; try again", what)
}
