package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/littoral-project/littoral/shared/store"
)

// An agent lists a job, takes it and carries out what it was listed: those of ICOS do not read the job again. Content
// that was replaced in between would never run, and nobody would know. Such an agent gives back what it has carried out,
// so that its report is known to be about the former content. What is neither the present content nor a former one, an
// agent has written in its own way; it is taken at its word.

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
