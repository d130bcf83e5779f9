package auth

// Role is what a token may do. Roles are read from the claim "roles" or, as Keycloak writes them,
// "realm_access.roles"; a name not listed here grants nothing.
type Role string

// The roles. Admin may do everything; operator and agent may also read.
const (
	Open     Role = "open"     // no token needed: health and home routes only
	Viewer   Role = "viewer"   // reads
	Operator Role = "operator" // hands in, changes and removes applications
	Agent    Role = "agent"    // takes jobs and reports on them
	Admin    Role = "admin"

	Alertmanager Role = "alertmanager" // tells which alerts fire; may do nothing else
	Controller   Role = "controller"   // registers its own address with the lighthouse; may do nothing else
)

var implied = map[Role][]Role{
	Viewer:   {Viewer},
	Operator: {Operator, Viewer},
	Agent:    {Agent, Viewer},
	Admin:    {Admin, Operator, Agent, Viewer, Alertmanager, Controller},

	Alertmanager: {Alertmanager},
	Controller:   {Controller},
}

// Roles lists the roles that a token can carry.
func Roles() []Role { return []Role{Viewer, Operator, Agent, Alertmanager, Controller, Admin} }

// Grants reports whether a holder of r may do what needs required.
func (r Role) Grants(required Role) bool {
	for _, have := range implied[r] {
		if have == required {
			return true
		}
	}
	return required == Open
}
