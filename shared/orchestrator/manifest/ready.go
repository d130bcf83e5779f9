package manifest

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/shared/orchestrator"
)

// health is a Health that is being judged.
type health struct{ orchestrator.Health }

// HealthOf derives the health of an object from its facts. want is the object as we applied it: facts about an earlier
// form of it do not count.
func HealthOf(want *unstructured.Unstructured, v Values) orchestrator.Health {
	h := &health{orchestrator.Health{Object: want.GetKind() + " " + want.GetName()}}
	if len(FactsOf(want)) == 0 {
		h.ready()
		return h.Health
	}
	if stamp := RevisionOf(want); stamp != "" && v.text(factRevision) != stamp {
		h.Reason, h.Message = "AwaitingStatus", h.Object+" has not been reported on since it was changed"
		return h.Health
	}
	generation := v.number(factGeneration, 0)
	if min(v.number(factObserved, generation), v.number(factReadyOf, generation)) < generation {
		h.Reason, h.Message = "AwaitingController", "the controller of "+h.Object+" has not seen its change"
		return h.Health
	}
	if check, ok := healthChecks[want.GroupVersionKind().GroupKind()]; ok {
		check(h, v)
	} else {
		h.other(v)
	}
	return h.Health
}

var healthChecks = map[schema.GroupKind]func(*health, Values){
	{Group: "apps", Kind: "Deployment"}:  (*health).deployment,
	{Group: "apps", Kind: "StatefulSet"}: (*health).statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   (*health).daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:  (*health).replicaSet,
	{Group: "batch", Kind: "Job"}:        (*health).job,
	{Group: "batch", Kind: "CronJob"}:    func(h *health, _ Values) { h.ready() }, // it makes pods only when it is due
	{Group: "", Kind: "Pod"}:             (*health).pod,
	replicationController:                (*health).replicaSet,
	exportedService:                      func(h *health, v Values) { h.valid(v, "Valid") },
	importedService:                      func(h *health, v Values) { h.valid(v, "Valid", "Port") },
}

// valid takes an object of ClusterLink as ready when its peer has found it valid, by all of these facts.
func (h *health) valid(v Values, facts ...string) {
	for _, fact := range facts {
		if v.text(fact) != "True" {
			h.Reason = "LinkNotValid"
			h.Message = h.Object + " is not valid: " + cmp.Or(v.text(fact+"Message"), "its peer has not looked at it yet")
			return
		}
	}
	h.ready()
}

func (h *health) ready() { h.Ready, h.Reason = true, "AsExpected" }

// fail marks the object as one that waiting will not help.
func (h *health) fail(reason, message string) {
	h.Failed, h.Reason, h.Message = true, reason, h.Object+": "+message
}

const (
	reasonRollingOut = "RollingOut"
	reasonPaused     = "DeploymentPaused" // of the condition Progressing
)

// count judges an object by its pods: running of wanted pods run, updated of wanted pods are of the newest form.
func (h *health) count(running, updated, wanted int64) {
	h.Pods, h.Wanted = min(running, updated), wanted
	switch {
	case running < wanted:
		h.Reason, h.Message = "PodsNotReady", fmt.Sprintf("%s: %d of %d pods are ready", h.Object, running, wanted)
	case updated < wanted:
		h.Reason = reasonRollingOut
		h.Message = fmt.Sprintf("%s: %d of %d pods are ready in the newest form", h.Object, updated, wanted)
	default:
		h.ready()
	}
}

