package nuvla

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/nuvla"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// retry is how long a deployment that failed is left alone: what an image's registry or the edge lacked may be there then.
const retry = 10 * time.Minute

// Observe reads the state of the deployment, and what the edge reports of its containers.
func (n *Nuvla) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	s, err := n.observe(ctx, j)
	err = classify(err, "component "+j.Component)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		s.Refused = refusal
		return s, nil
	case errors.Is(err, orchestrator.ErrSilent), errors.Is(err, orchestrator.ErrFailing):
		return orchestrator.Status{Silent: fmt.Sprintf("Nuvla, which manages %s, does not answer", j.Cluster)}, nil
	}
	return s, err
}

func (n *Nuvla) observe(ctx context.Context, j *job.Job) (s orchestrator.Status, err error) {
	at, err := n.edge(ctx, j.Cluster)
	if err != nil {
		return s, err
	}
	if at.offline != "" {
		s.Silent = at.offline
		return s, nil
	}
	c, err := n.find(ctx, j)
	if err != nil || c.module == nil {
		return s, err
	}
	s.Exists, s.Record, s.Leaving = true, c.record, c.leaving
	d := c.deployment
	switch {
	case d == nil:
		return s, nil
	case s.Leaving:
		s.Remains, s.Stays = fmt.Sprintf(": %s is %s", d.ID, d.State), d.State != stopping
		return s, nil
	case d.State == created, d.State == stopped, c.asked && !d.busy():
		s.Content = "" // a crash left this unfinished, or somebody stopped it: count as outdated, so that it is resumed
		return s, nil
	case d.State == failed:
		s.Applied = true
		health := orchestrator.Health{
			Object: "deployment of " + j.Component, Failed: true, Reason: "DeploymentFailed", Message: "Nuvla says that it failed",
		}
		if why, err := n.why(ctx, d.ID); err != nil {
			return s, err
		} else if why != "" {
			health.Message = "Nuvla says: " + why
		}
		s.Objects = append(s.Objects, health)
		if since, err := time.Parse(time.RFC3339, d.Updated); err == nil && time.Since(since) > retry {
			s.Content = ""
		}
		return s, nil
	case d.State != started:
		return s, nil
	}
	s.Applied = true
	if n.seen == nil {
		if err := n.report(ctx, at); err != nil {
			return s, err
		}
	}
	s.Objects, err = n.health(ctx, at, c)
	return s, err
}

// why returns what the last job of a deployment says.
func (n *Nuvla) why(ctx context.Context, deployment string) (string, error) {
	filter, err := nuvla.Equal("target-resource/href", deployment)
	if err != nil {
		return "", err
	}
	jobs, err := nuvla.List[struct {
		Message string `json:"status-message"`
	}](ctx, n.client, "job", nuvla.Query{Filter: filter + " and state='FAILED'", Order: "created:desc", Most: 1})
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	const most = 500
	message := strings.TrimSpace(jobs[0].Message)
	return message[max(0, len(message)-most):], nil // the cause is at its end
}

// health judges what a deployment runs: services by the containers that the edge reports, objects of Kubernetes by the
// parameters that Nuvla keeps of them. Of other objects it says nothing; they are there when it has been started.
func (n *Nuvla) health(ctx context.Context, at *edge, c *copied) (all []orchestrator.Health, err error) {
	compose := c.module.Subtype == subtypeCompose
	var parameters map[string]string
	if !compose || !at.told {
		if parameters, err = n.parameters(ctx, c.deployment.ID); err != nil {
			return nil, err
		}
	}
	_, project, _ := strings.Cut(c.deployment.ID, "/")
	for _, r := range c.runs {
		h := orchestrator.Health{Object: r.name, Wanted: max(r.pods, 0)}
		switch {
		case r.pods < 0:
		case compose && at.told:
			for _, one := range at.containers {
				if one.runs() && numbered(one.Name, project, r.name) {
					h.Pods++
				}
			}
		case compose:
			if parameters[r.name+".service-id"] != "" { // it was made; an old edge says no more
				h.Pods = h.Wanted
			}
		default:
			name := strings.ReplaceAll(r.name, " ", ".")
			h.Pods, _ = strconv.ParseInt(parameters[name+".replicas.running"], 10, 64)
			if parameters[name+".replicas.desired"] != strconv.FormatInt(r.pods, 10) {
				h.Pods = 0 // it is of the time before the last change
			}
		}
		h.Pods = min(h.Pods, h.Wanted)
		if h.Ready, h.Reason = h.Pods == h.Wanted, "AsExpected"; !h.Ready {
			h.Reason, h.Message = "PodsNotReady", fmt.Sprintf("%s: %d of %d pods are ready", h.Object, h.Pods, h.Wanted)
			if compose {
				h.Message = fmt.Sprintf("%s: %d of %d containers run", h.Object, h.Pods, h.Wanted)
			}
		}
		all = append(all, h)
	}
	return all, nil
}

// parameters reads what Nuvla keeps about a deployment, by name.
func (n *Nuvla) parameters(ctx context.Context, deployment string) (map[string]string, error) {
	filter, err := nuvla.Equal("parent", deployment)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	err = nuvla.Search(ctx, n.client, "deployment-parameter", nuvla.Query{Filter: filter}, func(p struct {
		Name  string  `json:"name"`
		Value *string `json:"value"`
	},
	) error {
		if p.Value != nil {
			values[p.Name] = *p.Value
		}
		return nil
	})
	return values, err
}
