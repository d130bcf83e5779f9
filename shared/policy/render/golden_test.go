package render_test

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/problem"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	instance    = "2104db48-e612-4b55-8bbd-76b4319521f2"
	descriptors = "../../../test/contracts/descriptors/dynamic-policy-manager/"
)

// TestRules_ofThePublishedDescriptors covers the whole path from a descriptor to a rule file that Prometheus accepts.
func TestRules_ofThePublishedDescriptors(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		descriptors + "app_descriptor_2.yaml", descriptors + "app_descriptor_all.yaml",
		descriptors + "app_descriptor_compss_1.yaml", descriptors + "app_descriptor_compss_2.yaml",
		"testdata/every_kind.yaml",
	} {
		name := filepath.Base(source)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := os.ReadFile(source)
			require.NoError(t, err)
			app, err := descriptor.ParseHeader(doc, nil)
			require.NoError(t, err)
			policies, err := registry.FromDescriptor(app, instance, app.Name)
			require.NoError(t, err)
			var file registry.RuleFile
			for i := range policies {
				p := &policies[i]
				spec, err := render.Policy(p, time.Minute)
				require.NoError(t, err, p.Name)
				if spec.Type == registry.ConstraintsSpec {
					continue
				}
				p.Status.RenderedSpec = &spec
				group, err := p.RuleGroup()
				require.NoError(t, err)
				file.Groups = append(file.Groups, group)
			}
			got, err := yaml.Marshal(file)
			require.NoError(t, err)
			golden := filepath.Join("testdata", name[:len(name)-len(".yaml")]+".rules.golden.yaml")
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			_, errs := rulefmt.Parse(got, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
				slog.New(slog.DiscardHandler))
			require.Empty(t, errs, "Prometheus refuses the file")
		})
	}
}

// The first published descriptor has a policy for a component it does not have.
func TestRules_ofAComponentThatIsNotThere(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(descriptors + "app_descriptor_1.yaml")
	require.NoError(t, err)
	app, err := descriptor.ParseHeader(doc, nil)
	require.NoError(t, err)
	_, err = registry.FromDescriptor(app, instance, app.Name)
	require.ErrorContains(t, err, `policies[1].apply-to: "component1" is not a component of the application`)
	require.Equal(t, problem.Invalid, problem.KindOf(err))
}
