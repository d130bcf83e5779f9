package admit

import (
	"context"
	"errors"
	"fmt"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/problem"
)

// Application checks what reading a descriptor gave, its error too, by its policies and by what its compose files would get of
// their hosts. The error has all faults and warnings, also those of the reading: it is Invalid too when an expression cannot be
// parsed. What else keeps a policy from being watched is a warning. If strict, each warning is a fault.
func (s Settings) Application(ctx context.Context, app *appmodel.Application, err error, strict bool) (*appmodel.Application, error) {
	var faults problem.Faults
	detail := "the descriptor is invalid"
	var refused *problem.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == problem.Invalid && app != nil:
		detail = refused.Detail
		faults.Append(refused.Fields...)
	case err != nil:
		return nil, err
	}
	if !s.ComposeHostAccess.to(ctx) {
		allows := ", which only the setting COMPOSE_HOST_ACCESS allows"
		if s.ComposeHostAccess != "" {
			allows = fmt.Sprintf(", which needs the role %s", s.ComposeHostAccess)
		}
		for _, f := range app.HostAccess {
			f.Detail += allows
			faults.Append(f)
		}
	}
	var odd []problem.Field
	all := registry.Inspect(app, func(p *registry.Policy) {
		unreadable := render.Syntax(&p.Spec)
		for _, f := range unreadable {
			f.Path = p.Path + "." + f.Path
			f.Line = app.Line(f.Path, max(f.Line-1, 0))
			faults.Append(f)
		}
		if p.Spec.Type == registry.TelemetrySpec && len(unreadable) == 0 {
			for _, f := range s.unwatchable(p) {
				odd = append(odd, registry.Unwatched(app, f))
			}
		}
	})
	all = append(all, odd...)
	app.Warnings = append(app.Warnings, odd...)
	if strict && faults.Empty() {
		faults.Append(all...)
		return app, faults.Err("the descriptor has warnings, which are errors when it is strict")
	}
	return app, problem.WithWarnings(faults.Err(detail), all)
}

// unwatchable says why a query of a descriptor cannot be watched.
func (s Settings) unwatchable(p *registry.Policy) []problem.Field {
	_, err := s.Descriptor(p)
	var refused *problem.Error
	if !errors.As(err, &refused) {
		return nil // it can, or nobody knows
	}
	if len(refused.Fields) == 0 {
		return []problem.Field{{Path: p.Path, Detail: refused.Detail}}
	}
	fields := refused.Fields
	for i := range fields {
		fields[i].Path = p.Path + "." + fields[i].Path
	}
	return fields
}
