// Package contracts_test tests the API against its contract over HTTP: every route of the registry, with a real
// Postgres, as agents, people and the Broker use it.
//
// Tests about all routes are generated from the registry (authorization_test.go, errors_test.go), so they cover a new
// function automatically. Data of the ICOS project, and the expected results, are in icos/.
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

// given are the settings of the functions in all tests. Only TestMain changes them.
var given = map[string]string{
	"ALERTMANAGER_SECRET": alertmanagerSecret,
	"WEBHOOK_ALLOW":       "127.0.0.1",
}

func TestMain(m *testing.M) {
	server, err := telemetry() // one for all tests
	if err != nil {
		log.Fatal(err)
	}
	for _, maker := range []string{
		"FOLLOW", "APP_EVENT", "APP_POLICIES", "POLICY_CREATE", "POLICY_UPDATE", "VARIABLE_SET", "VARIABLE_DELETE", "RENDER", "BACKTEST",
	} {
		given["POLICYMANAGER_"+maker+"_STALE_AFTER"] = "3m" // TestSilence… tells it from that of placement
	}
	given["PROMETHEUS_ADDRESS"] = server.URL
	// Rules are written to files that nothing reads.
	dir, err := os.MkdirTemp("", "littoral-rules-")
	if err != nil {
		log.Fatal(err)
	}
	given["RULES_BACKEND"], given["RULES_DIR"], given["OBJECTS_URL"] = "files", dir, "file://"+dir+"/objects"
	given["LOGS_BACKEND"], given["LOGS_DIR"] = "files", filepath.Join(dir, "logs")
	given["TELEMETRY_LOGS_BUS_TOKEN_KEY"], given["TELEMETRY_SERIES_BUS_TOKEN_KEY"] = busKey, busKey
	given["BUS_GET_BUS_TOKEN_KEY"] = busKey
	given["IPAM_RANGES"] = "10.20.0.0/28"
	storetest.Main(m, func() error { return os.RemoveAll(dir) }) // exits, which ends the telemetry too
}

// telemetry serves one round of metrics of two infrastructures: that of a published taxonomy, and our default one,
// which has more metrics about itself.
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
	// An instant query reads the head in memory; the files are no longer needed.
	return httptest.NewServer(store.Handler()), os.RemoveAll(dir)
}
