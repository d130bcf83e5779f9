package tree_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
)

// askers are the functions that use the API of a cluster. Their declarations say so, their pods get a token for it, and
// only they may contain client-go (dynamic client only).
func askers() []string {
	var names []string
	for _, entry := range functions.Registry {
		if entry.Spec.Kubernetes {
			names = append(names, entry.Name)
		}
	}
	return names
}

// TestImportsRunOneWay: functions -> shared/<domain> -> shared/{store, events, ...}; no function imports another.
func TestImportsRunOneWay(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t, "functions", "shared", "knative", "triggers") {
		from := p.folder()
		for _, path := range p.Imports {
			to, own := strings.CutPrefix(path, module+"/")
			if !own {
				continue
			}
			isMain, isRegistry := below(from, "functions/cmd"), from == "functions"
			switch {
			case below(from, "functions") && !isMain && !isRegistry:
				require.True(t, below(to, "shared"), "%s imports %s: a function imports shared packages only", from, to)
			case isMain:
				require.True(
					t,
					to == "shared/boot" || to == folders(t)[p.Dir[strings.LastIndex(p.Dir, "/")+1:]],
					"%s imports %s",
					from,
					to,
				)
			case below(from, "shared"):
				require.True(t, below(to, "shared"), "%s imports %s", from, to)
			}
		}
	}
}

// pure are packages that only compute: their results depend on their arguments alone.
var pure = []string{"shared/placement", "shared/network", "shared/appmodel", "shared/dialect", "shared/descriptor", "shared/policy/template"}

func TestPurePackagesDoNoIO(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t, pure...) {
		for _, path := range p.Imports {
			for _, bad := range []string{
				"net", "os", "database", "syscall", "log", "io/ioutil", "crypto/rand",
				"github.com/jackc/pgx/v5", module + "/shared/store", module + "/shared/function",
			} {
				require.False(t, below(path, bad), "%s imports %s", p.folder(), path)
			}
		}
		require.NotContains(t, p.Deps, "github.com/jackc/pgx/v5", p.folder())
	}
}

// domain are the packages that say what happens to applications, whoever asks and however. Calls over HTTP are functions'
// business (shared/function), and so are the forms that listings take there (shared/listing).
var domain = []string{
	"shared/application", "shared/appmodel", "shared/descriptor", "shared/dialect", "shared/history", "shared/job",
	"shared/match", "shared/network", "shared/orchestrator", "shared/placement", "shared/policy/admit",
	"shared/policy/lifecycle", "shared/policy/policies", "shared/policy/preview", "shared/policy/registry",
	"shared/policy/remediation", "shared/policy/render", "shared/topology", "shared/telemetry/rules/check",
}

func TestTheDomainKnowsNoHTTP(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range ours(t, "shared") {
		if !slices.Contains(domain, p.folder()) {
			continue
		}
		seen[p.folder()] = true
		for _, path := range p.Imports {
			require.NotEqual(t, "net/http", path, p.folder())
			require.NotContains(t, []string{module + "/shared/function", module + "/shared/listing"}, path, p.folder())
		}
	}
	require.Len(t, seen, len(domain), "each package of the list exists")
}

// TestOnlyFunctionsKnowFunctions: a package that others use in process takes what it needs, not a function's environment.
func TestOnlyFunctionsKnowFunctions(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t, "shared") {
		for _, path := range p.Imports {
			if path == module+"/shared/function" {
				require.Contains(t, []string{
					"shared/acm/intake", "shared/acm/objects", "shared/acm/serve", "shared/boot", "shared/handover/records", "shared/icosshell",
					"shared/linking/serve", "shared/listing", "shared/logs/ask", "shared/mdm/cluster", "shared/netma/serve", "shared/orchestrator/deploy",
					"shared/revise", "shared/swm/cluster", "shared/swm/serve", "shared/wake",
				}, p.folder())
			}
		}
	}
}

// TestNoClientset: the generated clientset doubles size and memory (one import of it is +15 MB).
func TestNoClientset(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t) {
		for _, path := range p.Imports {
			require.False(
				t,
				below(path, "k8s.io/client-go/kubernetes"),
				"%s imports %s: use the dynamic client",
				p.folder(),
				path,
			)
		}
	}
}

func TestOnlyCallersOfKubernetesLinkClientGo(t *testing.T) {
	t.Parallel()
	declared := askers()
	require.NotEmpty(t, declared)
	for _, p := range ours(t, "functions") {
		if p.folder() == "functions" {
			continue
		}
		name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(p.folder(), "functions/"), "cmd/"), "/", "-")
		carries := slices.ContainsFunc(p.Deps, func(dep string) bool { return below(dep, "k8s.io/client-go") })
		require.Equal(t, slices.Contains(declared, name), carries, "%s: Kubernetes of its Spec, and client-go", p.folder())
	}
}

