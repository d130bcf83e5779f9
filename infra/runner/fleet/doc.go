// Package fleet simulates clusters: nodes that emit telemetry and agents that carry out jobs. They give a laptop a
// continuum to work with, and tests one that fails on command.
//
// For Littoral the fleet is as external as a real cluster. Its telemetry goes to a Prometheus under the names and
// labels of shared/topology/METRICS.md, and each cluster's agent polls the public API over HTTP with its own token
// (shared/docs/contracts.md §1.2, §6). The state of the fleet is in one file and survives a kill -9: the settings of its
// nodes, which copies run where and by which decision (epoch), and which jobs an agent has taken but not yet reported.
package fleet
