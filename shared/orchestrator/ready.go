package orchestrator

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Health is how one object of a copy is doing.
type Health struct {
	Object       string // kind and name
	Pods, Wanted int64  // that run, that should
	Ready        bool
	Failed       bool // it will not become ready by waiting
	Timed        bool // its own controller says when it has been waited for too long
	Reason       string
	Message      string
}

// Judge says how the object is doing, by the facts that were answered about it. want is the object as it was applied:
// an answer about an earlier form of it does not count.
func Judge(want *unstructured.Unstructured, v Values) Health {
	h := Health{Object: want.GetKind() + " " + want.GetName()}
	if len(FactsOf(want)) == 0 {
		h.ready()
		return h
	}
	if stamp := RevisionOf(want); stamp != "" && v.text(factRevision) != stamp {
		h.Reason, h.Message = "AwaitingStatus", h.Object+" has not been reported on since it was changed"
		return h
	}
	generation := v.number(factGeneration, 0)
	if min(v.number(factObserved, generation), v.number(factReadyOf, generation)) < generation {
		h.Reason, h.Message = "AwaitingController", "the controller of "+h.Object+" has not seen its change"
		return h
	}
	if judge, ok := judges[want.GroupVersionKind().GroupKind()]; ok {
		judge(&h, v)
	} else {
		h.other(v)
	}
	return h
}

var judges = map[schema.GroupKind]func(*Health, Values){
	{Group: "apps", Kind: "Deployment"}:  (*Health).deployment,
	{Group: "apps", Kind: "StatefulSet"}: (*Health).statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   (*Health).daemonSet,
	{Group: "apps", Kind: "ReplicaSet"}:  (*Health).replicaSet,
	{Group: "batch", Kind: "Job"}:        (*Health).job,
	{Group: "batch", Kind: "CronJob"}:    func(h *Health, _ Values) { h.ready() }, // it bears pods when its time comes
	{Group: "", Kind: "Pod"}:             (*Health).pod,
	replicationController:                (*Health).replicaSet,
}

func (h *Health) ready() { h.Ready, h.Reason = true, "AsExpected" }

// fail says that waiting will not help.
func (h *Health) fail(reason, message string) {
	h.Failed, h.Reason, h.Message = true, reason, h.Object+": "+message
}

const reasonRollingOut = "RollingOut"

// count settles what has a number of pods; updated of those that run are of the newest form.
func (h *Health) count(running, updated, wanted int64) {
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

func (h *Health) deployment(v Values) {
	available, updated := v.number("AvailableReplicas", 0), v.number("UpdatedReplicas", 0)
	// What is available may be the pods of an older form, kept until those of the newest are ready: of the newest are
	// surely those only that the older ones cannot account for.
	older := max(0, v.number("Replicas", 0)-updated)
	h.count(available, max(0, available-older), v.number("Wanted", 1))
	h.Timed = true
	switch failure := v.text(factFailure); {
	case h.Ready:
	case failure != "":
		h.fail("ReplicaFailure", failure)
	case v.text("Progress") == "DeploymentPaused" && updated < h.Wanted:
		h.fail("Paused", "it is paused, and makes no pods of the newest form until somebody resumes it")
	case v.text("Progress") == ReasonOverdue:
		h.fail(
			ReasonOverdue,
			fmt.Sprintf("%d of %d pods of the newest form are ready, and that has not changed for long", h.Pods, h.Wanted),
		)
	}
}

func (h *Health) statefulSet(v Values) {
	updated, wanted := v.number("UpdatedReplicas", 0), v.number("Wanted", 1)
	h.count(v.number("ReadyReplicas", 0), updated, wanted)
	h.kept(v, updated, wanted)
}

// kept says of one of whose pods some are of an older form, where the cluster leaves it to somebody else to change that.
// They may run where the job was before.
func (h *Health) kept(v Values, updated, wanted int64) {
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

func (h *Health) daemonSet(v Values) {
	wanted := v.number("DesiredNumberScheduled", 0)
	updated := v.number("UpdatedNumberScheduled", 0)
	h.count(v.number("NumberAvailable", 0), updated, wanted)
	h.kept(v, updated, wanted)
	if wanted == 0 { // it is bound to one node, which must be there
		h.Ready, h.Reason, h.Message = false, "NoNode", h.Object+" finds no node that it may run on"
	}
}

func (h *Health) replicaSet(v Values) {
	wanted := v.number("Wanted", 1)
	h.count(v.number("AvailableReplicas", 0), wanted, wanted)
	if failure := v.text(factFailure); !h.Ready && failure != "" {
		h.fail("ReplicaFailure", failure)
	}
}

func (h *Health) job(v Values) {
	switch {
	case v.text(factFailure) != "":
		h.fail("JobFailed", v.text(factFailure))
	case v.text("JobComplete") == "True":
		h.ready()
	case v.text("Suspended") == "true":
		h.fail("Suspended", "it is suspended, and does not run until somebody resumes it")
	default: // one that runs is what was asked for
		h.count(v.number("Running", 0), 1, 1)
	}
}

func (h *Health) pod(v Values) {
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

// other is ready unless it says that it is not.
func (h *Health) other(v Values) {
	if v.text("Ready") == "False" || v.text("Ready") == "Unknown" {
		h.Reason, h.Message = "NotReady", h.Object+" is not ready: "+v.text("ReadyMessage")
		return
	}
	h.ready()
}
