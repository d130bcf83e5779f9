package knative_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/swm/bind"
	"github.com/littoral-project/littoral/shared/swm/solve/pb"
	"github.com/littoral-project/littoral/test/deployed"
)

// TestASchedulerCallsTheSolverFromZero: over gRPC, by the way into the cluster that every caller takes.
func TestASchedulerCallsTheSolverFromZero(t *testing.T) {
	w := newWorld(t)
	at, err := url.Parse(w.kubectl("get", "ksvc", "swm-solve", "-o", "jsonpath={.status.url}"))
	require.NoError(t, err)
	w.asleep()
	address, err := w.Resolve(at.Host + ":80")
	require.NoError(t, err)
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(at.Host))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	call := func(token string) (*pb.Reply, error) {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		s, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/Solver/Solve")
		if err != nil {
			return nil, err
		}
		answer := new(pb.Reply)
		if err := s.SendMsg(&pb.Request{Model: &pb.Model{
			Infrastructure: &pb.Infrastructure{Nodes: []*pb.Node{
				{Id: "shore", CPU: &pb.Resource{Capacity: 100}, Memory: &pb.Resource{Capacity: 100}},
				{Id: "pier", CPU: &pb.Resource{Capacity: 40}, Memory: &pb.Resource{Capacity: 100}},
			}},
			AppGroup: &pb.ApplicationGroup{Applications: []*pb.Application{{Id: "shop", Workloads: []*pb.Workload{{Id: "web", CPU: 50}}}}},
		}}); err == nil { // else the answer says why
			_ = s.CloseSend()
		}
		return answer, s.RecvMsg(answer)
	}
	viewer, err := w.Token(auth.Viewer)
	require.NoError(t, err)
	start := time.Now()
	answer, err := call(viewer)
	require.NoError(t, err)
	t.Logf("answered from zero in %s", time.Since(start).Round(time.Second/10))
	require.True(t, answer.GetFeasible(), "%v", answer.GetErrors())
	require.Equal(t, "shore", answer.GetAssignment().GetWorkloads()[0].GetNode())

	_, err = call("")
	require.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)
}

// bound is a group with two workloads, of which each has a Deployment of somebody else, and a third Deployment that is of no group.
func bound(image string) string {
	workload := func(name string) string {
		return fmt.Sprintf("    - {basename: %s, template: {spec: {containers: [{name: c, image: %q, resources: {requests: {cpu: 10m, memory: 16Mi}}}]}}}\n",
			name, image)
	}
	deployment := func(name, labels string) string {
		return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: e2e-bind}
spec:
  replicas: 1
  selector: {matchLabels: {pod: %[1]s}}
  template:
    metadata: {labels: {pod: %[1]s%[2]s}}
    spec:
      schedulerName: %[3]s
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: "%[4]s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`, name, labels, bind.Scheduler, image)
	}
	return `apiVersion: qos-scheduler.siemens.com/v1alpha1
kind: ApplicationGroup
metadata: {name: e2e-line, namespace: e2e-bind}
spec: {minMember: 1}
---
apiVersion: qos-scheduler.siemens.com/v1alpha1
kind: Application
metadata: {name: e2e-cam, namespace: e2e-bind, labels: {application-group: e2e-line}}
spec:
  workloads:
` + workload("eye") + workload("disk") +
		deployment("e2e-cam-eye", ", application-group: e2e-line") +
		deployment("labelled", ", application-group: e2e-line, application: e2e-cam, workload: disk") +
		deployment("stranger", ", application-group: e2e-other")
}

// TestPodsOfAGroupAreBoundByThePlan: real pods that Deployments make, in a cluster without a deployment manager of ours, wait for
// the scheduler qos-scheduler, and run where the plan of their group has them; so do those that follow them. A pod of no group
// that is known waits on. It needs "make install-codeco".
func TestPodsOfAGroupAreBoundByThePlan(t *testing.T) {
	w := newWorld(t)
	if out, err := w.Kubectl("get", "apiserversource", "swm-object-apply"); err != nil {
		t.Skipf("CODECO is not installed (make install-codeco): %s", out)
	}
	image, err := deployed.Image(t.Context(), "test/bench/hello")
	require.NoError(t, err)
	const watch = "../../../knative/watches/swm-bind"
	kubectl := w.kubectlIn("e2e-bind")
	w.change("SWM_CLUSTER", "e2e-bare")
	exec.Command("kubectl", "create", "namespace", "e2e-bind").Run() //nolint:errcheck // it may be there
	kubectl("", "label", "--overwrite", "namespace", "e2e-bind", "littoral.dev/bind=")
	objects := bound(image)
	t.Cleanup(func() {
		kubectl(objects, "delete", "--ignore-not-found", "--timeout=5m", "-f", "-")
		kubectl("", "delete", "namespace", "e2e-bind", "--wait=false")
		w.kubectl("delete", "--ignore-not-found", "-k", watch)
	})
	w.kubectl("apply", "-k", watch)
	w.kubectl("wait", "--for=condition=Ready", "--timeout=180s", "apiserversource/swm-bind")
	plan, err := fleet.Load("testdata/bare.json")
	require.NoError(t, err)
	w.startTelemetry(t, plan, nil)
	w.eventually("the aggregator sees the node", func() bool {
		w.nudge("aggregator-tick")
		a, err := w.try(auth.Viewer, http.MethodGet, "/aggregator/", "")
		return err == nil && strings.Contains(string(a.body), "e2e-bare")
	})

	start := time.Now()
	kubectl(objects, "apply", "-f", "-")
	// of returns the pods of a Deployment that do not end: name, node and phase of each.
	of := func(deployment string) string {
		return kubectl("", "get", "pods", "-l", "pod="+deployment, "-o", "go-template={{range .items}}{{if not .metadata.deletionTimestamp}}"+
			"{{.metadata.name}} {{with .spec.nodeName}}{{.}}{{end}} {{.status.phase}};{{end}}{{end}}")
	}
	runs := func(deployment string) bool { return strings.HasSuffix(of(deployment), " lab Running;") }
	w.eventually("the pods of both workloads run where the plan has them", func() bool {
		w.nudge("swm-object-apply") // Knative's sources start anew with each new namespace, and tell nothing of what was before
		w.nudge("swm-bind")
		return runs("e2e-cam-eye") && runs("labelled")
	})
	t.Logf("pods run %s after kubectl apply", time.Since(start).Round(time.Second/10))
	require.Contains(t, of("stranger"), "  Pending;")

	first, _, _ := strings.Cut(of("e2e-cam-eye"), " ")
	start = time.Now()
	kubectl("", "delete", "pod", first, "--wait=false")
	w.eventually("the pod that follows runs there too, without a clock", func() bool {
		return runs("e2e-cam-eye") && !strings.HasPrefix(of("e2e-cam-eye"), first+" ")
	})
	t.Logf("the next pod runs after %s", time.Since(start).Round(time.Second/10))
	require.Contains(t, of("stranger"), "  Pending;")
}
