package knative_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/test/deployed"
)

// abroad is a namespace that no policy names. A pod there accepts connections on the ports of abroadPorts.
const abroad = "littoral-e2e-abroad"

const (
	postgresPort   = "5432"
	httpsPort      = "443"
	apiServerPort  = "6443"
	brokerPort     = "1883" // of MQTT, which bus-forward sends to
	agentPort      = "2547" // of the agent of a machine, which deploymentmanager-wake wakes
	otherPort      = "8443"
	podTemplate    = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "labels": {%s}}, "spec": {%s "restartPolicy": "Never", "automountServiceAccountToken": false, "containers": [{"name": "dial", "image": %q, "args": [%s], "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}}%s}]}}`
	restrictedPod  = `"securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},`
	restrictedCont = `, "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}`
)

// TestAFunctionConnectsToWhatItDeclares: a pod with the label of a function reaches what the function's declaration says it
// uses, and nothing else. One function of each kind of declaration is tried, and those that have a policy of their own.
// It is skipped where the network plug-in does not enforce policies; with LITTORAL_E2E_ENFORCED it fails there instead.
func TestAFunctionConnectsToWhatItDeclares(t *testing.T) {
	w := newWorld(t)
	needsBuilds(t)
	image, err := deployed.Image(t.Context(), "test/e2e/knative/dial")
	require.NoError(t, err)
	foreign := w.listenAbroad(t, image)
	broker, err := w.Resolve("broker-ingress.knative-eventing.svc.cluster.local:80")
	require.NoError(t, err)
	issuer := w.podOf("app.kubernetes.io/name=issuer")
	postgres := w.podOf("app.kubernetes.io/name=postgres") + ":" + postgresPort

	at := func(port string) string { return foreign + ":" + port }
	all := []string{
		postgres, broker, issuer + ":8080",
		at(postgresPort), at(httpsPort), at(apiServerPort), at(brokerPort), at(agentPort), at(otherPort),
	}
	if open := w.dial(t, image, dialler{deployed.Namespace, ""}, all); open[at(otherPort)] {
		if os.Getenv("LITTORAL_E2E_ENFORCED") != "" {
			t.Fatal("a pod without any right connected: nothing enforces the policies")
		}
		t.Skip("the network plug-in of this cluster does not enforce NetworkPolicies: a pod without any right connected")
	} else {
		require.Empty(t, open, "what a pod that is no function reaches")
	}
	require.Empty(t, w.dial(t, image, dialler{abroad, ""}, []string{postgres, issuer + ":8080"}), "from a namespace that is not ours")

	for name, want := range reachable() {
		expected := map[string]bool{}
		for address, may := range map[string]bool{
			postgres:          want[function.Postgres],
			broker:            want[function.Knative],
			issuer + ":8080":  want[function.Outside],
			at(postgresPort):  want[function.Postgres],
			at(httpsPort):     want[function.Outside] || want[function.APIs],
			at(apiServerPort): want[function.APIs],
			at(brokerPort):    want[brokersOfTheBus],
			at(agentPort):     want[agentsOfMachines],
			at(otherPort):     want[anywhere],
		} {
			if may || want[anywhere] {
				expected[address] = true
			}
		}
		open := w.dial(t, image, dialler{deployed.Namespace, name}, all)
		require.Equal(t, slices.Sorted(maps.Keys(expected)), slices.Sorted(maps.Keys(open)), "%s reaches", name)
		t.Logf("%s connects to %d of %d", name, len(open), len(all))
	}
}

// Places of the policies that are written by hand (infra/base/networkpolicies.yaml).
const (
	brokersOfTheBus  function.Place = "brokers of the bus"
	agentsOfMachines function.Place = "agents of machines"
	anywhere         function.Place = "anywhere"
)

// reachable is where functions may connect to: one for each list of places, and those that have a policy of their own.
func reachable() map[string]map[function.Place]bool {
	own := map[string]function.Place{
		"bus-forward": brokersOfTheBus, "deploymentmanager-wake": agentsOfMachines,
		"policymanager-webhook": anywhere, "netma-location-notify": anywhere,
	}
	byName, tried := map[string]map[function.Place]bool{}, map[string]bool{}
	for _, main := range slices.Sorted(maps.Keys(functions.Registry)) {
		entry := functions.Registry[main]
		places := entry.Spec.Reaches()
		list := fmt.Sprint(places)
		if place := own[entry.Name]; place != "" {
			places = append(places, place)
		} else if tried[list] {
			continue
		} else {
			tried[list] = true
		}
		byName[entry.Name] = map[function.Place]bool{}
		for _, place := range places {
			byName[entry.Name][place] = true
		}
	}
	return byName
}

// dialler says as what a pod connects: in a namespace, with the label of a function or with none.
type dialler struct{ namespace, function string }

// dial tries the addresses from a pod, and returns those that accepted.
func (w *world) dial(t *testing.T, image string, as dialler, addresses []string) map[string]bool {
	t.Helper()
	name, label, pod, container := "e2e-dial", "", "", ""
	if as.function != "" {
		name, label = name+"-"+as.function, fmt.Sprintf(`"serving.knative.dev/service": %q`, as.function)
	}
	if as.namespace == deployed.Namespace {
		pod, container = restrictedPod, restrictedCont
	}
	kubectl := w.kubectlIn(as.namespace)
	remove := func() { kubectl("", "delete", "pod", name, "--ignore-not-found", "--grace-period=1") }
	t.Cleanup(remove)
	// A plug-in may come to know a pod's address only after the pod's process has started, and lets it connect until then. So the
	// pod waits, and dials once its address is published.
	kubectl(fmt.Sprintf(podTemplate, name, label, pod, image, quoted([]string{"-listen", otherPort}), container), "apply", "-f", "-")
	kubectl("", "wait", "pod/"+name, "--for=condition=Ready", "--timeout=120s")
	open, lines := map[string]bool{}, 0
	for line := range strings.Lines(kubectl("", append([]string{"exec", name, "--", "/ko-app/dial"}, addresses...)...)) {
		what, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines++
		if what == "open" {
			open[address] = true
		}
	}
	require.Equal(t, len(addresses), lines, "each address is told of")
	remove()
	return open
}

// listenAbroad runs the pod that accepts connections, and returns its address.
func (w *world) listenAbroad(t *testing.T, image string) string {
	t.Helper()
	kubectl := w.kubectlIn(abroad)
	kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, abroad), "apply", "-f", "-")
	t.Cleanup(func() { kubectl("", "delete", "namespace", abroad, "--wait=true") })
	ports := strings.Join([]string{postgresPort, httpsPort, apiServerPort, brokerPort, agentPort, otherPort}, ",")
	// Ports below 1024 are for everybody in a pod whose sysctl says so, which is one of those that Kubernetes calls safe.
	safe := `"securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]},`
	kubectl(fmt.Sprintf(podTemplate, "listen", "", safe, image, quoted([]string{"-listen", ports}), ""), "apply", "-f", "-")
	kubectl("", "wait", "pod/listen", "--for=condition=Ready", "--timeout=120s")
	return kubectl("", "get", "pod", "listen", "-o", "jsonpath={.status.podIP}")
}

// podOf returns the address of the first pod with a label.
func (w *world) podOf(label string) string {
	w.t.Helper()
	address := w.kubectl("get", "pods", "-l", label, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[0].status.podIP}")
	require.NotEmpty(w.t, address, label)
	return address
}

// quoted is a list of JSON without its brackets.
func quoted(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(quoted, ", ")
}
