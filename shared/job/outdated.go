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

// An agent lists a job, takes it and carries out what it was listed: those of ICOS do not read the job again. Content
// that was replaced in between would never run, and nobody would know; what was moved in between would run where nobody
// looks for it. Such an agent gives back what it has carried out, and where, so that its report is known to be about the
// former content or place. What is neither the present content nor a former one, and a place that nobody knows, an agent
// has written in its own way; it is taken at its word.

// keptDigests is how many contents may follow each other before an agent that listed the first has reported.
const keptDigests = 8

// supersede keeps what the present content was, if the next is another.
func (j *Job) supersede(next []Content) {
	if len(j.Instruction.Contents) == 0 {
		return
	}
	was := digest(j.Instruction.Contents)
	if was == digest(next) {
		return
	}
	j.Superseded = append(j.Superseded, was)
	j.Superseded = j.Superseded[max(0, len(j.Superseded)-keptDigests):]
}

// digest is of the objects alone: one of the two models in which agents give them back knows no names.
func digest(contents []Content) string {
	sum := sha256.New()
	for _, c := range contents {
		_, _ = fmt.Fprintf(sum, "%d %s", len(c.YAML), c.YAML)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// outdated reports whether the report is about a former content. What a remediation has changed is the agent's to write.
func (j *Job) outdated(r *Report) bool {
	if len(j.Superseded) == 0 || j.Type != Create && j.Type != Replace {
		return false
	}
	present := digest(j.Instruction.Contents)
	return slices.ContainsFunc(r.contents(), func(given []Content) bool {
		was := digest(given)
		return was != present && slices.Contains(j.Superseded, was)
	})
}

// redo puts the job back for its owner, with what it has made of the former content.
func (j *Job) redo(ctx context.Context, tx *store.Tx, before State, r Resource) error {
	if r.UUID != "" {
		j.ResourceUUID = r.UUID
	}
	if r.Name != "" {
		j.ResourceName = r.Name
	}
	if err := j.move(Change); err != nil {
		return err
	}
	return j.giveContent(ctx, tx, before, j.OwnerID+" carried out content that was replaced before it took the job")
}

const (
	// Where the agent may have carried a job out: a place that is known, and not another agent's. It is called j since it takes
	// the job's part in othersPlace.
	selectServes = `select exists (select 1 from nodes j where j.cluster = $1 and ($3 = '' or j.node = $3) and not ` + othersPlace + `)`

	selectCleaned = `select exists (select 1 from jobs where cleans = $1 and owner_id = $2 and cluster = $3
and ($4 = '' or node = $4) and resource_uuid = $5 and state <> 'Finished')`
)

// elsewhere returns the former place that the report is about, the zero Target when it is about the present one.
func (j *Job) elsewhere(ctx context.Context, tx *store.Tx, r *Report) (Target, error) {
	at := r.place()
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

// redoHere puts the job back for its owner, who has carried it out at a former place. What that has made there is removed.
func (j *Job) redoHere(ctx context.Context, tx *store.Tx, before State, at Target, r Resource) error {
	why := fmt.Sprintf("%s carried it out at %s, where it is not any more", j.OwnerID, at)
	if j.Type != Delete {
		if err := j.cleanUpAt(ctx, tx, at, r, why); err != nil {
			return err
		}
	}
	if err := j.move(Change); err != nil {
		return err
	}
	if j.Type == Create || j.Type == Replace {
		return j.giveContent(ctx, tx, before, why)
	}
	if err := j.save(ctx, tx, Change, before, why); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// cleanUpAt has the copy removed that the owner of the job has made at a former place, unless it is about to do so. Another
// copy that it made there before is none of this one.
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
