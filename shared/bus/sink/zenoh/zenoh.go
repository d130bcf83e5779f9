// Package zenoh sends what is published on the bus to a Zenoh router with the REST plugin. Only a router with a storage for the
// keys keeps the state for subscribers who come late.
package zenoh

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
)

// Sink is a Zenoh router.
type Sink struct {
	sink.Address
	http *http.Client
}

// New returns the router of an address with the scheme http or https.
func New(a sink.Address, client *http.Client) (*Sink, error) {
	if a.URL.Scheme != "http" && a.URL.Scheme != "https" {
		return nil, fmt.Errorf("the sink %s is neither http nor https", a.Name())
	}
	return &Sink{a, client}, nil
}

// Open does nothing: each value is a call of its own.
func (s *Sink) Open(context.Context, uuid.UUID) (sink.Session, error) { return session{s}, nil }

type session struct{ *Sink }

// Close does nothing.
func (session) Close() {}

// Send puts or deletes each value.
func (s session) Send(ctx context.Context, values []bus.Value, refused func(bus.Value, error)) error {
	var turn sync.Mutex
	return sink.Each(ctx, values, func(ctx context.Context, v bus.Value) error {
		why, err := s.call(ctx, v)
		if why != nil {
			turn.Lock()
			defer turn.Unlock()
			refused(v, why)
		}
		return err
	})
}

// call returns why the router will never take the value, or an error.
func (s session) call(ctx context.Context, v bus.Value) (why, err error) {
	method := http.MethodPut
	if v.Deleted {
		method = http.MethodDelete
	}
	address := fmt.Sprintf("%s://%s/%s", s.URL.Scheme, s.URL.Host, zenohrest.Path(keyexpr.Expr(s.Prefix)+v.Key))
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(v.Payload))
	if err != nil {
		return nil, err
	}
	if !v.Deleted {
		request.Header.Set("Content-Type", v.Encoding)
	}
	if user := s.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	err = fmt.Errorf("the router answered %s to %s: %s", answer.Status, v.Key, strings.TrimSpace(string(text)))
	switch {
	case answer.StatusCode < 300:
		return nil, nil
	case answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusRequestEntityTooLarge:
		return err, nil
	}
	return nil, err
}
