package contracts_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	swmGroup  = "apiVersion: qos-scheduler.siemens.com/v1alpha1\nkind: ApplicationGroup\nmetadata: {name: line, namespace: plant}\nspec: {minMember: 2}\n"
	swmCamera = `apiVersion: qos-scheduler.siemens.com/v1alpha1
kind: Application
metadata: {name: camera, namespace: plant, labels: {application-group: line}}
spec:
  workloads:
  - basename: eye
    template: {spec: {containers: [{name: c, image: "example.org/eye:1", resources: {requests: {cpu: 100m}}}], schedulerName: qos-scheduler}}
    channels: [{basename: frames, otherWorkload: {basename: disk, applicationName: store, port: 9000}, serviceClass: BESTEFFORT, bandwidth: 20M, maxDelay: 10e-3}]
    costs: {hub-1: 3.5}
    nodeRecommendations: {hub-2: 2}
`
	swmStore = `metadata: {labels: {application-group: line}}
spec:
  workloads: [{basename: disk, template: {spec: {containers: [{name: c, image: "example.org/disk:1"}]}}}]
`
)

type swmObject struct {
	Kind     string
	Metadata struct{ Name, Namespace, UID string }
	Spec     struct {
		QoSModel struct {
			AppGroup struct {
				Applications []struct {
					Workloads []struct{ ID, Node string }
				}
				Channels []struct{ ID, Path string }
			} `json:"app_group"`
		}
	}
	Status struct {
		Phase      string
		Conditions []struct{ Type, Entity string }
		Actions    []struct {
			Action int
			Object string
		}
	}
}

// TestAGroupOfSWMWaitsForItsMembers: it is planned when they are there, follows them, and is gone with them.
func TestAGroupOfSWMWaitsForItsMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(path, body string) swmObject {
		return decode[swmObject](t, w.operator.call(t, http.MethodPut, "/swm/objects/"+path, body).is(t, http.StatusOK))
	}
	phase := func(path string) string {
		return decode[swmObject](t, w.viewer.get(t, "/swm/objects/"+path)).Status.Phase
	}

	require.Equal(t, "Waiting", put("applications/plant/camera", swmCamera).Status.Phase, "members may come first")
	require.Equal(t, "Waiting", put("applicationgroups/plant/line", swmGroup).Status.Phase)
	w.viewer.call(t, http.MethodGet, "/swm/plans/plant/line", "").is(t, http.StatusNotFound)
	put("applications/plant/store", swmStore)
	require.Equal(t, "Scheduling", phase("applicationgroups/plant/line"))
	require.Equal(t, "Scheduling", phase("applications/plant/camera"))

	p := decode[swmObject](t, w.viewer.get(t, "/swm/plans/plant/line"))
	require.Equal(t, "line-assignment-plan", p.Metadata.Name)
	require.Equal(t, "Scheduling", p.Status.Phase)
	workloads := p.Spec.QoSModel.AppGroup.Applications[0].Workloads
	require.Len(t, workloads, 2)
	require.Equal(t, "camera-eye", workloads[0].ID)
	require.NotEmpty(t, workloads[0].Node)
	require.Equal(t, []string{"frames"}, []string{p.Spec.QoSModel.AppGroup.Channels[0].ID})

	id := decode[swmObject](t, w.viewer.get(t, "/swm/objects/applicationgroups/plant/line")).Metadata.UID
	require.Len(t, w.group(t, id).Jobs, 2, "the same application, in the words of ICOS")
	require.Len(t, decode[[]swmObject](t, w.viewer.get(t, "/swm/objects/applications?namespace=plant")), 2)
	require.Len(t, decode[[]swmObject](t, w.viewer.get(t, "/swm/objects/applications?after=plant/camera")), 1)
	require.Empty(t, decode[[]swmObject](t, w.viewer.get(t, "/swm/objects/applications?namespace=other")))

	w.operator.call(t, http.MethodDelete, "/swm/objects/applications/plant/store", "").is(t, http.StatusNoContent)
	require.Len(t, decode[swmObject](t, w.viewer.get(t, "/swm/plans/plant/line")).Spec.QoSModel.AppGroup.Applications[0].Workloads, 1)
	w.operator.call(t, http.MethodDelete, "/swm/objects/applicationgroups/plant/line", "").is(t, http.StatusNoContent)
	require.Equal(t, "Waiting", phase("applications/plant/camera"))
	w.viewer.call(t, http.MethodGet, "/swm/objects/applicationgroups/plant/line", "").is(t, http.StatusNotFound)
}

