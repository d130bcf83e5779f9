package tree_test

import (
	"slices"
	"strings"
)

// promql is what Prometheus' parser links.
var promql = []string{
	"github.com/prometheus/prometheus", "github.com/prometheus/common", "github.com/prometheus/client_golang",
	"github.com/prometheus/client_model", "github.com/prometheus/procfs", "github.com/beorn7/perks",
	"github.com/dennwc/varint", "github.com/grafana/regexp", "github.com/munnerz/goautoneg", "go.uber.org/atomic",
	"golang.org/x/sys", "google.golang.org/protobuf",
}

// takers are the functions that take descriptors in, or weigh one that is handed to them.
var takers = []string{
	"controller-offer", "jobmanager-group-create", "jobmanager-group-update", "jobmanager-pin", "jobmanager-rollback", "jobmanager-scale",
	"matchmaker-explain", "matchmaker-matchmake", "matchmaker-plan", "matchmaker-whatif", "shell-deployment-create",
	"shell-deployment-update",
}

// heavier are the modules that some functions may link in addition to the common ones, with the reason. The budget of
// such a function is 25 ms and 28 MiB.
var heavier = []struct {
	why       string
	functions []string // "component-operation"
	modules   []string
}{
	{
		"the archive and models may lie in a bucket",
		[]string{
			"jobmanager-archive", "jobmanager-history-archived", "mdm-datasets", "metricsexport-compute", "metricsexport-drift", "metricsexport-fit",
			"metricsexport-model-delete", "metricsexport-model-metric-create", "metricsexport-predict", "metricsexport-train",
			"pdlc-judge", "shell-metrics-predict", "shell-metrics-train",
		},
		[]string{
			"github.com/aws/aws-sdk-go-v2", "github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream",
			"github.com/aws/aws-sdk-go-v2/internal/configsources", "github.com/aws/aws-sdk-go-v2/internal/endpoints/v2",
			"github.com/aws/aws-sdk-go-v2/internal/v4a", "github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding",
			"github.com/aws/aws-sdk-go-v2/service/internal/checksum",
			"github.com/aws/aws-sdk-go-v2/service/internal/presigned-url",
			"github.com/aws/aws-sdk-go-v2/service/internal/s3shared", "github.com/aws/aws-sdk-go-v2/service/s3",
			"github.com/aws/smithy-go",
		},
	},
	{
		"forecasts solve their equations by gonum",
		[]string{
			"metricsexport-compute", "metricsexport-drift", "metricsexport-fit", "metricsexport-metric-create", "metricsexport-metric-delete",
			"metricsexport-metric-get", "metricsexport-metric-list", "metricsexport-metrics", "metricsexport-model-delete",
			"metricsexport-model-get", "metricsexport-model-list", "metricsexport-model-metric-create", "metricsexport-model-metric-stop",
			"metricsexport-model-show", "metricsexport-predict", "metricsexport-train", "metricsexport-training-get",
			"pdlc-judge", "pdlc-participate", "pdlc-pipeline-delete", "pdlc-pipeline-list", "pdlc-pipeline-put", "pdlc-pipeline-rollback",
			"pdlc-retrain", "shell-metrics-predict", "shell-metrics-train",
		},
		[]string{"gonum.org/v1/gonum", "golang.org/x/tools"},
	},
	{
		"brokers of MQTT are sent what is published",
		[]string{"bus-forward"},
		[]string{"github.com/eclipse/paho.golang"},
	},
	{
		"payloads are held against JSON schemas",
		[]string{"mdm-publish", "mdm-schema-put"},
		[]string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},
	{
		"the webhook's body is of Alertmanager's own types",
		[]string{"policymanager-alertmanager"},
		[]string{
			"github.com/prometheus/alertmanager", "github.com/prometheus/common", "github.com/prometheus/client_model",
			"google.golang.org/protobuf", "gopkg.in/yaml.v2",
		},
	},
	{
		"objects of any kind are brought to clusters, by client-go's dynamic client",
		askers(),
		[]string{
			"k8s.io/client-go", "k8s.io/kube-openapi", "sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/yaml",
			"sigs.k8s.io/structured-merge-diff/v6", "github.com/davecgh/go-spew", "github.com/fxamacker/cbor/v2",
			"github.com/munnerz/goautoneg", "github.com/x448/float16", "go.yaml.in/yaml/v2", "golang.org/x/sys",
			"golang.org/x/term", "golang.org/x/time", "gopkg.in/inf.v0",
		},
	},
	{
		"gRPC is the form of the interface between CODECO's scheduler and its solver",
		[]string{"swm-solve"},
		[]string{
			"golang.org/x/net", "golang.org/x/sys", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc",
			"google.golang.org/protobuf",
		},
	},
	{
		"Nuvla is handed compose files, which the library of their specification reads, and objects of Kubernetes",
		[]string{"deploymentmanager-deploy-nuvla", "deploymentmanager-sync-nuvla"},
		[]string{
			"github.com/compose-spec/compose-go/v2", "github.com/distribution/reference", "github.com/docker/go-connections",
			"github.com/docker/go-units", "github.com/go-viper/mapstructure/v2", "github.com/mattn/go-shellwords",
			"github.com/opencontainers/go-digest", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/sirupsen/logrus",
			"github.com/xhit/go-str2duration/v2", "go.yaml.in/yaml/v4",
			"k8s.io/kube-openapi", "sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/yaml",
			"sigs.k8s.io/structured-merge-diff/v6", "github.com/fxamacker/cbor/v2", "github.com/x448/float16",
			"go.yaml.in/yaml/v2", "golang.org/x/sys", "gopkg.in/inf.v0",
		},
	},
	{
		"a descriptor may hold compose files, which the library of their specification reads (shared/submission)",
		takers,
		[]string{
			"github.com/compose-spec/compose-go/v2", "github.com/distribution/reference", "github.com/docker/go-connections",
			"github.com/docker/go-units", "github.com/go-viper/mapstructure/v2", "github.com/mattn/go-shellwords",
			"github.com/opencontainers/go-digest", "github.com/santhosh-tekuri/jsonschema/v6", "github.com/sirupsen/logrus",
			"github.com/xhit/go-str2duration/v2", "go.yaml.in/yaml/v4", "golang.org/x/sys",
		},
	},
	{
		"a question in PromQL is confined to what the caller may see by its syntax tree",
		[]string{"telemetry-series"},
		promql,
	},
	{
		"what Prometheus will load is for Prometheus' own parser to say, before it is stored",
		[]string{"telemetry-rule-create"},
		promql,
	},
	{
		"what renders policies makes PromQL by its syntax tree, with Prometheus' own parser",
		[]string{
			"policymanager-policy-create", "policymanager-policy-update", "policymanager-variable-set",
			"policymanager-variable-delete", "policymanager-render", "policymanager-backtest", "policymanager-follow",
			"policymanager-app-event", "policymanager-app-policies",
		},
		promql,
	},
	{
		"a descriptor is refused where an expression of its policies is no PromQL, before anything is stored",
		[]string{"jobmanager-group-create", "jobmanager-group-update", "shell-deployment-create", "shell-deployment-update", "jobmanager-rollback", "jobmanager-scale", "jobmanager-pin", "matchmaker-plan", "matchmaker-explain", "matchmaker-whatif"},
		promql,
	},
}

// mayLink reports whether the main in the folder may link the module.
func mayLink(folder, module string) bool {
	name := strings.TrimPrefix(folder, "functions/cmd/")
	for _, h := range heavier {
		if slices.Contains(h.functions, name) && slices.Contains(h.modules, module) {
			return true
		}
	}
	return false
}
