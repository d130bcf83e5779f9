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
	asks := slices.Contains(s.Needs, SignIn) || slices.ContainsFunc(s.Routes, func(r Route) bool { return r.Role != auth.Open })
	stored := asks || !s.Storeless // who asks who calls reads the issuer's keys from the store
	if stored {
		all = append(all, storeSecrets...)
	}
	if stored || len(s.Consumes)+len(s.Emits) > 0 {
		all = append(all, eventSecrets...)
	}
	if asks {
		all = append(all, callerSecrets...)
	}
	for _, need := range s.Needs {
		all = append(all, secrets[need]...)
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
