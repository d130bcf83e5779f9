package remediation

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/problem"
)

// ErrLimit is wrapped by the error for a remediation that the descriptor does not allow; repeating does not help.
var ErrLimit = errors.New("scaling limit")

// defaultScaling applies if the descriptor says nothing: a violation may add a few replicas, never remove the last.
var defaultScaling = appmodel.Scaling{MinReplicas: 1, MaxReplicas: 5, Step: 1}

// replicas returns the number of replicas of the job now and after the remediation. The error is Conflict, and wraps
// ErrLimit, if that is outside the limits of the descriptor.
func replicas(app *appmodel.Application, j *job.Job, r job.Remediation) (now, next int, err error) {
	bounds := defaultScaling
	base := written(j)
	bounds.MaxReplicas = max(bounds.MaxReplicas, base)
	if c := app.Component(j.Component); c != nil && c.Scaling != nil {
		bounds = *c.Scaling
	}
	step := max(bounds.Step, 1)
	now = base
	for _, done := range j.Remediations {
		switch {
		case done.Status == job.RemedyFailed:
		case done.Type.Rewrites():
			now = base
		case done.Type == job.ScaleUp:
			now = min(now+max(done.Step, 1), max(bounds.MaxReplicas, base))
		case done.Type == job.ScaleDown:
			now = max(now-max(done.Step, 1), min(bounds.MinReplicas, base))
		}
	}
	next = min(now+step, bounds.MaxReplicas)
	if r == job.ScaleDown {
		next = max(now-step, bounds.MinReplicas)
	}
	if (r == job.ScaleUp && next <= now) || (r == job.ScaleDown && next >= now) {
		return now, now, problem.Wrap(problem.Conflict, ErrLimit, "%s has %d replicas already; its descriptor allows %d to %d",
			j.Component, now, bounds.MinReplicas, bounds.MaxReplicas)
	}
	return now, next, nil
}

// written is the number of replicas in the objects of the job.
func written(j *job.Job) int {
	most := 1
	for _, c := range j.Instruction.Contents {
		var object struct {
			Spec struct {
				Replicas *int `yaml:"replicas"`
			} `yaml:"spec"`
		}
		if yaml.Unmarshal([]byte(c.YAML), &object) == nil && object.Spec.Replicas != nil {
			most = max(most, *object.Spec.Replicas)
		}
	}
	return most
}

// Settings of remediations.
type Settings struct {
	match.Settings
	// Conventional lets scale-out and scale-in change replicas, and scale-up and scale-down the requests of containers,
	// as the words are used elsewhere. The policies page of ICOS has it the other way round.
	Conventional bool `envconfig:"SCALING_CONVENTIONAL"`
}

// meant translates the remediation into the words of ICOS.
func (s Settings) meant(r job.Remediation) job.Remediation {
	if !s.Conventional {
		return r
	}
	switch r {
	case job.ScaleOut:
		return job.ScaleUp
	case job.ScaleIn:
		return job.ScaleDown
	case job.ScaleUp:
		return job.ScaleOut
	case job.ScaleDown:
		return job.ScaleIn
	}
	return r
}

// apart is the difference between the numbers of replicas; 0 stands for one, which is the only step that ICOS agents
// support.
func apart(now, next int) int {
	if n := max(next-now, now-next); n != 1 {
		return n
	}
	return 0
}

// describe adds the result of a scaling to its reason.
func describe(reason string, n int) string { return fmt.Sprintf("%s; %d replicas", reason, n) }
