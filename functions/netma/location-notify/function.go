// Package locationnotify tells a subscriber where users are.
package locationnotify

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/webhook"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:  []string{events.LocationNoticed},
	NoPrewake: true,
	Class:     function.Remote,
	Needs:     []function.Need{function.ClientCredentials},
}

// Function is the worker with its store.
type Function struct {
	db    *store.DB
	calls *webhook.Client
	log   *slog.Logger
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c webhook.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	calls, err := webhook.New(c, env.HTTP)
	return &Function{env.DB, calls, env.Log}, err
}

// Work makes the call. A failure that may pass is returned, so that the Broker delivers again with backoff; an address that must
// not be called is no such failure. Whoever is called twice sees the same id again.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Location](e)
	if err != nil {
		return err
	}
	url, err := mec.CallbackOf(ctx, f.db, about.Subscription)
	if err != nil || url == "" {
		return err
	}
	var body map[string]any
	if err := json.Unmarshal(about.Notification, &body); err != nil {
		return err
	}
	err = f.calls.Do(ctx, webhook.Call{Method: http.MethodPost, URL: url, ID: e.ID(), Body: body})
	if problem.KindOf(err) == problem.Forbidden {
		f.log.WarnContext(ctx, "a subscriber is not told", "subscription", about.Subscription, "error", err.Error())
		return nil
	}
	return err
}
