// Package cron fires the PingSources of the laptop host: on their schedule, to the second, as real CloudEvents.
package cron

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/uuid"
	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/types"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"

	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
)

// Options of a Cron.
type Options struct {
	Set    *manifests.Set // the PingSources to fire
	Client *http.Client   // delivers; resolves cluster-local addresses (package mesh)
	Log    *slog.Logger   // nil = slog.Default
}

// Cron fires until it is stopped.
type Cron struct {
	inner  *cron.Cron
	cancel context.CancelFunc
}

// Parser reads what the PingSource type accepts: five fields, or six with seconds first, or @hourly and its like.
var Parser = cron.NewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Start begins to fire. A source whose last ping has not been answered yet skips its turn, so a slow function is never
// met by a pile.
func Start(ctx context.Context, o Options) (*Cron, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	skip := cron.WithChain(cron.SkipIfStillRunning(cron.DiscardLogger))
	c := &Cron{inner: cron.New(cron.WithParser(Parser), skip), cancel: cancel}
	for _, key := range manifests.Sorted(o.Set.PingSources) {
		if err := c.add(ctx, o, key); err != nil {
			cancel()
			return nil, fmt.Errorf("PingSource %s: %w", key, err)
		}
	}
	c.inner.Start()
	return c, nil
}

func (c *Cron) add(ctx context.Context, o Options, key types.NamespacedName) error {
	source := o.Set.PingSources[key]
	event, err := eventOf(key, source.Spec)
	if err != nil {
		return err
	}
	sink, err := mesh.Resolve(&source.Spec.Sink)
	if err != nil {
		return err
	}
	schedule := source.Spec.Schedule
	if source.Spec.Timezone != "" {
		schedule = "CRON_TZ=" + source.Spec.Timezone + " " + schedule
	}
	log := cmp.Or(o.Log, slog.Default()).With("pingsource", key.String())
	_, err = c.inner.AddFunc(schedule, func() {
		e := event.Clone()
		e.SetID(uuid.NewString())
		e.SetTime(time.Now().UTC())
		if err := send(ctx, o.Client, sink.String(), e); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "ping failed", "error", err)
		}
	})
	return err
}

// eventOf makes the event as Knative's adapter does.
func eventOf(key types.NamespacedName, spec sourcesv1.PingSourceSpec) (cloudevents.Event, error) {
	e := cloudevents.New()
	e.SetType(sourcesv1.PingSourceEventType)
	e.SetSource(sourcesv1.PingSourceSource(key.Namespace, key.Name))
	if spec.CloudEventOverrides != nil {
		for name, value := range spec.CloudEventOverrides.Extensions {
			e.SetExtension(name, value)
		}
	}
	data := []byte(spec.Data)
	if spec.DataBase64 != "" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(spec.DataBase64); err != nil {
			return e, fmt.Errorf("dataBase64: %w", err)
		}
	}
	if len(data) == 0 {
		return e, nil
	}
	return e, e.SetData(cmp.Or(spec.ContentType, cloudevents.ApplicationJSON), data)
}

// sendTimeout bounds one ping; no function may take longer.
const sendTimeout = 5 * time.Minute

func send(ctx context.Context, client *http.Client, sink string, e cloudevents.Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	r, err := cehttp.NewHTTPRequestFromEvent(ctx, sink, e)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the sink answered %s", resp.Status)
	}
	return nil
}

// Stop fires no more and waits for pings under way; when ctx ends first, they are cut off.
func (c *Cron) Stop(ctx context.Context) error {
	defer c.cancel()
	idle := c.inner.Stop()
	select {
	case <-idle.Done():
		return nil
	case <-ctx.Done():
		c.cancel()
		return fmt.Errorf("pings cut off: %w", context.Cause(ctx))
	}
}
