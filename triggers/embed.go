// Package triggers holds who reacts to what as YAML: the Broker, the Triggers and the PingSources. The laptop host reads
// them from here; what wakes what is changed in these files alone.
package triggers

import "embed"

// Files has the YAML files of this directory, kustomization.yaml among them.
//
//go:embed *.yaml
var Files embed.FS
