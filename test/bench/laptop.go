package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/infra/runner/host"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/triggers"
)

const (
	laptopUsual  = 50
	laptopWarmUp = 3
	laptopPoll   = 5 * time.Millisecond
)

// laptopResult is the time from submit to Available on the real host: with its Broker, its mesh, the agents of its
// fleet.
type laptopResult struct {
	Applications int     `json:"applications"`
	Submit       float64 `json:"submitP50Ms"` // the answer to POST groups
	P50          float64 `json:"p50Ms"`
	P99          float64 `json:"p99Ms"`
}

func runLaptop(ctx context.Context, w *world) (_ result, err error) {
	descriptor, err := os.ReadFile(chainFile)
	if err != nil {
		return nil, fmt.Errorf("run it from the root of the source: %w", err)
	}
	database, _, err := w.database(ctx, "laptop")
	if err != nil {
		return nil, err
	}
	h, c, err := w.startHost(ctx, "laptop", database, map[string]string{
		"FLEET_DELAY": "0s", "FLEET_POLL": laptopPoll.String(),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop(ctx)) }()

	n := times(laptopUsual)
	var submit, total stats.Sample
	for i := range n + laptopWarmUp {
		begin := time.Now()
		g, err := c.call(ctx, http.MethodPost, "/jobmanager/groups", descriptor)
		if err != nil {
			return nil, err
		}
		answered := time.Since(begin)
		if err := c.await(ctx, g.ID, "Available"); err != nil {
			return nil, err
		}
		if i >= laptopWarmUp {
			submit.Add(answered)
			total.Add(time.Since(begin))
		}
		if _, err := c.call(ctx, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, nil); err != nil {
			return nil, err
		}
		if err := c.await(ctx, g.ID, "Stopped"); err != nil {
			return nil, err
		}
		if _, err := c.call(ctx, http.MethodDelete, "/jobmanager/groups/"+g.ID, nil); err != nil {
			return nil, err
		}
	}
	return laptopResult{Applications: n, Submit: submit.P50(), P50: total.P50(), P99: total.P99()}, nil
}

// laptopHost is a laptop host.
type laptopHost struct {
	*host.Host
}

// startHost starts the host with these settings, and returns its operator's token. The host uses its own Prometheus and
// keeps rules in its home.
func (w *world) startHost(
	ctx context.Context, name, database string, given map[string]string,
) (_ *laptopHost, _ caller, err error) {
	h := &laptopHost{}
	h.Host, err = host.Start(ctx, host.Options{
		Addr: "127.0.0.1:0", Home: filepath.Join(w.dir, name), Database: database, Registry: functions.Registry,
		Files: map[string]fs.FS{"/knative": knative.Files, "/triggers": cmp.Or(w.triggers, fs.FS(triggers.Files))},
		Log:   slog.New(slog.DiscardHandler), Settings: settings.Map(given),
	})
	if err != nil {
		return nil, caller{}, err
	}
	token, err := api.TokenFile(h.TokenFile("admin"))()
	if err != nil {
		return nil, caller{}, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
	}
	return h, caller{base: h.URL(), token: token}, nil
}

func (h *laptopHost) stop(ctx context.Context) error {
	return h.Stop(context.WithoutCancel(ctx))
}

// caller is a client with a token.
type caller struct{ base, token string }

func (c caller) call(ctx context.Context, method, path string, body []byte) (g group, err error) {
	return g, c.ask(ctx, method, path, body, &g)
}

// ask is call for any other answer.
func (c caller) ask(ctx context.Context, method, path string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(answer))
	}
	return json.Unmarshal(answer, into)
}

// await polls until the application has the status.
func (c caller) await(ctx context.Context, id, status string) error {
	for deadline := time.Now().Add(time.Minute); ; {
		g, err := c.call(ctx, http.MethodGet, "/jobmanager/groups/"+id, nil)
		if err != nil || g.Status == status {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("application %s is %s, not %s, after a minute", id, g.Status, status)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r laptopResult) print(w io.Writer) {
	stats.Table(w, [][]string{
		{"", "p50 ms", "p99 ms"},
		{"POST groups answered", say(r.Submit), ""},
		{"submit to Available", say(r.P50), say(r.P99)},
	})
	_, _ = fmt.Fprintf(w, "\n%d applications of %s, one after the other, on the laptop host with its Broker on disk;\n"+
		"agents of the fleet poll every %s and add no delay of their own.\n", r.Applications, chainFile, laptopPoll)
}
