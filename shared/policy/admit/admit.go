// Package admit decides whether a policy that somebody hands in is accepted: its form, the component it is about, the
// expression it renders to, and whose series that reads.
//
// It contains Prometheus' parser; functions that only read or delete policies do without it.
package admit

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/webhook"
)

// Settings are what admitting a policy or a descriptor depends on beside it.
type Settings struct {
	topology.Freshness

	// ComposeHostAccess is who may hand in compose files with privileged services or with directories and namespaces of the host.
	ComposeHostAccess Granted `envconfig:"COMPOSE_HOST_ACCESS" default:"none"`
}

// Granted is the role that something is granted to; "" = nobody.
type Granted auth.Role

// UnmarshalText reads a setting.
func (g *Granted) UnmarshalText(text []byte) error {
	switch role := string(text); auth.Role(role) {
	case auth.Admin, auth.Operator:
		*g = Granted(role)
	case "none", "":
		*g = ""
	default:
		return fmt.Errorf("%q is not one of none, %s, %s", role, auth.Admin, auth.Operator)
	}
	return nil
}

// to reports whether the caller is granted it.
func (g Granted) to(ctx context.Context) bool { return g != "" && auth.From(ctx).Can(auth.Role(g)) }

// Policy checks a policy as its writer gave it and returns what it renders to. The errors are Invalid with every
// fault, or Forbidden when the expression reads other tenants' series and the caller's role does not allow that.
func (s Settings) Policy(ctx context.Context, q store.Querier, p *registry.Policy) (registry.Spec, error) {
	p.Defaults()
	if err := p.Check(); err != nil {
		return registry.Spec{}, err
	}
	if p.Action.URL != "" {
		if err := webhook.CheckURL(p.Action.URL); err != nil {
			var faults problem.Faults
			faults.Add("action.url", 0, "%v", err)
			return registry.Spec{}, faults.Err("the policy is not valid")
		}
	}
	if err := subject(ctx, q, &p.Subject); err != nil {
		return registry.Spec{}, err
	}
	return s.Render(ctx, p)
}

// Render returns what the policy renders to, for this caller.
func (s Settings) Render(ctx context.Context, p *registry.Policy) (registry.Spec, error) {
	spec, err := render.Policy(p, s.StaleAfter)
	if err != nil || spec.Type != registry.TelemetrySpec {
		return spec, err
	}
	return spec, own(p, spec, auth.From(ctx).Can(auth.Admin))
}

// Descriptor renders the policies of a descriptor, which may be anyone's: they read no other tenant's series.
func (s Settings) Descriptor(p *registry.Policy) (registry.Spec, error) {
	spec, err := render.Policy(p, s.StaleAfter)
	if err != nil || spec.Type != registry.TelemetrySpec {
		return spec, err
	}
	err = own(p, spec, false)
	if problem.KindOf(err) == problem.Forbidden {
		return registry.Spec{}, problem.New(problem.Invalid, "%v", err)
	}
	return spec, err
}

// own refuses an expression that reads what belongs to others. The templates are ours and bound to their subject.
func own(p *registry.Policy, spec registry.Spec, all bool) error {
	if all || p.Spec.Type == registry.TemplateSpec {
		return nil
	}
	foreign, err := render.Foreign(spec.Expr, p.Subject)
	if err != nil || len(foreign) == 0 {
		return err
	}
	listed := make([]string, 0, len(foreign))
	for _, s := range foreign[:min(len(foreign), 3)] {
		listed = append(listed, s.Text+" ("+s.Reason+")")
	}
	return problem.New(problem.Forbidden, "spec.expr reads series that may be other tenants', which needs the role %q: %s",
		auth.Admin, strings.Join(listed, "; "))
}

// subject checks that the component is one of the application's, where that is an application of ours, and has the application
// called as all others call it. Others may be known elsewhere.
func subject(ctx context.Context, q store.Querier, s *registry.Subject) error {
	id, err := uuid.Parse(s.AppInstance)
	if s.Type != registry.AppSubject || err != nil {
		return nil
	}
	app, err := application.Get(ctx, q, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	s.AppInstance = app.ID.String()
	parsed, err := dialect.DecodeHeader(app.Dialect, []byte(app.Descriptor), nil)
	if err != nil {
		return err
	}
	for i := range parsed.Components {
		if registry.Matches(s.AppComponent, parsed.Components[i].Name) {
			return nil
		}
	}
	var faults problem.Faults
	faults.Add("subject.appComponent", 0, "%q is no component of application %s", s.AppComponent, app.Name)
	return faults.Err("the policy is not valid")
}
