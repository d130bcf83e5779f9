// Package composefile makes the one compose file of a job's copy, for every orchestrator that is handed compose files. It
// does no I/O.
package composefile

import (
	"context"
	"errors"

	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Build makes the project of the contents, over what is in the former file, and scales it. Without contents it is the
// former one.
func Build(
	ctx context.Context, j *job.Job, former string, contents []job.Content, scalings []job.Remedy,
) (*compose.Project, error) {
	var p *compose.Project
	if former != "" {
		var err error
		if p, err = compose.Load(ctx, []compose.File{{Name: "deployed", Text: former}}); err != nil {
			return nil, Bad(j, err)
		}
	}
	if contents != nil {
		named, err := read(ctx, j, contents)
		if err != nil {
			return nil, Bad(j, err)
		}
		if p == nil {
			p = named
		} else {
			p.Replace(named)
		}
	}
	if p == nil {
		return nil, Bad(j, errors.New("it has no compose file"))
	}
	for _, s := range scalings {
		scale(p, s)
	}
	return p, nil
}

// Bad is the refusal of a compose file that cannot be used.
func Bad(j *job.Job, err error) error {
	return &orchestrator.Refusal{
		Reason: orchestrator.ReasonBadManifest, Message: "component " + j.Component + ": " + err.Error(), Err: err,
	}
}

// read reads the contents, with the devices that the component requires and our marks on its containers.
func read(ctx context.Context, j *job.Job, contents []job.Content) (*compose.Project, error) {
	files := make([]compose.File, len(contents))
	for i, c := range contents {
		files[i] = compose.File{Name: c.Name, Text: c.YAML}
	}
	p, err := compose.Load(ctx, files)
	if err != nil {
		return nil, err
	}
	if err := p.Attach(j.Instruction.Requirements.Devices); err != nil {
		return nil, err
	}
	p.Label(map[string]string{
		orchestrator.LabelManager: orchestrator.Manager, orchestrator.LabelJob: orchestrator.Subject(j).String(),
		label.MarkApplication: j.ApplicationName, label.MarkInstance: j.ApplicationID.String(),
		label.MarkComponent: j.Component, label.MarkResource: orchestrator.ResourceID(j),
	})
	return p, nil
}

// scale carries out a remediation on each service.
func scale(p *compose.Project, r job.Remedy) {
	by := int64(max(r.Step, 1))
	switch r.Type {
	case job.ScaleDown:
		by = -by
		fallthrough
	case job.ScaleUp:
		p.Scale(func(n int64) int64 { return orchestrator.ScaledReplicas(n, by) })
	case job.ScaleOut, job.ScaleIn:
		more := r.Type == job.ScaleOut
		p.Reserve(func(cpu, memory int64) (int64, int64) {
			return orchestrator.ScaledRequest(cpu, orchestrator.StepCPUMilli, more),
				orchestrator.ScaledRequest(memory, orchestrator.StepMemoryBytes, more)
		})
	}
}
