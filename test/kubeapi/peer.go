package kubeapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const linkPath = "/apis/clusterlink.net/v1alpha1/"

// HasLinks makes the server know the kinds of ClusterLink.
func (s *Server) HasLinks() {
	for kind, plural := range map[string]string{"Export": "exports", "Import": "imports", "AccessPolicy": "accesspolicies"} {
		s.Define("clusterlink.net", "v1alpha1", kind, plural, true)
	}
}

// Peer does what a peer of ClusterLink does with the objects that are there: it says of each whether it is valid. One whose
// name is among the broken is not.
func (s *Server) Peer(broken ...string) {
	for _, path := range s.Paths(linkPath) {
		s.Change(path, func(o *Object) {
			status := "True"
			for _, name := range broken {
				if o.GetName() == name {
					status = "False"
				}
			}
			var types []string
			switch {
			case strings.Contains(path, "/exports/"):
				types = []string{"ExportValid"}
			case strings.Contains(path, "/imports/"):
				types = []string{"ImportTargetPortValid", "ImportServiceValid"}
			}
			var conditions []any
			for _, typ := range types {
				conditions = append(conditions, map[string]any{"type": typ, "status": status, "reason": "Looked", "message": "as the peer sees it"})
			}
			if conditions != nil {
				_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions") // it has no other status
			}
		})
	}
}