func (h *health) deployment(v Values) {
	available, updated := v.number("AvailableReplicas", 0), v.number("UpdatedReplicas", 0)
	// Available pods may be older ones, which are kept until the new ones are ready. Certainly new are only those
	// beyond the number of older pods.
	older := max(0, v.number("Replicas", 0)-updated)
	h.count(available, max(0, available-older), v.number("Wanted", 1))
	progress := v.text("Progress")
	// Its controller watches the deadline only during a rollout, not when pods are lost or added afterwards. Without a
	// deadline there is no such condition.
	h.Timed = progress != "" && progress != "NewReplicaSetAvailable" && progress != reasonPaused
	switch failure := v.text(factFailure); {
	case h.Ready:
	case failure != "":
		h.fail("ReplicaFailure", failure)
	case progress == reasonPaused && updated < h.Wanted:
		h.fail("Paused", "it is paused, and makes no pods of the newest form until somebody resumes it")
	case progress == orchestrator.ReasonOverdue:
		h.fail(
			orchestrator.ReasonOverdue,
			fmt.Sprintf("%d of %d pods of the newest form are ready, and that has not changed for long", h.Pods, h.Wanted),
		)
	}
}

func (h *health) statefulSet(v Values) {
	updated, wanted := v.number("UpdatedReplicas", 0), v.number("Wanted", 1)
	h.count(v.number("ReadyReplicas", 0), updated, wanted)
	h.checkRetainedPods(v, updated, wanted)
}

// checkRetainedPods fails an object some of whose pods stay in an older form because its updateStrategy leaves them to somebody
// else. Such pods may still run at the former place of the job.
func (h *health) checkRetainedPods(v Values, updated, wanted int64) {
	partition := v.number("Partition", 0)
	switch {
	case h.Reason != reasonRollingOut:
	case v.text("UpdateStrategy") == "OnDelete":
		h.fail("KeepsPods", fmt.Sprintf(
			"%d of %d pods are of the newest form; by its updateStrategy OnDelete the others stay until somebody deletes them",
			updated, wanted))
	case partition > 0 && updated >= wanted-partition:
		h.fail("KeepsPods", fmt.Sprintf(
			"%d of %d pods are of the newest form; by the partition %d of its updateStrategy the others stay",
			updated, wanted, partition))
	}
}

func (h *health) daemonSet(v Values) {
	wanted := v.number("DesiredNumberScheduled", 0)
	updated := v.number("UpdatedNumberScheduled", 0)
	h.count(v.number("NumberAvailable", 0), updated, wanted)
	h.checkRetainedPods(v, updated, wanted)
	if wanted == 0 { // it is bound to one node, which must be there
		h.Ready, h.Reason, h.Message = false, "NoNode", h.Object+" finds no node that it may run on"
	}
}

func (h *health) replicaSet(v Values) {
	wanted := v.number("Wanted", 1)
	h.count(v.number("AvailableReplicas", 0), wanted, wanted)
	if failure := v.text(factFailure); !h.Ready && failure != "" {
		h.fail("ReplicaFailure", failure)
	}
}

func (h *health) job(v Values) {
	switch {
	case v.text(factFailure) != "":
		h.fail("JobFailed", v.text(factFailure))
	case v.text("JobComplete") == "True":
		h.ready()
	case v.text("Suspended") == "true":
		h.fail("Suspended", "it is suspended, and does not run until somebody resumes it")
	default: // running is enough; it need not have ended
		h.count(v.number("Running", 0), 1, 1)
	}
}

func (h *health) pod(v Values) {
	switch v.text("PodPhase") {
	case "Failed":
		h.fail("PodFailed", cmp.Or(v.text(factFailure), "a container ended with an error; its log may say why"))
	case "Succeeded":
		h.ready()
	default:
		var running int64
		if v.text("PodReady") == "True" {
			running = 1
		}
		h.count(running, 1, 1)
		if why := v.text("Scheduling"); !h.Ready && why != "" {
			h.Reason, h.Message = "Unschedulable", h.Object+": "+why
		}
	}
}

// other takes an object of another kind as ready unless its condition Ready says otherwise.
func (h *health) other(v Values) {
	if v.text("Ready") == "False" || v.text("Ready") == "Unknown" {
		h.Reason, h.Message = "NotReady", h.Object+" is not ready: "+v.text("ReadyMessage")
		return
	}
	h.ready()
}
