// Package fleet simulates clusters: nodes that emit telemetry and agents that carry out jobs, so that a laptop has a
// continuum to work on and a test one that fails on command.
//
// Towards Littoral it is as outside as a real cluster. Its telemetry goes into a Prometheus under the names and labels
// of shared/topology/METRICS.md, and each cluster's agent polls the public API over HTTP with a token of its own
// (contracts/icos.md §1.2, §6). What is true of the fleet lies in one file and survives a kill -9: what was done to its
// nodes, which copies run where and by which decision (epoch), and which jobs an agent has taken but not yet reported.
package fleet
