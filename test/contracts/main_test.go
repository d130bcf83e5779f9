// Package contracts_test holds the API to its contract at the level of HTTP: every route of the registry, on a real
// Postgres, as agents, people and the Broker meet it.
//
// What concerns every route is generated from the registry (authorization_test.go, errors_test.go), so a new function
// is under test before anyone thinks of it. Data of the ICOS project, and what each of it must give, is in icos/.
package contracts_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) {
	// The aggregator reads the address from the environment, which parallel tests share: one telemetry store for all.
	server, err := telemetry()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Setenv("PROMETHEUS_ADDRESS", server.URL); err != nil {
		log.Fatal(err)
	}
	// Rules are kept in files that nobody reads.
	dir, err := os.MkdirTemp("", "littoral-rules-")
	if err != nil {
		log.Fatal(err)
	}
	for name, value := range map[string]string{
		"RULES_BACKEND": "files", "RULES_DIR": dir, "OBJECTS_URL": "file://" + dir + "/objects",
	} {
		if err := os.Setenv(name, value); err != nil {
			log.Fatal(err)
		}
	}
	storetest.Main(m, func() error { return os.RemoveAll(dir) }) // exits, and the telemetry with it
}

// telemetry serves what two infrastructures emit in one round: that of a published taxonomy, and our default one, which
// knows more about itself.
func telemetry() (*httptest.Server, error) {
	dir, err := os.MkdirTemp("", "littoral-contracts-")
	if err != nil {
		return nil, err
	}
	store, err := prometheus.Open(prometheus.Options{Dir: filepath.Join(dir, "prometheus")})
	if err != nil {
		return nil, err
	}
	published, err := fleet.Load("topology/topology.json")
	if err != nil {
		return nil, err
	}
	for i, plan := range []*fleet.Plan{published, fleet.Default()} {
		state := filepath.Join(dir, fmt.Sprintf("fleet-%d.json", i))
		f, err := fleet.New(fleet.Options{Plan: plan, File: state, Append: store.Append})
		if err != nil {
			return nil, err
		}
		if err := f.Emit(context.Background()); err != nil {
			return nil, err
		}
	}
	// An instant query reads what is in memory; the files are not needed any more.
	return httptest.NewServer(store.Handler()), os.RemoveAll(dir)
}
