package function

import (
	"slices"

	"github.com/littoral-project/littoral/shared/auth"
)

// Need is something secret that a function uses besides its store. It is given those settings of the Secret, and no
// others.
type Need string

// What functions may need.
const (
	Telemetry         Need = "telemetry"          // to query Prometheus
	Logs              Need = "logs"               // to read the log store
	Objects           Need = "objects"            // to read or write the archive
	ClientCredentials Need = "client-credentials" // to get tokens of its own
	RulesAPI          Need = "rules-api"          // to call the rules API as the policy manager does
	RuleStore         Need = "rule-store"         // to change rules where they are evaluated
	SignIn            Need = "sign-in"            // to sign people in by a browser
	BusTokens         Need = "bus-tokens"         // to make or know the tokens of applications on the bus
	BusSinks          Need = "bus-sinks"          // to sign in to brokers that are sent what is published on the bus
	EdgeAgents        Need = "edge-agents"        // to wake agents of machines
	Peers             Need = "peers"              // to call other controllers, and to know their calls
	Nuvla             Need = "nuvla"              // to sign in to Nuvla
	AlertSender       Need = "alert-sender"       // to know an Alertmanager that has no tokens
	Controllers       Need = "controllers"        // to call controllers that have registered at the lighthouse
)

// secrets are the settings behind each need.
var secrets = map[Need][]string{
	Telemetry:         {"PROMETHEUS_TOKEN", "PROMETHEUS_USER", "PROMETHEUS_PASSWORD"},
	Logs:              {"LOGS_AUTHORIZATION"},
	Objects:           {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
	ClientCredentials: {"OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_TOKEN_URL"},
	RulesAPI:          {"RULES_API_TOKEN"},
	RuleStore:         {"RULES_AUTHORIZATION"},
	SignIn:            {"LOGIN_CLIENT_SECRET"},
	BusTokens:         {"BUS_TOKEN_KEY", "BUS_TOKEN_KEY_FORMER"},
	BusSinks:          {"BUS_SINKS"},
	EdgeAgents:        {"EDGE_AGENTS"},
	Peers:             {"CONTROLLER_PEERS"},
	Nuvla:             {"NUVLA_API_KEY", "NUVLA_API_SECRET"},
	AlertSender:       {"ALERTMANAGER_SECRET"},
}

// storeSecrets lead to the store.
var storeSecrets = []string{"DATABASE_URL"}

// eventSecrets sign events and tell forged ones. Whoever uses the store also publishes events that others left behind.
var eventSecrets = []string{"EVENT_KEY", "EVENT_KEY_FORMER"}

// callerSecrets open the session cookies of browsers: who asks who calls takes these beside tokens.
var callerSecrets = []string{"SESSION_KEY", "SESSION_KEY_FORMER"}

// collector may hold the password of the collector that every function pushes spans and metrics to.
const collector = "OTEL_EXPORTER_OTLP_HEADERS"

// Secrets lists the settings of the Secret that a function with this declaration is given.
func (s Spec) Secrets() []string {
	all := []string{collector}
	if s.stores() {
		all = append(all, storeSecrets...)
	}
	if s.publishes() {
		all = append(all, eventSecrets...)
	}
	if s.asks() {
		all = append(all, callerSecrets...)
	}
	for _, need := range s.Needs {
		all = append(all, secrets[need]...)
	}
	return all
}

// asks reports whether the function asks who calls.
func (s Spec) asks() bool {
	return slices.Contains(s.Needs, SignIn) || slices.ContainsFunc(s.Routes, func(r Route) bool { return r.Role != auth.Open })
}

// stores reports whether the function uses the store. Who asks who calls reads the issuer's keys from it.
func (s Spec) stores() bool { return s.asks() || !s.Storeless }

// publishes reports whether the function sends or takes events.
func (s Spec) publishes() bool { return s.stores() || len(s.Consumes)+len(s.Emits) > 0 }

// Place is what a function may connect to.
type Place string

// The places. Every function may also ask for names, and push to a collector in the cluster.
const (
	Postgres Place = "postgres"
	Knative  Place = "knative" // the Broker, and functions through the ingress
	Outside  Place = "outside" // HTTPS at any address, the issuer and the gateway: an issuer, a Prometheus or a bucket may be anywhere
	APIs     Place = "apis"    // API servers of Kubernetes, at any address
)

// inside are needs for which nobody is called.
var inside = []Need{BusTokens, AlertSender}

// Reaches lists what a function with this declaration may connect to.
func (s Spec) Reaches() []Place {
	var all []Place
	if s.stores() {
		all = append(all, Postgres)
	}
	if s.publishes() {
		all = append(all, Knative)
	}
	if s.asks() || slices.ContainsFunc(s.Needs, func(n Need) bool { return !slices.Contains(inside, n) }) {
		all = append(all, Outside)
	}
	if s.Kubernetes {
		all = append(all, APIs)
	}
	return all
}

// AllSecrets lists every setting that may be in the Secret.
func AllSecrets() []string {
	all := slices.Concat([]string{collector}, storeSecrets, eventSecrets, callerSecrets)
	for _, settings := range secrets {
		all = append(all, settings...)
	}
	slices.Sort(all)
	return all
}
