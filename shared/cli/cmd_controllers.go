package cli

import "github.com/littoral-project/littoral/shared/api"

type getControllers struct{ listFlags }

// Help is the long help of get controllers.
func (getControllers) Help() string {
	return "Those that have registered at the lighthouse of the server. HEALTH is what the lighthouse found when it asked them.\n\n" +
		"Example: littoral get controllers"
}

// Run lists controllers.
func (c *getControllers) Run(s *session) error {
	l := listing[api.Controller]{
		watch: c.Watch, what: "controllers", kind: "controller",
		fetch:  s.client.Controllers,
		key:    func(c api.Controller) string { return c.Address },
		named:  func(c api.Controller) string { return c.Name },
		header: []string{"NAME", "ADDRESS", "HEALTH", "SEEN"},
		row: func(c api.Controller) []string {
			return []string{c.Name, c.Address, c.State(), s.age(c.SeenAt)}
		},
		steady: []int{0, 1, 2},
		gone:   func(c *api.Controller) { c.Healthy, c.Trouble = nil, gone },
	}
	if s.wide() {
		l.header = append(l.header, "TROUBLE")
		narrow := l.row
		l.row = func(c api.Controller) []string { return append(narrow(c), or(c.Trouble)) }
	}
	return l.run(s)
}
