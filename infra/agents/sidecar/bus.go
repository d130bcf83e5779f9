package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/littoral-project/littoral/shared/sse"
)

// source returns what sends the values of our key until ctx ends.
func source(o options, log *slog.Logger) (func(context.Context, chan<- told), error) {
	u, err := url.Parse(o.Bus)
	if err != nil || u.Host == "" {
		return nil, errors.New("BUS_URL is an address such as https://littoral.example/bus or mqtts://user:password@broker")
	}
	key := o.Instance + "/" + o.Component
	var once func(context.Context, func([]byte)) error
	switch u.Scheme {
	case "http", "https":
		once = (&rest{url: strings.TrimSuffix(o.Bus, "/") + "/" + (&url.URL{Path: key}).EscapedPath(), token: o.Token}).follow
	case "mqtt", "mqtts":
		once = broker{u, strings.TrimPrefix(strings.TrimSuffix(u.Path, "/")+"/"+key, "/")}.follow
	default:
		return nil, fmt.Errorf("BUS_URL has the scheme %q, and it is http, https, mqtt or mqtts", u.Scheme)
	}
	return func(ctx context.Context, values chan<- told) {
		wait := shortest
		for ctx.Err() == nil {
			begun := time.Now()
			err := once(ctx, func(payload []byte) {
				var v told
				// Null, or what is of another form, is no list: to take it for an empty one would remove every worker.
				if err := json.Unmarshal(payload, &v); err != nil || v.Clusters == nil {
					log.Warn("a value on the bus is not understood", "key", key)
					return
				}
				select {
				case values <- v:
				case <-ctx.Done():
				}
			})
			if time.Since(begun) > longest {
				wait = shortest
			}
			if err != nil && ctx.Err() == nil {
				log.Warn("the bus is away", "error", err.Error(), "again", wait.String())
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			wait = min(2*wait, longest)
		}
	}, nil
}

// rest is the bus in the form of Zenoh's REST plugin.
type rest struct {
	url, token string
	last       string // id of the last event, where the bus gives any
}

// element is one value of an answer. (shared/bus/zenohrest has it as well, with the store behind it.)
type element struct {
	Value json.RawMessage `json:"value"`
}

// follow subscribes, and asks for the state once it has: a router of Zenoh sends a subscriber only what is to come.
func (r *rest) follow(ctx context.Context, each func([]byte)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := r.get(ctx, sse.Type)
	if err != nil {
		return err
	}
	defer stream.Close()
	now, err := r.get(ctx, "application/json")
	if err != nil {
		return err
	}
	var list []element
	err = json.NewDecoder(io.LimitReader(now, most)).Decode(&list)
	_ = now.Close()
	if err != nil {
		return err
	}
	for _, e := range list {
		each(e.Value)
	}
	return sse.Read(stream, func(e sse.Event) error {
		if e.ID != "" {
			r.last = e.ID
		}
		var v element
		if e.Name == "PUT" && json.Unmarshal([]byte(e.Data), &v) == nil {
			each(v.Value)
		}
		return nil
	})
}

func (r *rest) get(ctx context.Context, accept string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	if accept == sse.Type && r.last != "" {
		request.Header.Set("Last-Event-ID", r.last)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("the bus answered %s", answer.Status)
	}
	return answer.Body, nil
}

// broker is one of MQTT, which retains the state.
type broker struct {
	url   *url.URL
	topic string
}

// alive is how often the broker is asked whether it is still there, in seconds.
const alive = 20

// follow subscribes until the connection ends.
func (b broker) follow(ctx context.Context, each func([]byte)) error {
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	end := func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	client := paho.NewClient(paho.ClientConfig{
		Conn: conn,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			if len(p.Packet.Payload) > 0 {
				each(p.Packet.Payload)
			}
			return true, nil
		}},
		OnClientError: end, OnServerDisconnect: func(*paho.Disconnect) { end(errors.New("the broker ended the connection")) },
	})
	receive := uint16(4)
	connect := &paho.Connect{CleanStart: true, KeepAlive: alive, Properties: &paho.ConnectProperties{ReceiveMaximum: &receive}}
	if user := b.url.User; user != nil {
		connect.Username, connect.UsernameFlag = user.Username(), true
		if password, has := user.Password(); has {
			connect.Password, connect.PasswordFlag = []byte(password), true
		}
	}
	if _, err := client.Connect(ctx, connect); err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(&paho.Disconnect{}) }()
	if _, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: b.topic, QoS: 1}}}); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (b broker) dial(ctx context.Context) (net.Conn, error) {
	host, port := b.url.Host, "1883"
	if b.url.Scheme == "mqtts" {
		port = "8883"
	}
	if b.url.Port() == "" {
		host = net.JoinHostPort(b.url.Hostname(), port)
	}
	if b.url.Scheme == "mqtt" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
	conn, err := (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return packets.NewThreadSafeConn(conn), nil
}
