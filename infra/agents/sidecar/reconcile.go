package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"
)

// told is what the component is told on the bus. (The exporter has this as well, with the store behind it, which must not be
// linked here.)
type told struct {
	Clusters   map[string]place `json:"clusters"`
	Generation int64            `json:"generation"` // 0 = the exporter has none
}

type place struct {
	Pods map[string]pod `json:"pods"`
}

type pod struct {
	IP       string  `json:"ip"`
	Port     int     `json:"port"`
	Cores    float64 `json:"cores"`
	MemoryGB float64 `json:"memory_gb"`
}

// worker is one that the agent is to have.
type worker struct {
	Cluster string
	Port    int
	Cores   int64
	Memory  float64
}

// reconciler makes the workers of the agent those that the component was told of. It touches no others.
type reconciler struct {
	o      options
	agent  compss
	log    *slog.Logger
	told   *told
	added  map[string]string    // the workers that we have added, by address, with the cluster of each
	unsure map[string]time.Time // until when it is not known whether the agent took one: an addition had no answer
}

// How long the next try waits after a failure.
const (
	shortest = time.Second
	longest  = time.Minute
)

// unsureFor is how long an addition may still arrive at the agent after we have given it up.
const unsureFor = time.Minute

func newReconciler(o options, agent compss, log *slog.Logger) (*reconciler, error) {
	r := &reconciler{o: o, agent: agent, log: log, added: map[string]string{}, unsure: map[string]time.Time{}}
	if o.State == "" {
		return r, nil
	}
	text, err := os.ReadFile(o.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &r.added); err != nil {
		return nil, fmt.Errorf("%s: %w", o.State, err)
	}
	return r, nil
}

// follow compares at each value, and once in a while: an agent that was started anew has lost its workers.
func (r *reconciler) follow(ctx context.Context, values <-chan told) error {
	timer := time.NewTimer(r.o.Every)
	defer timer.Stop()
	wait := shortest
	for {
		select {
		case <-ctx.Done():
			return nil
		case v := <-values:
			if !r.take(v) {
				continue
			}
			wait = shortest
		case <-timer.C:
		}
		if r.told == nil {
			timer.Reset(r.o.Every)
			continue
		}
		if err := r.reconcile(ctx); err != nil {
			r.log.Warn("the agent has not the workers it should", "error", err.Error(), "again", wait.String())
			timer.Reset(wait)
			wait = min(2*wait, longest)
			continue
		}
		wait = shortest
		timer.Reset(r.o.Every)
	}
}

// take notes what was told, unless it is older than what is known.
func (r *reconciler) take(v told) bool {
	if r.told != nil && v.Generation > 0 && v.Generation < r.told.Generation {
		return false
	}
	r.told = &v
	return true
}

// wanted are the workers by address.
func (r *reconciler) wanted() map[string]worker {
	all := map[string]worker{}
	for _, key := range slices.Sorted(maps.Keys(r.told.Clusters)) {
		for _, p := range r.told.Clusters[key].Pods {
			if p.IP == "" || p.IP == r.o.Self {
				continue
			}
			all[p.IP] = worker{
				Cluster: key, Port: cmp.Or(p.Port, r.o.Port), Cores: max(1, int64(cmp.Or(p.Cores, r.o.Cores))),
				Memory: cmp.Or(p.MemoryGB, r.o.Memory),
			}
		}
	}
	return all
}

// reconcile reads what the agent has before it changes anything: to add what it has already would double it.
func (r *reconciler) reconcile(ctx context.Context) error {
	has, err := r.agent.resources(ctx)
	if err != nil {
		return err
	}
	wanted := r.wanted()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		faults = append(faults, r.provide(ctx, name, wanted[name], has))
	}
	for _, name := range slices.Sorted(maps.Keys(r.added)) {
		if _, stays := wanted[name]; !stays {
			faults = append(faults, r.drop(ctx, name, has))
		}
	}
	return errors.Join(faults...)
}

// provide adds a worker, or what is missing of its cores, or takes what is too much.
func (r *reconciler) provide(ctx context.Context, name string, w worker, has map[string]int64) error {
	cores, there := has[name]
	if _, ours := r.added[name]; there && !ours {
		return nil // somebody else has given it to the agent
	}
	if time.Now().Before(r.unsure[name]) && !there {
		return fmt.Errorf("it is not known yet whether the agent took %s", name)
	}
	delete(r.unsure, name)
	if err := r.remember(name, w.Cluster); err != nil { // before it is added, so that a crash leaves none that nobody removes
		return err
	}
	var err error
	switch {
	case !there:
		err = r.agent.add(ctx, name, w)
	case cores < w.Cores:
		err = r.agent.add(ctx, name, worker{Port: w.Port, Cores: w.Cores - cores, Memory: -1})
	case cores > w.Cores:
		err = r.agent.reduce(ctx, name, cores-w.Cores)
	default:
		return nil
	}
	if errors.Is(err, errNoAnswer) {
		r.unsure[name] = time.Now().Add(unsureFor)
	}
	if err == nil {
		r.log.Info("worker", "name", name, "cores", w.Cores, "before", cores)
	}
	return err
}

// drop removes a worker whose pod has ended. When nothing runs in its cluster any more the agent is told that it is lost, since
// it would wait for its tasks otherwise.
func (r *reconciler) drop(ctx context.Context, name string, has map[string]int64) error {
	if _, there := has[name]; there && name != r.o.Self {
		leave := r.agent.remove
		if _, stands := r.told.Clusters[r.added[name]]; !stands {
			leave = r.agent.lose
		}
		if err := leave(ctx, name); err != nil {
			return err
		}
		r.log.Info("worker removed", "name", name)
	}
	return r.remember(name, "")
}

// remember notes that we have added a worker, or without a cluster that we have not.
func (r *reconciler) remember(name, cluster string) error {
	if r.added[name] == cluster {
		return nil
	}
	if cluster == "" {
		delete(r.added, name)
	} else {
		r.added[name] = cluster
	}
	if r.o.State == "" {
		return nil
	}
	text, err := json.Marshal(r.added)
	if err != nil {
		return err
	}
	part := r.o.State + ".new"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, r.o.State)
}
