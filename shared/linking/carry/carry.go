// Package carry brings the sides of links to their clusters, and has the deployment managers wait for them.
package carry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Carrier carries out sides through the orchestrators that are configured here.
type Carrier struct {
	DB            *store.DB
	Log           *slog.Logger
	Links         clusterlink.Settings
	Orchestrators map[string]orchestrator.Orchestrator // by kind; those that are not configured are nil or missing
	Wait          time.Duration                        // how long what was applied is watched
}

// Reaches reports whether any orchestrator is configured.
func (c *Carrier) Reaches() bool {
	for _, o := range c.Orchestrators {
		if o != nil {
			return true
		}
	}
	return false
}

// claimed is how long one side may take.
const claimed = 45 * time.Second

// poll is the pause between two looks at a side that is watched.
const poll = 250 * time.Millisecond

// Application plans the links of one application and carries out what is open. An error asks for a repeat.
func (c *Carrier) Application(ctx context.Context, id uuid.UUID) error {
	var sides []linking.Side
	err := c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		sides, err = linking.Plan(ctx, tx, c.Links, id)
		return err
	})
	if err != nil {
		return err
	}
	// What is exported is brought first, and what is no longer used goes last.
	slices.SortStableFunc(sides, func(a, b linking.Side) int { return rank(&a) - rank(&b) })
	var faults []error
	for i := range sides {
		if s := &sides[i]; s.Applied < s.Epoch || s.State != linking.Ready {
			faults = append(faults, c.Side(ctx, s, c.Wait))
		}
	}
	return errors.Join(faults...)
}

func rank(s *linking.Side) int {
	switch {
	case s.Gone():
		return 2
	case slices.ContainsFunc(s.Links, func(l clusterlink.Link) bool { return l.Cluster == s.Cluster }):
		return 1
	}
	return 0
}

// Side carries out one side under a claim, as it is by then, and stores what came of it.
func (c *Carrier) Side(ctx context.Context, s *linking.Side, wait time.Duration) error {
	o := c.Orchestrators[s.Orchestrator]
	if o == nil {
		return nil // its clusters are not reached from here
	}
	var claim *store.Claim
	err := c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		now, err := linking.ByCopy(ctx, tx, s.Copy)
		if claim = nil; err != nil || now == nil {
			return err
		}
		s = now
		claim, err = tx.Claim(ctx, "links/"+s.Copy.String(), claimed)
		return err
	})
	if err != nil || claim == nil {
		return err
	}
	var seen linking.Seen
	err = claim.Do(ctx, func(ctx context.Context) (err error) {
		seen, err = c.carry(ctx, o, s, wait)
		return err
	})
	if err != nil {
		return c.DB.Release(ctx, claim, err)
	}
	err = c.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		if held, err := tx.Complete(ctx, claim); err != nil || !held {
			return err
		}
		return s.Settle(ctx, tx, seen)
	})
	if err == nil && seen.State == linking.Pending {
		return problem.New(problem.Unavailable, "the link of %s in %s is on its way; try again", s.Name, s.Cluster)
	}
	return err
}

// carry applies or removes the side and looks at it until it has come to something.
func (c *Carrier) carry(ctx context.Context, o orchestrator.Orchestrator, s *linking.Side, wait time.Duration) (linking.Seen, error) {
	j := s.Job()
	until := time.Now().Add(wait)
	for {
		do := o.Apply
		if s.Gone() {
			do = o.Remove
		}
		var refusal *orchestrator.Refusal
		switch err := do(ctx, j); {
		case errors.As(err, &refusal):
			return linking.Seen{
				State: linking.Refused, Message: refusal.Reason + ": " + refusal.Message,
				Gone: refusal.Reason == orchestrator.ReasonClusterNotFound,
			}, nil
		case errors.Is(err, orchestrator.ErrSilent):
			return linking.Seen{State: linking.Silent, Message: problem.Brief([]byte(err.Error()), 300)}, nil
		case errors.Is(err, orchestrator.ErrFenced): // the database was perhaps restored from a backup
			return linking.Seen{State: linking.Refused, Message: err.Error()}, nil
		case errors.Is(err, orchestrator.ErrLeaving) && time.Now().Before(until):
		case err != nil:
			return linking.Seen{}, err
		}
		seen, err := c.look(ctx, o, s)
		if err != nil || seen.Gone || seen.State == linking.Ready || seen.State == linking.Silent || !time.Now().Add(poll).Before(until) {
			return seen, err
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return seen, nil
		case <-timer.C:
		}
	}
}

