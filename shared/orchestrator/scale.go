package orchestrator

import (
	"slices"

	"github.com/littoral-project/littoral/shared/job"
)

// Steps by which remediations change resource requests (shared/docs/contracts.md §6.3).
const (
	StepCPUMilli    = 1000
	StepMemoryBytes = 1000 << 20
)

// MaxReplicas is the most replicas that scaling up can reach.
const MaxReplicas = 200

// ScalesOnly reports whether the job leaves its copy as it is, apart from the fields that scaling changes.
func ScalesOnly(j *job.Job) bool {
	return j.Type == job.Update && !job.Remediation(j.SubType).Rewrites()
}

// remedies returns the scalings that the job's copy must show, oldest first, and the id of the remediation that last
// rewrote its objects ("" if none did since the content was set). Scalings before that rewrite are gone; refused ones
// change nothing. Package job counts replicas by the same rule.
func remedies(j *job.Job) (written string, scalings []job.Remedy) {
	for _, r := range j.Remediations {
		switch {
		case r.Status == job.RemedyFailed, unsupported(j, r.Type) != nil:
		case r.Type.Rewrites():
			written, scalings = r.ID.String(), nil
		default:
			scalings = append(scalings, r)
		}
	}
	return written, scalings
}

// Scalings returns how to scale objects that have just been built from the job.
func Scalings(j *job.Job) []job.Remedy {
	_, scalings := remedies(j)
	return scalings
}

// Lacking returns the scalings that a copy with this record still lacks. ok is false when the copy differs in more than
// that: its objects must then be built anew. A scaling is relative, so the record, which is written together with it,
// is the only way to tell whether it was carried out.
func (r Record) Lacking(j *job.Job) (scalings []job.Remedy, ok bool) {
	want := RecordOf(j)
	if r.Epoch != want.Epoch || r.Content != want.Content {
		return nil, false
	}
	written, scalings := remedies(j)
	if r.Remedy == written {
		return scalings, true
	}
	last := slices.IndexFunc(scalings, func(s job.Remedy) bool { return s.ID.String() == r.Remedy })
	return scalings[last+1:], last >= 0
}

// Start says from what the text that a copy with this record runs is to be made, for orchestrators that keep that text:
// the former one (of what is deployed, or ""), the contents to write over it (nil = none), and the scalings to carry out
// after that. A scaling starts from what is deployed, unless that is of another content; a patch leaves what it does not
// name.
func (r Record) Start(j *job.Job, deployed string) (former string, contents []job.Content, scalings []job.Remedy) {
	lacking, keeps := r.Lacking(j)
	if keeps && ScalesOnly(j) && deployed != "" {
		return deployed, nil, lacking
	}
	if j.Type == job.Update && j.SubType == string(job.Patch) {
		former = deployed
	}
	return former, j.Instruction.Contents, Scalings(j)
}

// Unsupported returns why no orchestrator can carry out the remediation that the job asks for; nil when one can, or
// when the job asks for none. The copy then stays as it is.
func Unsupported(j *job.Job) *Refusal {
	if j.Type != job.Update {
		return nil
	}
	return unsupported(j, job.Remediation(j.SubType))
}

func unsupported(j *job.Job, r job.Remediation) *Refusal {
	switch r {
	case job.Secure:
		return Refuse(ReasonNotSupported, "nothing here can act inside a container, as %q asks", r)
	case job.ScaleUp, job.ScaleDown:
		if scaled := autoscaledIn(j); len(scaled) > 0 {
			return Refuse(ReasonNotSupported, "how many replicas %s has is for its HorizontalPodAutoscaler to say", scaled[0])
		}
	}
	return nil
}

// ScaledReplicas adds by, which may be negative, within 1 and MaxReplicas.
func ScaledReplicas(have, by int64) int64 {
	if by > 0 {
		return max(have, min(MaxReplicas, have+by))
	}
	return max(min(have, 1), have+by)
}

// ScaledRequest adds or takes away a step; a request of no more than one step is not lowered.
func ScaledRequest(have, step int64, more bool) int64 {
	switch {
	case more:
		return have + step
	case have > step:
		return have - step
	}
	return have
}
