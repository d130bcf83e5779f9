// Package topology is the model of the infrastructure: clusters, nodes, what they have and what runs on them.
//
// Taxonomy is the wire format of the ICOS aggregator with its literal spellings. A value that was not measured is an
// unknown Measure, never a zero, since placement must be able to tell an idle node from a silent one. Map keys are the
// aggregator's; people and job targets use names, and Places joins the two. METRICS.md says which telemetry feeds each
// key; package topology/collect reads it.
package topology