// look reads what has become of a side.
func (c *Carrier) look(ctx context.Context, o orchestrator.Orchestrator, s *linking.Side) (linking.Seen, error) {
	j := s.Job()
	found, err := o.Observe(ctx, j)
	if err != nil {
		return linking.Seen{}, err
	}
	return Judge(s, &found), nil
}

// Judge is what a status means for a side.
func Judge(s *linking.Side, found *orchestrator.Status) linking.Seen {
	j := s.Job()
	switch {
	case found.Silent != "":
		return linking.Seen{State: linking.Silent, Message: found.Silent}
	case s.Gone() && !found.Exists:
		return linking.Seen{Gone: true}
	case s.Gone():
		return linking.Seen{State: linking.Removing, Message: "being removed" + found.Remains}
	case found.Refused != nil:
		return linking.Seen{State: linking.Refused, Message: found.Refused.Reason + ": " + found.Refused.Message}
	case !found.Exists || found.Leaving || found.Outdated(j):
		return linking.Seen{State: linking.Pending}
	case !found.Applied:
		return linking.Seen{State: linking.Pending, Message: s.Cluster + " has not applied it yet"}
	}
	for _, h := range found.Objects {
		if !h.Ready {
			return linking.Seen{Applied: true, State: linking.Waiting, Message: h.Message}
		}
	}
	return linking.Seen{Applied: true, State: linking.Ready}
}

// Sync compares all sides with what is in the clusters: what is not as it should be is carried out again. Each look that finds
// nothing new writes nothing.
func (c *Carrier) Sync(ctx context.Context) error {
	sides, err := linking.All(ctx, c.DB)
	if err != nil || len(sides) == 0 {
		return err
	}
	var faults []error
	planned := uuid.Nil
	for i := range sides {
		if id := sides[i].Application; id != planned {
			planned = id
			faults = append(faults, c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
				_, err := linking.Plan(ctx, tx, c.Links, id)
				return err
			}))
		}
	}
	if sides, err = linking.All(ctx, c.DB); err != nil {
		return errors.Join(append(faults, err)...)
	}
	seen := map[string]orchestrator.Orchestrator{}
	for kind, o := range c.Orchestrators {
		if o == nil || !slices.ContainsFunc(sides, func(s linking.Side) bool { return s.Orchestrator == kind }) {
			continue
		}
		_, listed, err := o.Copies(ctx)
		faults = append(faults, err)
		if err == nil {
			seen[kind] = listed
		}
	}
	for i := range sides {
		s := &sides[i]
		if ctx.Err() != nil {
			return errors.Join(append(faults, ctx.Err())...)
		}
		if listed := seen[s.Orchestrator]; listed != nil {
			faults = append(faults, c.compare(ctx, listed, s))
		}
	}
	return errors.Join(faults...)
}

// Compare compares one side with what is in its cluster.
func (c *Carrier) Compare(ctx context.Context, s *linking.Side) error {
	o := c.Orchestrators[s.Orchestrator]
	if o == nil {
		return nil
	}
	return c.compare(ctx, o, s)
}

func (c *Carrier) compare(ctx context.Context, listed orchestrator.Orchestrator, s *linking.Side) error {
	found, err := c.look(ctx, listed, s)
	switch {
	case err != nil:
		return err
	case found.State == linking.Silent && s.State == linking.Silent,
		found.Applied && s.Applied == s.Epoch && found.State == s.State && found.Message == s.Message:
		return nil
	case found.Applied || found.State == linking.Silent || found.Gone:
		return c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return s.Settle(ctx, tx, found) })
	}
	if err := c.Side(ctx, s, 0); err != nil && problem.KindOf(err) != problem.Unavailable {
		return err
	}
	return nil // what is on its way is looked at again
}

// Orchestrator returns one whose clients of links are made after the links, and are available when those are; o itself where
// nothing is linked.
func Orchestrator(o orchestrator.Orchestrator, db *store.DB, s clusterlink.Settings, wait time.Duration) orchestrator.Orchestrator {
	if o == nil || !s.On() {
		return o
	}
	return &linked{Orchestrator: o, db: db, links: s, wait: wait}
}

type linked struct {
	orchestrator.Orchestrator

	db    *store.DB
	links clusterlink.Settings
	wait  time.Duration
	sides map[[2]string]*linking.Side // by application and cluster, of all that there are; nil = they are read for each job
}

