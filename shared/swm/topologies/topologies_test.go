package topologies_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

const lan = `apiVersion: qos-scheduler.siemens.com/v1alpha1
kind: NetworkTopology
metadata: {name: lan}
spec:
  networkImplementation: LAN
  nodes: [{name: c1}, {name: c2}, {name: radio, type: NETWORK}]
  links:
  - {source: c1, target: radio, capabilities: {bandWidthBits: 1G, latencyNanos: "2e6", otherCapabilities: {medium: air}}}
  - {source: radio, target: c2, capabilities: {bandWidthBits: 1G, latencyNanos: "3e6", otherCapabilities: {medium: air}}}
  paths: [{nodes: [c1, radio, c2]}]
`

const vlan = `networkImplementation: VLAN
physicalBase: LAN
nodes: [{name: c1}, {name: radio, type: NETWORK}, {name: c2}]
links:
- {source: c1, target: radio, capabilities: {otherCapabilities: {serviceClass: ASSURED}}}
- {source: radio, target: c2}
`

func TestDocumentsMakeOneTopology(t *testing.T) {
	t.Parallel()
	base, err := topologies.Parse([]byte(lan))
	require.NoError(t, err)
	upper, err := topologies.Parse([]byte(vlan))
	require.NoError(t, err)
	all, err := topologies.Join([]topologies.Document{*upper, *base})
	require.NoError(t, err)
	require.Equal(t, []network.Node{{ID: "c1", Kind: network.Compute}, {ID: "radio", Kind: network.Forwarder}, {ID: "c2", Kind: network.Compute}}, all.Nodes)
	require.Equal(t, network.Assured, all.Networks[0].Class)
	require.Equal(t, "air", all.Networks[0].Links[0].Medium, "the medium of its base")
	require.Equal(t, 3*time.Millisecond, all.Networks[0].Links[1].Latency)
	require.Equal(t, []network.Medium{{ID: "air", Bandwidth: 1_000_000_000}}, all.Networks[1].Media, "both links share it")
	require.Equal(t, []string{"c1-radio", "radio-c2"}, all.Networks[1].Paths[0].Links)

	_, err = topologies.Join([]topologies.Document{*upper})
	require.Equal(t, problem.Invalid, problem.KindOf(err), "its base is missing")
}

func TestFaultsOfATopologyHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for document, path := range map[string]string{
		"nodes: []": "networkImplementation",
		"networkImplementation: L\nnodes: [{name: a, type: SWITCH}]":                                                                                       "nodes[0].type",
		"networkImplementation: L\nnodes: [{name: a}]\nlinks: [{source: a, target: nowhere, capabilities: {bandWidthBits: 1G}}]":                           "links[0].target",
		"networkImplementation: L\nnodes: [{name: a}, {name: b}]\nlinks: [{source: a, target: b}]":                                                         "links[0].capabilities.bandWidthBits",
		"networkImplementation: L\nnodes: [{name: a}, {name: b}]\nlinks: [{source: a, target: b, capabilities: {bandWidthBits: NaN}}]":                     "links[0].capabilities.bandWidthBits",
		"networkImplementation: L\nnodes: [{name: a}, {name: b}]\nlinks: [{source: a, target: b, capabilities: {bandWidthBits: 1, latencyNanos: \"-5\"}}]": "links[0].capabilities.latencyNanos",
		"networkImplementation: L\nnodes: [{name: a}, {name: b}]\nlinks: []\npaths: [{nodes: [a, b]}]":                                                     "paths[0].nodes[1]",
	} {
		_, err := topologies.Parse([]byte(document))
		var refused *problem.Error
		require.True(t, errors.As(err, &refused), document)
		found := false
		for _, f := range refused.Fields {
			found = found || f.Path == path
		}
		require.True(t, found, "%s: %v", path, refused.Fields)
	}
}
