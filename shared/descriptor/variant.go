package descriptor

import (
	"slices"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// variants returns the types of which a component will have manifests, once they are written out.
func (p plan) variants() []string {
	return appmodel.Variants(func(engine string) bool {
		return slices.ContainsFunc(p, func(m planned) bool { return m.def == nil || appmodel.Suits(m.def.kind, engine) })
	})
}
