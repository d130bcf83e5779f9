package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// worlds are those that neither of the two shared ones fits, and why.
var worlds = map[string]string{
	"functions/aggregator/tick":       "one function with a Prometheus, and no application",
	"functions/mdm/object-apply":      "an API server, and no application",
	"shared/generator":                "not of tests: a world that is made up for a fleet",
	"shared/bus/sink/sinktest":        "what every sink is tried in",
	"shared/handover":                 "two controllers, each with its own store",
	"shared/mec":                      "users and subscriptions in a store, and no application",
	"shared/metricsexport":            "a telemetry store with its receiver, and no application",
	"shared/orchestrator/conformance": "an interface: what every orchestrator is tried in",
	"shared/pdlc/balance":             "not of tests: what agents play in",
	"test/bench":                      "a program that measures; functions run in it and as processes, on a durable Postgres",
	"test/bench/day":                  "a simulation of decisions: no function runs in it",
	"test/bench/continuum":            "as test/bench, with thousands of nodes",
	"test/e2e/knative":                "a real cluster",
	"test/e2e/telemetry":              "the laptop host with a Prometheus and an Alertmanager",
	"test/faults":                     "functions in a process that is killed; its Broker, issuer and agents are those of inprocess",
}

// brokers are types of tests that accept events and are no Broker, and why.
var brokers = map[string]string{
	"shared/store.publisherFunc":      "a fault of a Broker",
	"shared/store/storetest.Holding":  "keeps one publisher waiting",
	"shared/store/storetest.Recorder": "only remembers what was published",
	"test/bench/bus.nobody":           "measures what comes before a Broker",
	"shared/wake.inner":               "a fault of a Broker",
	"test/bench.accepts":              "nobody takes the events",
	"test/bench.delivers":             "measures what the way back of each event costs",
	"test/faults.publisher":           "a boundary at which the process is killed",
	"test/inprocess.Broker":           "the Broker",
	"shared/wake.publisher":           "not of tests: wakes who will take the event",
	"shared/events.HTTPPublisher":     "not of tests",
	"infra/runner/broker.Publisher":   "not of tests: the Broker of the laptop",
}

// agents are packages that take jobs over the API without inprocess.Agent, and why.
var agents = map[string]string{
	"functions/jobmanager/job-promote":    "not of tests: the operation itself",
	"infra/runner/fleet":                  "not of tests: the agents of the simulated fleet",
	"shared/orchestrator/deployer/polled": "not of tests: the agent of a machine",
	"test/bench":                          "measures single calls, outside of tests",
	"test/contracts":                      "tries each form of each call",
	"test/inprocess":                      "the agent",
}

// TestThereIsOneHarness: a test runs the functions with test/inprocess, and what is below them with applicationtest.World; its
// Broker and its agents are those of test/inprocess. What is not says why.
func TestThereIsOneHarness(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") || name == "test/tree/harness_test.go" {
			continue
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if strings.EqualFold(n.Name.Name, "world") && !embeds(n, "applicationtest.World", "inprocess.System") && folder != "shared/application/applicationtest" {
					require.Contains(t, worlds, folder, "a world that embeds neither applicationtest.World nor inprocess.System")
					used["world "+folder] = true
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Publish" && n.Recv != nil && len(n.Type.Params.List) == 2 {
					require.Contains(t, brokers, folder+"."+receiver(n), "another Broker beside inprocess.Broker")
					used["broker "+folder+"."+receiver(n)] = true
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING && strings.Contains(n.Value, "jobs/promote/") {
					require.Contains(t, agents, folder, "another agent beside inprocess.Agent")
					used["agent "+folder] = true
				}
			}
			return true
		})
	}
	for kind, listed := range map[string]map[string]string{"world ": worlds, "broker ": brokers, "agent ": agents} {
		for name := range listed {
			require.True(t, used[kind+name], "there is no %s%s any more: remove it from the list", kind, name)
		}
	}
}

// embeds reports whether the type is a struct that embeds one of these.
func embeds(spec *ast.TypeSpec, names ...string) bool {
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	for _, field := range body.Fields.List {
		typ := field.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if s, ok := typ.(*ast.SelectorExpr); ok && len(field.Names) == 0 {
			if p, ok := s.X.(*ast.Ident); ok {
				for _, name := range names {
					if p.Name+"."+s.Sel.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}
