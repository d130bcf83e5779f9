package broker

import (
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/filter"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	e := cloudevents.New()
	e.SetID("1")
	e.SetSource("/functions/jobmanager")
	e.SetType("dev.littoral.job.ready.v1")
	e.SetSubject("j1")
	e.SetExtension("orchestrator", "ocm")

	for name, row := range map[string]struct {
		spec string
		want bool
	}{
		"no filter takes all":                    {`{}`, true},
		"an exact type":                          {`filter: {attributes: {type: dev.littoral.job.ready.v1}}`, true},
		"another type":                           {`filter: {attributes: {type: dev.littoral.job.ready}}`, false},
		"type and extension":                     {`filter: {attributes: {type: dev.littoral.job.ready.v1, orchestrator: ocm}}`, true},
		"type and another extension":             {`filter: {attributes: {type: dev.littoral.job.ready.v1, orchestrator: nuvla}}`, false},
		"an extension that is not there":         {`filter: {attributes: {cluster: c}}`, false},
		"empty means any value of what is there": {`filter: {attributes: {orchestrator: ""}}`, true},
		"empty attributes take all":              {`filter: {attributes: {}}`, true},
		"exact":                                  {`filters: [{exact: {orchestrator: ocm}}]`, true},
		"exact, several":                         {`filters: [{exact: {type: dev.littoral.job.ready.v1, orchestrator: ocm}}]`, true},
		"exact, all but one of several":          {`filters: [{exact: {type: dev.littoral.job.ready.v1, orchestrator: nuvla}}]`, false},
		"exact, otherwise":                       {`filters: [{exact: {orchestrator: nuvla}}]`, false},
		"prefix":                                 {`filters: [{prefix: {type: dev.littoral.job.}}]`, true},
		"prefix, otherwise":                      {`filters: [{prefix: {type: littoral}}]`, false},
		"suffix":                                 {`filters: [{suffix: {type: .ready.v1}}]`, true},
		"suffix, otherwise":                      {`filters: [{suffix: {type: .ready.v2}}]`, false},
		"several filters must all match":         {`filters: [{prefix: {type: dev.}}, {exact: {orchestrator: nuvla}}]`, false},
		"all":                                    {`filters: [{all: [{prefix: {type: dev.}}, {suffix: {type: v1}}]}]`, true},
		"all, but one":                           {`filters: [{all: [{prefix: {type: dev.}}, {suffix: {type: v2}}]}]`, false},
		"any":                                    {`filters: [{any: [{exact: {orchestrator: nuvla}}, {exact: {orchestrator: ocm}}]}]`, true},
		"any, but none":                          {`filters: [{any: [{exact: {orchestrator: nuvla}}, {exact: {orchestrator: k8s}}]}]`, false},
		"not":                                    {`filters: [{not: {exact: {orchestrator: nuvla}}}]`, true},
		"not, otherwise":                         {`filters: [{not: {exact: {orchestrator: ocm}}}]`, false},
		"cesql":                                  {`filters: [{cesql: "type LIKE 'dev.littoral.job.%' AND orchestrator IN ('ocm', 'nuvla')"}]`, true},
		"cesql, otherwise":                       {`filters: [{cesql: "orchestrator = 'nuvla'"}]`, false},
		"cesql on what is not there":             {`filters: [{cesql: "EXISTS cluster"}]`, false},
		"nested dialects":                        {`filters: [{not: {any: [{cesql: "subject = 'j2'"}, {all: [{exact: {subject: j1}}, {prefix: {source: /other}}]}]}}]`, true},
		"filters win over a filter that would fail": {"filter: {attributes: {type: x}}\nfilters: [{exact: {orchestrator: ocm}}]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spec eventingv1.TriggerSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte(row.spec), &spec))
			tr := &trigger{filter: filter.Of(spec)}
			require.Equal(t, row.want, tr.wants(t.Context(), e))
		})
	}
}
