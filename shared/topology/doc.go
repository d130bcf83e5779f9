// Package topology is the infrastructure as Littoral knows it: clusters, nodes, what they have and what runs on them.
//
// Taxonomy is the wire shape of the ICOS aggregator with its literal spellings. A measurement that nobody made is an
// unknown Measure, never a zero: placement must be able to tell an idle node from a silent one. Map keys are the
// aggregator's; people and job targets use names, and Places joins the two. METRICS.md says what telemetry feeds each
// key; package topology/collect does it.
package topology