// Apply makes the copy once the links that the job needs have been brought to all their clusters. Until then the error asks for
// a repeat.
func (l *linked) Apply(ctx context.Context, j *job.Job) error {
	until := time.Now().Add(l.wait)
	for first := true; ; first = false {
		missing, err := l.missing(ctx, j, first)
		if err != nil {
			return err
		}
		if missing == nil {
			return l.Orchestrator.Apply(ctx, j)
		}
		if missing.State == linking.Refused {
			return orchestrator.Refuse("LinkRefused", "the link in %s cannot be made: %s", missing.Cluster, missing.Message)
		}
		if !time.Now().Add(poll).Before(until) {
			return problem.New(problem.Unavailable, "component %s waits for its link in %s (%s); try again", j.Component, missing.Cluster,
				strings.TrimSuffix(fmt.Sprintf("%s: %s", missing.State, missing.Message), ": "))
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return problem.Wrap(problem.Unavailable, ctx.Err(), "component %s waits for its link in %s", j.Component, missing.Cluster)
		case <-timer.C:
		}
	}
}

// missing returns a side that the job needs and that its cluster has not taken yet.
func (l *linked) missing(ctx context.Context, j *job.Job, plan bool) (*linking.Side, error) {
	if !j.Live() || !linking.Able(j.Orchestrator) {
		return nil, nil //nolint:nilnil // it needs none
	}
	var sides []linking.Side
	var err error
	if plan { // it may be placed since the last plan was made
		err = l.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			sides, err = linking.Plan(ctx, tx, l.links, j.ApplicationID)
			return err
		})
	} else {
		sides, err = linking.Of(ctx, l.db, j.ApplicationID)
	}
	if err != nil {
		return nil, err
	}
	own := side(sides, j)
	if own == nil {
		return nil, nil //nolint:nilnil // it needs none
	}
	for _, service := range own.Imports(j.Component) {
		for i := range sides {
			s := &sides[i]
			if s.Applied == s.Epoch || s != own && !s.Serves(j.Cluster, service) {
				continue
			}
			if taken, err := l.taken(ctx, s, j.Orchestrator); err != nil || !taken {
				return s, err
			}
		}
	}
	return nil, nil //nolint:nilnil // it has all
}

// taken looks whether the cluster has taken a side by now, where this orchestrator can tell: nobody else may look for minutes.
func (l *linked) taken(ctx context.Context, s *linking.Side, kind string) (bool, error) {
	if s.Orchestrator != kind || s.State == linking.Refused {
		return false, nil
	}
	found, err := l.Orchestrator.Observe(ctx, s.Job())
	if err != nil {
		return false, err
	}
	seen := Judge(s, &found)
	if !seen.Applied {
		return false, nil
	}
	return true, l.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return s.Settle(ctx, tx, seen) })
}

func side(sides []linking.Side, j *job.Job) *linking.Side {
	i := slices.IndexFunc(sides, func(s linking.Side) bool { return s.Cluster == j.Cluster && s.Orchestrator == j.Orchestrator })
	if i < 0 {
		return nil
	}
	return &sides[i]
}

// Observe adds what the job imports to what it has in its cluster.
func (l *linked) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	s, err := l.Orchestrator.Observe(ctx, j)
	if err != nil || !s.Applied || s.Leaving || !j.Live() {
		return s, err
	}
	own, err := l.own(ctx, j)
	if err != nil || own == nil {
		return s, err
	}
	services := own.Imports(j.Component)
	if len(services) == 0 {
		return s, nil
	}
	link, err := l.Orchestrator.Observe(ctx, own.Job())
	if err != nil {
		return s, err
	}
	for _, service := range services {
		s.Objects = append(s.Objects, imported(&link, service))
	}
	return s, nil
}

// imported is the state of the import of a Service.
func imported(link *orchestrator.Status, service string) orchestrator.Health {
	for _, kind := range []string{"Import ", "ServiceImport "} {
		for _, h := range link.Objects {
			if h.Object == kind+service {
				return h
			}
		}
	}
	return orchestrator.Health{
		Object: "Import " + service, Reason: orchestrator.ReasonMissing, Message: "the link to " + service + " is not there",
	}
}

func (l *linked) own(ctx context.Context, j *job.Job) (*linking.Side, error) {
	if l.sides != nil {
		return l.sides[[2]string{j.ApplicationID.String(), j.Cluster}], nil
	}
	sides, err := linking.Of(ctx, l.db, j.ApplicationID)
	return side(sides, j), err
}

// Copies returns one that knows the links of all.
func (l *linked) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	found, seen, err := l.Orchestrator.Copies(ctx)
	if seen == nil || err != nil {
		return found, seen, err
	}
	sides, err := linking.All(ctx, l.db)
	if err != nil {
		return found, nil, err
	}
	all := map[[2]string]*linking.Side{}
	for i := range sides {
		all[[2]string{sides[i].Application.String(), sides[i].Cluster}] = &sides[i]
	}
	return found, &linked{Orchestrator: seen, db: l.db, links: l.links, wait: l.wait, sides: all}, nil
}
