package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

// Publisher hands an event to the Broker; nil means that the Broker has accepted it.
type Publisher interface {
	Publish(ctx context.Context, e cloudevents.Event) error
}

// mostMoves bounds the redirects of one publish.
const mostMoves = 3

// HTTPPublisher posts events to a Broker's ingress in structured mode.
type HTTPPublisher struct {
	URL    string
	Client *http.Client
}

// Publish posts the event; any answer but 2xx is an error.
func (p HTTPPublisher) Publish(ctx context.Context, e cloudevents.Event) error {
	if p.URL == "" {
		return fmt.Errorf("no Broker address is set (K_SINK)")
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", e.ID(), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	client := *p.Client
	client.CheckRedirect = onward
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("publish %s: %w", e.Type(), err)
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096)) // lets the connection be reused
		_ = resp.Body.Close()
	}()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("publish %s: the Broker answered %s", e.Type(), resp.Status)
	}
	return nil
}

// onward only follows redirects that repeat the POST with the event: a page fetched by GET accepts nothing.
func onward(to *http.Request, via []*http.Request) error {
	if to.Method != http.MethodPost || len(via) == mostMoves {
		return http.ErrUseLastResponse
	}
	return nil
}
