// Package lifecycle handles the reports of another job manager about its applications (shared/docs/contracts.md §3.4), and
// updates their policies accordingly. Our own job manager does not need it, since its events contain the same.
package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/dialect"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Config is read from the environment by envconfig.
type Config struct {
	// JobManager is the base URL of the job manager that receives callbacks. Without one, callbacks to the job
	// manager's own path are carried out here.
	JobManager string `envconfig:"ICOS_JOB_MANAGER_BASE_URL"`
}

// Event is the report that something has happened to an application.
type Event struct {
	Instance   string             `json:"app_instance"`
	Event      string             `json:"event"`
	Service    string             `json:"service"`
	Descriptor Document           `json:"app_descriptor"`
	Callback   *registry.Callback `json:"callback"`
}

// Document is a descriptor as YAML text, or as the object itself.
type Document []byte

// UnmarshalJSON accepts either format.
func (d *Document) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*d = Document(text)
		return nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		return problem.New(problem.Invalid, "must be a text or an object")
	}
	*d = Document(bytes.Clone(raw)) // JSON is valid YAML
	return nil
}

// The events.
const (
	created = "created"
	started = "started"
	stopped = "stopped"
	deleted = "deleted"
)

// Check returns an error that names everything that is missing.
func (e *Event) Check() error {
	var faults problem.Faults
	instance(&faults, e.Instance)
	if e.Service == "" {
		faults.Add("service", 0, "is required")
	}
	if e.Event == "" {
		e.Event = created // the contract's default
	}
	if !slices.Contains([]string{created, started, stopped, deleted}, e.Event) {
		faults.Add("event", 0, "must be created, started, stopped or deleted")
	}
	if e.Event == created && len(e.Descriptor) == 0 {
		faults.Add("app_descriptor", 0, "is required when an application is created")
	}
	callback(&faults, "callback", e.Callback)
	return faults.Err("the event is not valid")
}

func instance(faults *problem.Faults, text string) {
	switch {
	case text == "":
		faults.Add("app_instance", 0, "is required")
	case len(text) > 255 || strings.ContainsRune(text, 0):
		faults.Add("app_instance", 0, "is no name of an instance")
	}
}

func callback(faults *problem.Faults, path string, c *registry.Callback) {
	if c == nil {
		return
	}
	if c.URI == "" {
		faults.Add(path+".uri", 0, "is required")
	}
	if !slices.Contains([]string{"GET", "POST", "PUT", "DELETE"}, strings.ToUpper(c.HTTPMethod)) {
		faults.Add(path+".http_method", 0, "must be GET, POST, PUT or DELETE")
	}
}

// Apply carries out the event and returns the application's policies afterwards. Repeating it has no further effect.
func (e *Event) Apply(
	ctx context.Context, tx *store.Tx, c Config, render policies.Renderer,
) (left []*policies.Policy, err error) {
	switch e.Event {
	case created:
		err = makeAll(ctx, tx, c, e.Descriptor, e.Instance, e.Callback, render)
	case started:
		err = policies.Resume(ctx, tx, e.Instance, true, render)
	case stopped:
		err = policies.Pause(ctx, tx, e.Instance)
	default:
		err = policies.Remove(ctx, tx, e.Instance)
	}
	if err != nil {
		return nil, err
	}
	return policies.OfInstance(ctx, tx, e.Instance)
}

// Deployed is the body of the older call.
type Deployed struct {
	Descriptor Document           `json:"app_descriptor"`
	Instance   string             `json:"app_instance"`
	Action     *registry.Callback `json:"common_action"`
	Service    string             `json:"service"`
}

// Check returns an error that names everything that is missing.
func (d *Deployed) Check() error {
	var faults problem.Faults
	instance(&faults, d.Instance)
	if len(d.Descriptor) == 0 {
		faults.Add("app_descriptor", 0, "is required")
	}
	if d.Action == nil {
		faults.Add("common_action", 0, "is required")
	}
	if d.Service == "" {
		faults.Add("service", 0, "is required")
	}
	callback(&faults, "common_action", d.Action)
	return faults.Err("the request is not valid")
}

// Apply creates the policies, activates them if activate is set, and returns them.
func (d *Deployed) Apply(
	ctx context.Context, tx *store.Tx, c Config, render policies.Renderer, activate bool,
) ([]*policies.Policy, error) {
	if err := makeAll(ctx, tx, c, d.Descriptor, d.Instance, d.Action, render); err != nil {
		return nil, err
	}
	if activate {
		if err := policies.Resume(ctx, tx, d.Instance, false, render); err != nil {
			return nil, err
		}
	}
	return policies.OfInstance(ctx, tx, d.Instance)
}

func makeAll(
	ctx context.Context, tx *store.Tx, c Config, document []byte, instance string, callback *registry.Callback,
	render policies.Renderer,
) error {
	parsed, err := dialect.DecodeHeader(dialect.Of(document), document, nil)
	if err != nil {
		return err
	}
	ours, err := isOurs(ctx, tx, instance)
	if err != nil {
		return err
	}
	if ours { // its own events do the same
		return policies.Follow(ctx, tx, uuid.MustParse(instance), render)
	}
	wanted, err := registry.FromDescriptor(parsed, instance, parsed.Name)
	if err != nil {
		return err
	}
	for i := range wanted {
		if callback != nil {
			c.direct(callback, &wanted[i])
		}
		if err := policies.Make(ctx, tx, policies.New(wanted[i], policies.FromService), render); err != nil {
			return err
		}
	}
	return nil
}

func isOurs(ctx context.Context, tx *store.Tx, instance string) (bool, error) {
	id, err := uuid.Parse(instance)
	if err != nil {
		return false, nil // other job managers name instances otherwise
	}
	_, err = application.Get(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return false, nil
	}
	return err == nil, err
}

// direct makes the action of the policy call the service of the callback.
func (c Config) direct(callback *registry.Callback, p *registry.Policy) {
	callback.Apply(p, c.JobManager)
	if c.JobManager == "" {
		p.Action.URL = "" // no other address is known
	}
}
