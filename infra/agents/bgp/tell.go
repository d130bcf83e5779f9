package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/littoral-project/littoral/infra/agents/agent"
	"github.com/littoral-project/littoral/shared/descriptor"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// source knows a part of the network.
type source interface {
	read(ctx context.Context) (part, error)
}

// teller keeps the document at the controller like what the sources know.
type teller struct {
	o         options
	sources   []source
	client    *http.Client
	url       string // of the document; "" without a controller: it is printed
	out       io.Writer
	log       *slog.Logger
	bandwidth int64
	trouble   *agent.Trouble
	news      chan struct{}

	told    []byte    // the document that the controller has
	checked time.Time // when that was seen
	left    int       // links that were left out
}

func newTeller(o options, out io.Writer, log *slog.Logger) (*teller, error) {
	t := &teller{o: o, out: out, log: log, trouble: agent.NewTrouble(log), news: make(chan struct{}, 1)}
	if o.Bandwidth != "" {
		q, err := descriptor.Quantity(o.Bandwidth)
		if err != nil || q.Sign() <= 0 {
			return nil, fmt.Errorf("bandwidth: %q is no quantity such as 1G", o.Bandwidth)
		}
		bits, _ := q.Float64()
		t.bandwidth = int64(bits)
	}
	if _, err := namesOf(o.Names, o.NamesFile); err != nil {
		return nil, err
	}
	if o.Controller.URL == "" {
		return t, nil
	}
	client, err := o.Controller.HTTP()
	if err != nil {
		return nil, err
	}
	client.Timeout = 30 * time.Second
	t.client, t.url = client, strings.TrimSuffix(o.Controller.URL, "/")+"/swm/topologies/"+url.PathEscape(o.Name)
	return t, nil
}

// look has the sources looked at after the pause. Calls that come before are one.
func (t *teller) look() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// Between attempts while the controller does not take the document.
const (
	shortest = time.Second
	longest  = 5 * time.Minute
)

// follow tells until ctx ends.
func (t *teller) follow(ctx context.Context) {
	wait := shortest
	for ctx.Err() == nil {
		err := t.turn(ctx)
		t.trouble.Noted(ctx, "network", err)
		if err != nil && !errors.Is(err, errNotHeard) {
			sleep(ctx, wait)
			wait = min(2*wait, longest)
			continue
		}
		wait = shortest
		every := t.o.Every
		if err != nil {
			every = min(every, time.Second) // a speaker is not said to have told all before gobgp has noted it
		}
		select {
		case <-ctx.Done():
		case <-t.news:
		case <-time.After(every):
		}
		sleep(ctx, t.o.Pause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// turn tells the network as it is now, if the controller has another one. A network of which a source knows nothing is left as it
// was told: links that are gone by mistake would move what is placed along them.
func (t *teller) turn(ctx context.Context) error {
	select {
	case <-t.news: // it is looked at now
	default:
	}
	d, err := t.document(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if t.url == "" {
		if !bytes.Equal(text, t.told) {
			t.told = text
			_, err = fmt.Fprintf(t.out, "%s\n", text)
		}
		return err
	}
	if time.Since(t.checked) >= t.o.Again {
		if t.told, err = t.stored(ctx); err != nil {
			return err
		}
		t.checked = time.Now()
	}
	if bytes.Equal(text, t.told) {
		return nil
	}
	if err := t.put(ctx, text); err != nil {
		t.checked = time.Time{} // who knows what it has
		return err
	}
	t.told = text
	t.log.InfoContext(ctx, "the network was told", "nodes", len(d.Nodes), "links", len(d.Links))
	return nil
}

func (t *teller) document(ctx context.Context) (*topologies.Document, error) {
	known, err := namesOf(t.o.Names, t.o.NamesFile)
	if err != nil {
		return nil, err
	}
	parts := make([]part, len(t.sources))
	for i, s := range t.sources {
		if parts[i], err = s.read(ctx); err != nil {
			return nil, err
		}
	}
	d, left := describe(t.o.Network, known, t.bandwidth, parts...)
	if left > t.left {
		t.log.WarnContext(ctx, "links are left out, since nobody says their bandwidth: see --bandwidth", "links", left)
	}
	t.left = left
	if len(d.Links) == 0 {
		return nil, errors.New("there is no link in the network")
	}
	return d, nil
}

// stored returns the document that the controller has, in our form; none if it has none.
func (t *teller) stored(ctx context.Context) ([]byte, error) {
	var has struct {
		Spec topologies.Document `json:"spec"`
	}
	status, body, err := t.call(ctx, http.MethodGet, nil)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotFound:
		return nil, nil
	}
	if err := json.Unmarshal(body, &has); err != nil {
		return nil, fmt.Errorf("read the document of the controller: %w", err)
	}
	return json.Marshal(has.Spec)
}

func (t *teller) put(ctx context.Context, text []byte) error {
	status, _, err := t.call(ctx, http.MethodPut, text)
	if err == nil && status == http.StatusNotFound {
		err = errors.New("the controller takes no networks: 404")
	}
	return err
}

// call answers 200 and 404; anything else is an error.
func (t *teller) call(ctx context.Context, method string, text []byte) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, t.url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if text != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := t.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if body, err = io.ReadAll(io.LimitReader(answer.Body, most)); err != nil {
		return 0, nil, err
	}
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		return 0, nil, fmt.Errorf("%s %s: %s: %s", method, t.url, answer.Status, body[:min(len(body), 500)])
	}
	return answer.StatusCode, body, nil
}

// most is the largest answer that is read.
const most = 64 << 20

// ServeHTTP answers /healthz: 200 while the agent works, with what is wrong.
func (t *teller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != "/healthz" {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
	t.trouble.Write(w)
}
