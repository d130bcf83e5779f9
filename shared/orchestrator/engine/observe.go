package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// restarts is after how many a container that ends again and again counts as failed.
const restarts = 5

// Observe compares the containers with the record.
func (e *Engine) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	s, err := e.observe(ctx, j)
	err = classify(err, j)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		s.Refused = refusal
		return s, nil
	case errors.Is(err, orchestrator.ErrSilent):
		return orchestrator.Status{Silent: fmt.Sprintf("the container engine of %s does not answer", j.Cluster)}, nil
	}
	return s, err
}

func (e *Engine) observe(ctx context.Context, j *job.Job) (s orchestrator.Status, err error) {
	if err := e.here(j.Cluster); err != nil {
		return s, err
	}
	c, err := e.find(ctx, orchestrator.Subject(j))
	if err != nil || !c.exists() {
		return s, err
	}
	s.Exists, s.Record, s.Leaving = true, c.record, c.leaving
	if c.leaving {
		s.Remains = fmt.Sprintf(": %d containers are left", len(c.containers))
		return s, nil
	}
	if c.number == 0 { // its record was pruned
		return s, nil
	}
	p, err := c.load(ctx)
	if err != nil {
		return s, err
	}
	have := map[string]*container.Summary{}
	for i := range c.containers {
		have[nameOf(&c.containers[i])] = &c.containers[i]
	}
	wanted := plan(c, p.Of())
	whole := len(c.containers) == len(wanted)
	of := map[string]*orchestrator.Health{}
	var order []string
	names, replicas := p.Services()
	for _, name := range names {
		of[name] = &orchestrator.Health{Object: name, Wanted: replicas[name], Reason: "AsExpected"}
		order = append(order, name)
	}
	for _, w := range wanted {
		one := have[w.name]
		if one == nil || one.Labels[labelDigest] != w.digest {
			whole = false
			continue
		}
		inspected, err := e.client.ContainerInspect(ctx, one.ID, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			whole = false
			continue
		} else if err != nil {
			return s, err
		}
		whole = judge(of[w.service], w, &inspected.Container) && whole
	}
	if !whole { // it counts as outdated, so that it is made whole
		s.Content = ""
	}
	s.Applied = whole
	for _, name := range order {
		h := of[name]
		if h.Ready = h.Pods == h.Wanted; !h.Ready {
			if h.Reason == "AsExpected" {
				h.Reason = "ContainersNotReady"
			}
			h.Message = fmt.Sprintf("%s: %d of %d containers run%s", name, h.Pods, h.Wanted, h.Message)
		}
		s.Objects = append(s.Objects, *h)
	}
	return s, nil
}

// judge adds a container to the health of its service, and reports whether there is nothing for us to do about it.
func judge(h *orchestrator.Health, w instance, c *container.InspectResponse) bool {
	state := c.State
	switch {
	case ended(c):
		h.Pods++
		return true
	case state.Running && !state.Restarting:
		health := container.NoHealthcheck
		if state.Health != nil && state.Health.Status != "" {
			health = state.Health.Status
		}
		if health == container.NoHealthcheck || health == container.Healthy {
			h.Pods++
			return true
		}
		h.Message = fmt.Sprintf("; %s is %s", w.name, health)
		return true
	case state.Restarting || c.RestartCount > 0 && !state.Running:
		h.Reason = "ContainerFails"
		h.Message = fmt.Sprintf("; %s has ended with exit code %d and was started again %d times", w.name, state.ExitCode, c.RestartCount)
		h.Failed = h.Failed || c.RestartCount >= restarts
		return state.Restarting
	case state.Paused:
		h.Message = fmt.Sprintf("; %s is paused", w.name)
		return true
	}
	h.Reason = "ContainerEnded"
	h.Message = fmt.Sprintf("; %s is %s with exit code %d", w.name, state.Status, state.ExitCode)
	if state.Error != "" {
		h.Message += ": " + state.Error
	}
	return false
}
