// Package sweep forgets the controllers that have fallen silent, and asks the others whether they are well.
package sweep

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/lighthouse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Class:       function.Remote,
	Concurrency: 1,
	Needs:       []function.Need{function.Controllers},
}

// Function is the task with its settings and store.
type Function struct {
	db     *store.DB
	http   *http.Client
	config config
}

type config struct {
	lighthouse.Config
	Patience time.Duration `envconfig:"LIGHTHOUSE_CHECK_TIMEOUT" default:"3s"` // for the answer of a controller
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, http: &http.Client{Transport: env.HTTP.Transport, CheckRedirect: stay}}
	return f, env.Config(&f.config)
}

// stay ignores redirects: a controller is where it says that it is.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// atOnce bounds how many controllers are asked at a time.
const atOnce = 8

// Run sweeps, then asks every controller that is left, several at once.
func (f *Function) Run(ctx context.Context) error {
	err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return lighthouse.Sweep(ctx, tx, f.config.Timeout) })
	if err != nil {
		return err
	}
	all, err := lighthouse.Alive(ctx, f.db, f.config.Timeout)
	if err != nil || len(all) == 0 {
		return err
	}
	troubles := make([]string, len(all))
	var asking sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, c := range all {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			troubles[i] = f.ask(ctx, c)
		})
	}
	asking.Wait()
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		for i, c := range all {
			if err := lighthouse.Checked(ctx, tx, c.Address, troubles[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ask returns what is wrong with the controller, as seen from here; "" for nothing. Of its answer only the status counts.
func (f *Function) ask(ctx context.Context, c lighthouse.Controller) string {
	ctx, cancel := context.WithTimeout(ctx, f.config.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base()+"/api/v3/healthcheck", nil)
	if err != nil {
		return "its address cannot be asked"
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return "it does not answer"
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("it answers %d", resp.StatusCode)
	}
	return ""
}
