package cli

import "github.com/littoral-project/littoral/shared/api"

// The commands below are spelled as those of ICOS' own shell, so that its scripts work; help does not list them.

type icosID struct {
	ID string `name:"id" placeholder:"ID" complete:"app" help:"Application: id, beginning of its id, or name."`
}

func (c *icosID) argument() (appArgument, error) {
	if c.ID == "" {
		return appArgument{}, usagef("--id says which application")
	}
	return appArgument{c.ID}, nil
}

type createCommand struct {
	Deployment createDeployment `cmd:"" help:"As submit."`
}

type createDeployment struct {
	File string `required:"" placeholder:"FILE" help:"Descriptor; - is standard input."`
	outputFlag
}

// Run submits a descriptor.
func (c *createDeployment) Run(s *session) error {
	submit := submitCommand{File: []string{c.File}, waitFlags: waitFlags{Timeout: defaultWait}}
	return submit.Run(s)
}

type updateCommand struct {
	Deployment updateDeployment `cmd:"" help:"As apply --app."`
}

type updateDeployment struct {
	icosID
	File string `required:"" placeholder:"FILE" help:"Descriptor; - is standard input."`
	outputFlag
}

// Run gives an application another descriptor.
func (c *updateDeployment) Run(s *session) error {
	app, err := c.argument()
	if err != nil {
		return err
	}
	apply := applyCommand{File: []string{c.File}, App: app.ID, waitFlags: waitFlags{Timeout: defaultWait}}
	return apply.Run(s)
}

type getDeployment struct {
	icosID
	outputFlag
}

// Run lists applications.
func (c *getDeployment) Run(s *session) error {
	list := getApps{ID: c.ID}
	return list.Run(s)
}

type startDeployment struct {
	icosID
	outputFlag
}

// Run starts an application.
func (c *startDeployment) Run(s *session) error {
	app, err := c.argument()
	if err != nil {
		return err
	}
	start := startApp{appArgument: app, waitFlags: waitFlags{Timeout: defaultWait}}
	return start.Run(s)
}

type stopDeployment struct {
	icosID
	outputFlag
}

// Run stops an application.
func (c *stopDeployment) Run(s *session) error {
	app, err := c.argument()
	if err != nil {
		return err
	}
	stop := stopApp{appArgument: app, waitFlags: waitFlags{Timeout: defaultWait}}
	return stop.Run(s)
}

type deleteDeployment struct {
	icosID
	outputFlag
}

// Run deletes an application and does not wait for it, as ICOS' shell does not.
func (c *deleteDeployment) Run(s *session) error {
	app, err := c.argument()
	if err != nil {
		return err
	}
	remove := deleteApp{appArgument: app, Timeout: defaultWait}
	return remove.Run(s)
}

type addCommand struct {
	Controller addController `cmd:"" help:"Tell the lighthouse of a controller."`
}

type addController struct {
	Name    string `short:"n" required:"" placeholder:"NAME" help:"Its name."`
	Address string `short:"a" required:"" placeholder:"ADDRESS" help:"Where it is reached."`
	outputFlag
}

// Run registers a controller at the lighthouse.
func (c *addController) Run(s *session) error {
	fresh, err := s.client.AddController(s.ctx, api.Controller{Name: c.Name, Address: c.Address})
	if err != nil {
		return err
	}
	added := map[string]any{"name": c.Name, "address": c.Address, "added": fresh}
	if done, err := s.said(added, "controller/"+c.Name); done {
		return err
	}
	done := "was known, and counts as seen now"
	if fresh {
		done = "added"
	}
	s.screen.line("controller %s %s: %s", c.Name, done, c.Address)
	return nil
}

type authCommand struct {
	Login  loginCommand  `cmd:"" help:"As login."`
	Logout logoutCommand `cmd:"" help:"As logout."`
}