// TestTheContractOfOrchestratorsNeedsNoKubernetes: an orchestrator that knows none, such as Nuvla, can be a client of it.
func TestTheContractOfOrchestratorsNeedsNoKubernetes(t *testing.T) {
	t.Parallel()
	for _, p := range ours(t, "shared/orchestrator") {
		if from := p.folder(); from == "shared/orchestrator" {
			for _, path := range p.Deps { // its own imports and all that they need
				require.False(t, below(path, "k8s.io") || below(path, "sigs.k8s.io"), "%s needs %s", from, path)
				require.NotContains(t, []string{module + "/shared/orchestrator/manifest", module + "/shared/kube"}, path)
			}
		}
	}
}

// direct are the modules that shared packages may import. A package that is not listed may import only the standard
// library, the tree and google/uuid; below includes the subfolders of a folder.
var direct = map[string][]string{
	"shared/deadletter": {"github.com/cloudevents/sdk-go/v2/event", "github.com/jackc/pgx/v5"},
	"shared/peer":       {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/telemetry/rules/check": {
		"github.com/prometheus/common/model", "github.com/prometheus/prometheus/promql/parser",
	},
	"shared/telemetry/rules/files":        {"go.yaml.in/yaml/v3"},
	"shared/telemetry/rules/icos":         {"github.com/jackc/pgx/v5"},
	"shared/telemetry/rules/mimir":        {"go.yaml.in/yaml/v3"},
	"shared/telemetry/rules/rulestest":    {"github.com/stretchr/testify"},
	"shared/application":                  {"github.com/jackc/pgx/v5"},
	"shared/application/applicationtest":  {"github.com/stretchr/testify"},
	"shared/bus":                          {"github.com/jackc/pgx/v5"},
	"shared/bus/sink":                     {"golang.org/x/sync/errgroup"},
	"shared/bus/sink/mqtt":                {"github.com/eclipse/paho.golang"},
	"shared/bus/sink/sinktest":            {"github.com/stretchr/testify"},
	"shared/telemetry/tenant":             {"github.com/jackc/pgx/v5"},
	"shared/logs/pods":                    {"k8s.io/apimachinery"},
	"shared/logs/logstest":                {"github.com/stretchr/testify"},
	"shared/archive":                      {"github.com/jackc/pgx/v5"},
	"shared/exporter":                     {"github.com/jackc/pgx/v5"},
	"shared/forecast":                     {"gonum.org/v1/gonum/mat", "gonum.org/v1/gonum/optimize"},
	"shared/objects/objectstest":          {"github.com/stretchr/testify"},
	"shared/objects/s3":                   {"github.com/aws/aws-sdk-go-v2"},
	"shared/objects/s3/s3test":            {"github.com/stretchr/testify"},
	"shared/watched":                      {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/wake":                         {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/orchestrator/deploy":          {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/auth":                         {"github.com/zitadel/oidc/v3", "github.com/go-jose/go-jose/v4"}, // of oidc
	"shared/auth/login":                   {"github.com/zitadel/oidc/v3", "golang.org/x/oauth2"},           // of oidc
	"shared/auth/authtest":                {"github.com/stretchr/testify", "github.com/go-jose/go-jose/v4"},
	"shared/acm":                          {"github.com/jackc/pgx/v5"},
	"shared/acm/export":                   {"github.com/jackc/pgx/v5"},
	"shared/acm/objects":                  {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
	"shared/clusterlink":                  {"go.yaml.in/yaml/v3"},
	"shared/codecoapp":                    {"go.yaml.in/yaml/v3"},
	"shared/linking":                      {"github.com/jackc/pgx/v5"},
	"shared/mdm":                          {"github.com/jackc/pgx/v5"},
	"shared/mdm/cluster":                  {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
	"shared/mdm/connect":                  {"github.com/jackc/pgx/v5"},
	"shared/mdm/cypher":                   {"github.com/jackc/pgx/v5"},
	"shared/mdm/schema":                   {"github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text"},
	"shared/mec":                          {"github.com/jackc/pgx/v5"},
	"shared/backup":                       {"github.com/jackc/pgx/v5"},
	"shared/netma/links":                  {"github.com/jackc/pgx/v5"},
	"shared/netma/updates":                {"github.com/jackc/pgx/v5"},
	"shared/netma/view":                   {"github.com/jackc/pgx/v5"},
	"shared/netma/vlinks":                 {"github.com/jackc/pgx/v5"},
	"shared/swm/channels":                 {"github.com/jackc/pgx/v5"},
	"shared/swm/bind":                     {"github.com/jackc/pgx/v5"},
	"shared/swm/cluster":                  {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
	"shared/swm/costs":                    {"github.com/jackc/pgx/v5"},
	"shared/swm/endpoints":                {"github.com/jackc/pgx/v5"},
	"shared/swm/groups":                   {"github.com/jackc/pgx/v5"},
	"shared/swm/ipam":                     {"github.com/jackc/pgx/v5"},
	"shared/swm/reservations":             {"github.com/jackc/pgx/v5"},
	"shared/swm/topologies":               {"github.com/jackc/pgx/v5"},
	"shared/swm/solve/pb":                 {"google.golang.org/protobuf/reflect/protoreflect", "google.golang.org/protobuf/runtime/protoimpl"},
	"shared/descriptor":                   {"go.yaml.in/yaml/v3"},
	"shared/difference":                   {"go.yaml.in/yaml/v3"},
	"shared/events":                       {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/events/identity":              {"github.com/zitadel/oidc/v3", "golang.org/x/oauth2"}, // of oidc
	"shared/events/identity/identitytest": {"github.com/stretchr/testify"},
	"shared/function":                     {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/history":                      {"github.com/jackc/pgx/v5"},
	"shared/job":                          {"github.com/jackc/pgx/v5"},
	"shared/match":                        {"github.com/jackc/pgx/v5"},
	"shared/migrate":                      {"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3"}, // host, one Job
	"shared/policy/policies":              {"github.com/jackc/pgx/v5"},
	"shared/policy/remediation":           {"go.yaml.in/yaml/v3", "github.com/jackc/pgx/v5"},
	"shared/metricsexport":                {"github.com/jackc/pgx/v5"},
	"shared/pdlc/advice":                  {"github.com/jackc/pgx/v5"},
	"shared/pdlc/awareness":               {"github.com/jackc/pgx/v5"},
	"shared/pdlc/federation":              {"github.com/jackc/pgx/v5"},
	"shared/pdlc/pipeline":                {"github.com/jackc/pgx/v5"},
	"shared/lighthouse":                   {"github.com/jackc/pgx/v5"},
	"shared/handover":                     {"github.com/jackc/pgx/v5"},
	"shared/signin":                       {"golang.org/x/oauth2"},
	"shared/cordon":                       {"github.com/jackc/pgx/v5"},
	"shared/credentials":                  {"golang.org/x/oauth2"},
	"shared/policy/render": {
		"github.com/prometheus/prometheus/promql/parser", "github.com/prometheus/prometheus/model/labels",
	},
	"shared/cli": { // of the command line
		"github.com/alecthomas/kong", "github.com/fatih/color", "github.com/zalando/go-keyring", "golang.org/x/term", "sigs.k8s.io/yaml",
	},
	"shared/roles": {"github.com/jackc/pgx/v5"},
	"shared/store": {"github.com/cloudevents/sdk-go/v2/event", "github.com/jackc/pgx/v5"},
	"shared/store/localpg": {
		"github.com/fergusstrange/embedded-postgres",
		"github.com/jackc/pgx/v5",
	}, // of the host and tests
	"shared/store/storetest": {
		"github.com/cloudevents/sdk-go/v2/event",
		"github.com/jackc/pgx/v5",
		"github.com/stretchr/testify",
	},
	"shared/telemetry":                {"github.com/json-iterator/go"}, // the package of events contains it anyway
	"shared/topology":                 {"github.com/jackc/pgx/v5"},
	"shared/orchestrator":             {"go.yaml.in/yaml/v3"},
	"shared/orchestrator/manifest":    {"k8s.io/apimachinery", "sigs.k8s.io/yaml"},
	"shared/orchestrator/dress":       {"k8s.io/apimachinery", "sigs.k8s.io/yaml"},
	"shared/orchestrator/deployer":    {"github.com/cloudevents/sdk-go/v2/event"},
	"shared/orchestrator/conformance": {"github.com/stretchr/testify", "k8s.io/apimachinery", "k8s.io/client-go"}, // of tests
	"shared/orchestrator/kubernetes":  {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
	"shared/orchestrator/nuvla":       {"k8s.io/apimachinery", "sigs.k8s.io/yaml"},
	"shared/compose": { // of deploy-nuvla, sync-nuvla, and of what takes descriptors (shared/submission)
		"github.com/compose-spec/compose-go/v2", "github.com/santhosh-tekuri/jsonschema/v6", "go.yaml.in/yaml/v3", "golang.org/x/text",
	},
	"shared/orchestrator/ocm": {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
	"shared/orchestrator/engine": { // of the agent of a machine, which is no function
		"github.com/compose-spec/compose-go/v2", "github.com/containerd/errdefs", "github.com/distribution/reference",
		"github.com/docker/go-units",
		"github.com/moby/moby/api", "github.com/moby/moby/client",
	},
	"shared/kube": {
		"k8s.io/apimachinery", "k8s.io/client-go/dynamic", "k8s.io/client-go/rest", "k8s.io/client-go/transport",
		"sigs.k8s.io/yaml",
	},
	"shared/telemetry/rules/prometheusrule": {"k8s.io/apimachinery", "k8s.io/client-go/dynamic"},
}

func TestSharedPackagesImportLittle(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range ours(t, "shared") {
		for _, path := range p.Imports {
			if first, _, _ := strings.Cut(
				path,
				"/",
			); !strings.Contains(first, ".") || below(path, module) ||
				path == "github.com/google/uuid" {
				continue
			}
			at := slices.IndexFunc(direct[p.folder()], func(allowed string) bool { return below(path, allowed) })
			require.GreaterOrEqual(t, at, 0, "%s imports %s; if every function that uses it shall carry that, add it to direct", p.folder(), path)
			used[p.folder()+" "+direct[p.folder()][at]] = true
		}
	}
	for folder, paths := range direct {
		for _, path := range paths {
			if !used[folder+" "+path] {
				t.Errorf("%s does not import %s any more: remove it from direct", folder, path)
			}
		}
	}
}

// carried are all modules that a function may link, by the import that needs them. A function starts in milliseconds
// and fits into 16 MiB because this list is short.
var carried = map[string][]string{
	"ours": {module, "github.com/google/uuid"},
	"the store": {
		"github.com/jackc/pgx/v5",
		"github.com/jackc/pgpassfile",
		"github.com/jackc/pgservicefile",
		"github.com/jackc/puddle/v2",
		"golang.org/x/sync",
		"golang.org/x/text",
	},
	"events": {
		"github.com/cloudevents/sdk-go/v2", "github.com/json-iterator/go", "github.com/modern-go/concurrent",
		"github.com/modern-go/reflect2",
	},
	"tokens": {
		"github.com/zitadel/oidc/v3",
		"github.com/zitadel/schema",
		"github.com/go-jose/go-jose/v4",
		"github.com/gorilla/securecookie",
		"github.com/muhlemmer/gu",
		"golang.org/x/oauth2",
		"github.com/go-logr/logr",
		"github.com/go-logr/stdr",
		"github.com/cespare/xxhash/v2",
		"go.opentelemetry.io/auto/sdk",
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/trace",
	},
	"the drain":   {"golang.org/x/net", "k8s.io/apimachinery", "k8s.io/klog/v2", "k8s.io/utils"},
	"descriptors": {"go.yaml.in/yaml/v3"},
}

func TestFunctionsLinkLittle(t *testing.T) {
	t.Parallel()
	allowed, used := map[string]bool{}, map[string]bool{}
	for _, modules := range carried {
		for _, m := range modules {
			allowed[m] = true
		}
	}
	all := packages(t)
	for _, main := range ours(t, "functions/cmd") {
		for _, dep := range main.Deps {
			if p := all[dep]; !p.Standard && p.Module != nil {
				used[p.Module.Path] = true
				require.True(t, allowed[p.Module.Path] || mayLink(main.folder(), p.Module.Path), "%s links %s of %s", main.folder(), dep, p.Module.Path)
			}
		}
	}
	for module := range allowed {
		if !used[module] {
			t.Errorf("no function links %s any more: remove it from carried", module)
		}
	}
}

// TestTheCommandLineIsLight: it uses HTTP and needs no package of the server.
func TestTheCommandLineIsLight(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, dep := range ours(t, "scripts/littoral")[0].Deps {
		if p := all[dep]; p.Module == nil {
			continue
		}
		for _, bad := range []string{
			"github.com/jackc", "knative.dev", "k8s.io", "github.com/prometheus", "github.com/zitadel", "github.com/cloudevents",
			module + "/shared/store", module + "/functions", module + "/infra",
		} {
			require.False(t, below(dep, bad), "the command line links %s", dep)
		}
	}
}
