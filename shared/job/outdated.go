package job

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/littoral-project/littoral/shared/store"
)

// An ICOS agent lists a job, takes it, and deploys what was listed, without reading the job again. If the content was
// replaced in between, the new content would never run and nobody would notice; if the job was moved, its copy would run
// where nobody looks for it. Such an agent returns what it has deployed, and where, so we can tell that its report is about
// former content or a former place. Content that was never the job's, or an unknown place, is the agent's own way of
// writing; then its report is believed.

// maxDigests is how many changes of content may happen between an agent's listing of a job and its report.
const maxDigests = 8

// supersede remembers the present content if the next one differs.
func (j *Job) supersede(next []Content) {
	if len(j.Instruction.Contents) == 0 {
		return
	}
	was := digest(j.Instruction.Contents)
	if was == digest(next) {
		return
	}
	j.Superseded = append(j.Superseded, was)
	j.Superseded = j.Superseded[max(0, len(j.Superseded)-maxDigests):]
}

// digest covers the objects but not their names: one of the two formats in which agents return them has no names.
func digest(contents []Content) string {
	sum := sha256.New()
	for _, c := range contents {
		_, _ = fmt.Fprintf(sum, "%d %s", len(c.YAML), c.YAML)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// outdated reports whether the report is about former content. After a remediation the agent may write the content in
// its own way.
func (j *Job) outdated(r *Report) bool {
	if len(j.Superseded) == 0 || j.Type != Create && j.Type != Replace {
		return false
	}
	present := digest(j.Instruction.Contents)
	return slices.ContainsFunc(r.Deployed, func(given []Content) bool {
		was := digest(given)
		return was != present && slices.Contains(j.Superseded, was)
	})
}

// redo puts the job back for its owner, which has deployed former content.
func (j *Job) redo(ctx context.Context, tx *store.Tx, before State, r Resource) error {
	if r.UUID != "" {
		j.ResourceUUID = r.UUID
	}
	if r.Name != "" {
		j.ResourceName = r.Name
	}
	if _, err := j.move(Change); err != nil {
		return err
	}
	return j.giveContent(ctx, tx, before, saved{}, j.OwnerID+" carried out content that was replaced before it took the job")
}

const (
	// Whether the agent may have deployed at the place: it is known, and does not belong to another agent. The alias is
	// j because othersPlace refers to the place of a job by that name.
	selectServes = `select exists (select 1 from nodes j where j.cluster = $1 and ($3 = '' or j.node = $3) and not ` + othersPlace + `)`

	selectCleaned = `select exists (select 1 from jobs where cleans = $1 and owner_id = $2 and cluster = $3
and ($4 = '' or node = $4) and resource_uuid = $5 and state <> 'Finished')`
)

// elsewhere returns the former place that the report is about, or the zero Target if it is about the present one.
func (j *Job) elsewhere(ctx context.Context, tx *store.Tx, r *Report) (Target, error) {
	at := r.At
	if at.Cluster == "" || at.Cluster == j.Cluster && (at.Node == "" || at.Node == j.Node) {
		return Target{}, nil
	}
	var serves bool
	if err := tx.QueryRow(ctx, selectServes, at.Cluster, j.OwnerID, at.Node).Scan(&serves); err != nil {
		return Target{}, fmt.Errorf("look for the place of a report: %w", err)
	}
	if !serves {
		return Target{}, nil
	}
	at.Orchestrator = j.Orchestrator // the agent's
	return at, nil
}

// redoHere puts the job back for its owner, which has deployed it at a former place. The copy there will be removed.
func (j *Job) redoHere(ctx context.Context, tx *store.Tx, before State, at Target, r Resource) error {
	why := fmt.Sprintf("%s carried it out at %s, where it is not any more", j.OwnerID, at)
	if j.Type != Delete {
		if err := j.cleanUpAt(ctx, tx, at, r, why); err != nil {
			return err
		}
	}
	if _, err := j.move(Change); err != nil {
		return err
	}
	if j.Type == Create || j.Type == Replace {
		return j.giveContent(ctx, tx, before, saved{}, why)
	}
	if err := j.save(ctx, tx, Change, before, saved{}, why); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// cleanUpAt asks the owner of the job to remove the copy that it has made at a former place, unless a clean-up for that
// copy is open already. (Clean-ups of other copies at that place do not count.)
func (j *Job) cleanUpAt(ctx context.Context, tx *store.Tx, at Target, r Resource, why string) error {
	var open bool
	if err := tx.QueryRow(ctx, selectCleaned, j.ID, j.OwnerID, at.Cluster, at.Node, r.UUID).Scan(&open); err != nil {
		return fmt.Errorf("look for clean-ups: %w", err)
	}
	if open {
		return nil
	}
	c := j.cleanup()
	c.Target, c.ResourceUUID, c.ResourceName = at, r.UUID, cmp.Or(r.Name, c.ResourceName)
	c.Epoch-- // it was made by a decision before the present one
	return c.submitCleanup(ctx, tx, why)
}
