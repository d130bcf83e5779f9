package job

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/store"
)

// Silence says that the node of a job is not heard of, so that nobody knows whether the component still runs. It is kept
// beside what the agent has reported, which counts again when the node is heard of again.
type Silence struct {
	SilentSince   *time.Time `db:"silent_since"`   // when the node was last heard of; nil = there is no silence
	MovesAt       *time.Time `db:"moves_at"`       // when the component leaves the node; nil = not while no node is heard of
	ClusterSilent bool       `db:"cluster_silent"` // no node of the cluster is heard of
}

// Reasons of the condition Available=Unknown.
const (
	ReasonNodeSilent  = "NodeSilent"
	ReasonClusterLost = "ClusterLost"
)

const updateSilence = `update jobs set silent_since = $2, moves_at = $3, cluster_silent = $4 where id = $1`

// SetSilence stores whether the node of the job is heard of. The job is locked.
func SetSilence(tx *store.Tx, id uuid.UUID, s Silence) {
	tx.Append(updateSilence, id, s.SilentSince, s.MovesAt, s.ClusterSilent)
}

// Silent reports whether the node of a job that is meant to run is not heard of.
func (j *Job) Silent() bool { return j.SilentSince != nil && j.Live() }

// silence is the condition of a silent job; the message has the times as they are now.
func (j *Job) silence(now time.Time) Condition {
	c := Condition{
		Type: ConditionAvailable, Status: "Unknown", ObservedGeneration: j.Epoch, LastTransitionTime: *j.SilentSince,
		Reason: ReasonNodeSilent,
	}
	where := j.Target.String()
	if j.ClusterSilent {
		where, c.Reason = "all of cluster "+j.Cluster, ReasonClusterLost
	}
	moves := "stays while no node at all is heard of"
	if j.MovesAt != nil {
		moves = "is about to move"
		if left := j.MovesAt.Sub(now).Round(time.Second); left > 0 {
			moves = "moves in " + left.String()
		}
	}
	c.Message = fmt.Sprintf("%s silent for %s, %s", where, now.Sub(*j.SilentSince).Round(time.Second), moves)
	return c
}

// Availability returns the condition that says whether the component runs, with the silence of its node instead of what
// was reported before; nil when there is none.
func (j *Job) Availability() *Condition {
	if j.Silent() {
		c := j.silence(time.Now())
		return &c
	}
	return j.Condition(ConditionAvailable)
}

// ShownConditions are the conditions as people and agents see them.
func (j *Job) ShownConditions() []Condition {
	if !j.Silent() {
		return j.Conditions
	}
	list := slices.DeleteFunc(slices.Clone(j.Conditions), func(c Condition) bool { return c.Type == ConditionAvailable })
	return append(list, j.silence(time.Now()))
}
