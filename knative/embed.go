// Package knative holds the Services as YAML: base for every cluster, overlays for what differs by place. The laptop host
// reads them from here.
//
// Conventions it relies on: base/kustomization.yaml lists every Service (scripts/gen writes both), triggers/kustomization.yaml
// lists the Broker, the Triggers and the PingSources; namespaces are set by overlays only; references (subscriber, sink,
// deadLetterSink) name no namespace.
package knative

import "embed"

// Files has the paths below this directory, e.g. overlays/laptop/kustomization.yaml.
//
//go:embed base overlays
var Files embed.FS