// TestAGroupThatNeverCompletesWaits: it says so for as long as it does, runs nothing, loses nothing, and goes when it is told to.
func TestAGroupThatNeverCompletesWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.call(t, http.MethodPut, "/swm/objects/applicationgroups/plant/line", strings.ReplaceAll(swmGroup, "minMember: 2", "minMember: 9")).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/swm/objects/applications/plant/camera", swmCamera).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/swm/objects/applications/plant/store", swmStore).is(t, http.StatusOK)
	for _, path := range []string{"applicationgroups/plant/line", "applications/plant/camera", "applications/plant/store"} {
		require.Equal(t, "Waiting", decode[swmObject](t, w.viewer.get(t, "/swm/objects/"+path)).Status.Phase, path)
	}
	w.viewer.call(t, http.MethodGet, "/swm/plans/plant/line", "").is(t, http.StatusNotFound)
	w.operator.call(t, http.MethodDelete, "/swm/objects/applicationgroups/plant/line", "").is(t, http.StatusNoContent)
	require.Equal(t, "Waiting", decode[swmObject](t, w.viewer.get(t, "/swm/objects/applications/plant/camera")).Status.Phase, "members stay")
}

// TestTheFaultsOfAnObjectOfSWMHaveItsPaths: whatever it is translated to.
func TestTheFaultsOfAnObjectOfSWMHaveItsPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fields := func(path, body string) []string {
		return w.operator.call(t, http.MethodPut, "/swm/objects/"+path, body).fields(t)
	}
	require.Contains(t, fields("applications/plant/camera", strings.Replace(swmCamera, "20M", "many", 1)), "spec.workloads[0].channels[0].bandwidth")
	require.Contains(t, fields("applications/plant/camera", strings.Replace(swmCamera, "basename: eye", "basename: Eye", 1)), "spec.workloads[0].basename")
	require.Contains(t, fields("applications/plant/camera", strings.Replace(swmCamera, "application-group", "group", 1)), "metadata.labels.application-group")
	require.Contains(t, fields("applications/plant/other", swmCamera), "metadata.name")
	require.Contains(t, fields("applicationgroups/plant/line", "spec: {minMember: 0}"), "spec.minMember")
	require.Contains(t, fields("networklinks/plant/a", "spec: {linkFrom: {name: a}, linkTo: {}, bandWidthBits: -1}"), "spec.linkTo.name")
	require.ElementsMatch(t, []string{
		"spec.nodeName", "spec.networkInterfaces[0].ipv4Address", "spec.networkInterfaces[0].macAddress", "spec.networkInterfaces[0].alternateAddresses[1]",
		"spec.networkInterfaces[1].name", "spec.networkInterfaces[2].ipv4Address", "spec.mappedNetworkInterfaces.WLAN",
	}, fields("networkendpoints/plant/a", `spec:
  networkInterfaces:
  - {name: eth0, ipv4Address: 10.0.0.256, macAddress: "02:00", alternateAddresses: [10.0.0.7, here]}
  - {name: eth0, macAddress: "02:00:00:00:00:01"}
  - {name: eth1, ipv4Address: "fd00::1"}
  mappedNetworkInterfaces: {LAN: eth0, WLAN: wlan0}`))
	w.operator.call(t, http.MethodPut, "/swm/objects/dreams/plant/a", "spec: {}").is(t, http.StatusNotFound)
}

