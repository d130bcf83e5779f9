// Package label has the names under which objects and telemetry say what they belong to, in each dialect.
//
// What runs carries the marks of ICOS, whatever dialect its application is written in: its telemetry finds its component by
// them. CODECO adds a label of its own.
package label

// The marks of ICOS on objects and on the templates of their pods (shared/docs/contracts.md §6.2, §9).
const (
	MarkApplication = "app.icos.eu/name"
	MarkInstance    = "app.icos.eu/instance"
	MarkComponent   = "app.icos.eu/component"
	MarkResource    = "jobmanager.icos.eu/manifest"
)

// MarkDPE on an object with pods asks for the sidecar of COMPSs: "true", or JSON with cores, port and memory (in GB).
const MarkDPE = "littoral.dev/dpe"

// The labels of ICOS's series.
const (
	Controller = "icos_controller_id"
	Agent      = "icos_agent_id"
	Cluster    = "icos_cluster_id"
	Host       = "icos_host_id"
	HostName   = "icos_host_name"

	AppName      = "icos_app_name"
	AppInstance  = "icos_app_instance" // an instance belongs to one tenant
	AppComponent = "icos_app_component"
)

// Service is the label of CODECO on the pods of a service.
const Service = "app.kubernetes.io/name"