// TestPartsDescribeANetwork: links and a path, each an object of its own, are one network together.
func TestPartsDescribeANetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(path, spec string) *answer {
		return w.operator.call(t, http.MethodPut, "/swm/objects/"+path, "metadata: {labels: {network-implementation: LAN}}\nspec: "+spec)
	}
	put("networkpaths/plant/way", "{start: {name: hub-1}, end: {name: edge-1}, links: [up, down]}").is(t, http.StatusOK)
	put("networklinks/plant/up", "{linkFrom: {name: hub-1}, linkTo: {name: sw, type: NETWORK}, bandWidthBits: 100000000, latencyNanos: 2000000}").is(t, http.StatusOK)
	put("networklinks/plant/down", "{linkFrom: {name: sw, type: NETWORK}, linkTo: {name: edge-1}, bandWidthBits: 50000000, latencyNanos: 1000000}").is(t, http.StatusOK)
	all := w.viewer.get(t, "/swm/topologies")
	require.Contains(t, string(all.body), `"paths":[{"nodes":["hub-1","sw","edge-1"]}]`)
	w.operator.call(t, http.MethodPut, "/netma/reservations/a",
		`{"source": "hub-1", "target": "edge-1", "bandwidthBits": 60000000}`).is(t, http.StatusConflict)
	for _, path := range []string{"networklinks/plant/up", "networklinks/plant/down", "networkpaths/plant/way"} {
		w.operator.call(t, http.MethodDelete, "/swm/objects/"+path, "").is(t, http.StatusNoContent)
	}
	require.Equal(t, "[]", strings.TrimSpace(string(w.viewer.get(t, "/swm/topologies").body)))
}

// TestAnIpamGetsAddresses: as many as it asks for, for as long as it is there; what is refused changes nothing.
func TestAnIpamGetsAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type ipam struct {
		Status struct{ Code, IPv4CIDR, Error string }
	}
	ask := func(name, spec string) *answer {
		return w.operator.call(t, http.MethodPut, "/swm/objects/ipams/plant/"+name, "spec: "+spec)
	}
	got := func(a *answer) ipam { return decode[ipam](t, a.is(t, http.StatusOK)) }
	one := got(ask("cameras", "{numberOfAddresses: 8, purpose: cameras}"))
	require.Equal(t, []string{"RESERVED", "10.20.0.0/29", ""}, []string{one.Status.Code, one.Status.IPv4CIDR, one.Status.Error})
	require.Equal(t, one, got(ask("cameras", "{numberOfAddresses: 8, purpose: cameras}")), "handed in again")
	require.Equal(t, "UNFULFILLABLE", got(ask("disks", "{numberOfAddresses: 16}")).Status.Code)
	require.Contains(t, decode[ipam](t, w.viewer.get(t, "/swm/objects/ipams/plant/disks")).Status.Error, "8 are free")
	for _, number := range []string{"0", "-4", "4294967297"} {
		require.Equal(t, []string{"spec.numberOfAddresses"}, ask("cameras", "{numberOfAddresses: "+number+"}").fields(t))
	}
	ask("cameras", "{numberOfAddresses: 99999999999999999999}").is(t, http.StatusBadRequest)
	ask("cameras", "{numberOfAddresses: many}").is(t, http.StatusBadRequest)
	all := decode[[]ipam](t, w.viewer.get(t, "/swm/objects/ipams"))
	require.Equal(t, []string{"10.20.0.0/29", ""}, []string{all[0].Status.IPv4CIDR, all[1].Status.IPv4CIDR})
	w.operator.call(t, http.MethodDelete, "/swm/objects/ipams/plant/cameras", "").is(t, http.StatusNoContent)
	require.Equal(t, "10.20.0.0/28", decode[ipam](t, w.viewer.get(t, "/swm/objects/ipams/plant/disks")).Status.IPv4CIDR)
}
