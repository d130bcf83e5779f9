package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/auth"
)

const (
	pooled    = "jobmanager-group-list" // reads Postgres in every call
	firstPort = 21000
	calls     = 20 // of each instance at once; its pool has two connections
)

// poolRun is the effect of many instances at once on one Postgres.
type poolRun struct {
	Way       string         `json:"way"`
	Instances int            `json:"instances"`
	Requests  int            `json:"requests"`
	Answers   map[string]int `json:"answers"` // by status, or the error
	Backends  int            `json:"backends"`
	Idle      int            `json:"backends_before"`
	Max       int            `json:"max_connections"`
	Took      float64        `json:"took_ms"`
}

func (r poolRun) refused() int { return r.Requests - r.Answers["200"] }

type poolResult struct {
	Runs []poolRun `json:"runs"`
}

// runPool runs instances of a function as processes of this machine, since few clusters have room for so many pods.
// They use the cluster's own PgBouncer and Postgres.
func runPool(ctx context.Context, b *bench) (result, error) {
	folder, err := os.MkdirTemp("", "littoral-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program := filepath.Join(folder, pooled)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./functions/cmd/"+pooled)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, err
	}
	db, err := b.database(ctx, "littoral-migrations") // past PgBouncer, before the last connection is taken
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(context.WithoutCancel(ctx)) }()
	r := &poolResult{}
	ways := []struct{ name, secret string }{{"through PgBouncer", "littoral"}}
	if *direct {
		ways = append(ways, struct{ name, secret string }{"straight to Postgres", "littoral-migrations"})
	}
	for _, way := range ways {
		address, err := b.databaseURL(way.secret)
		if err != nil {
			return nil, err
		}
		one, err := b.crowd(ctx, db, program, address)
		if err != nil {
			return nil, err
		}
		one.Way = way.name
		r.Runs = append(r.Runs, one)
	}
	return r, nil
}

// environment is the functions' own settings, with cluster-internal names replaced.
func (b *bench) environment() ([]string, error) {
	text, err := b.Kubectl("get", "configmap", "littoral", "-o", "jsonpath={.data}")
	if err != nil {
		return nil, err
	}
	data := map[string]string{}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return nil, err
	}
	keys, err := url.Parse(data["OIDC_JWKS_URL"])
	if err != nil {
		return nil, err
	}
	port := keys.Port()
	if port == "" {
		port = "80"
	}
	if keys.Host, err = b.Resolve(keys.Hostname() + ":" + port); err != nil {
		return nil, err
	}
	data["OIDC_JWKS_URL"] = keys.String()
	env := []string{"PATH=" + os.Getenv("PATH")}
	for key, value := range data {
		env = append(env, key+"="+value)
	}
	return env, nil
}

func (b *bench) crowd(ctx context.Context, db *pgx.Conn, program, address string) (run poolRun, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	env, err := b.environment()
	if err != nil {
		return run, err
	}
	client, err := b.Client(auth.Viewer)
	if err != nil {
		return run, err
	}
	run = poolRun{Instances: *procs, Answers: map[string]int{}}
	if err := db.QueryRow(ctx, `select current_setting('max_connections')::int`).Scan(&run.Max); err != nil {
		return run, err
	}
	if run.Idle, err = backends(ctx, db); err != nil {
		return run, err
	}
	var processes sync.WaitGroup
	defer processes.Wait() // after cancel, which ends them
	defer cancel()
	for i := range *procs {
		c := exec.CommandContext(ctx, program)
		c.Env = append(append([]string{}, env...), "DATABASE_URL="+address, fmt.Sprint("PORT=", firstPort+i))
		c.Stderr, c.Stdout = io.Discard, io.Discard
		if err := c.Start(); err != nil {
			return run, err
		}
		processes.Go(func() { _ = c.Wait() })
	}
	for i := range *procs { // none has connected to Postgres yet: the first call does
		if err := listens(ctx, firstPort+i); err != nil {
			return run, err
		}
	}
	say("pool: %d instances listen", *procs)

	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			n, e := backends(ctx, db)
			if e != nil {
				err = errors.Join(err, e)
				return
			}
			run.Backends = max(run.Backends, n)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	var all sync.WaitGroup
	var mu sync.Mutex
	begin := time.Now()
	for i := range *procs {
		for range calls {
			all.Go(func() {
				answer := b.answer(ctx, client, fmt.Sprintf("http://127.0.0.1:%d/jobmanager/groups?limit=1", firstPort+i))
				mu.Lock()
				defer mu.Unlock()
				run.Answers[answer]++
				run.Requests++
			})
		}
	}
	all.Wait()
	run.Took = float64(time.Since(begin)) / float64(time.Millisecond)
	close(done)
	watching.Wait()
	return run, err
}

func (b *bench) answer(ctx context.Context, client *http.Client, address string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := client.Do(r)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			return inner.Err.Error()
		}
		return err.Error()
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

// backends counts the client connections of Postgres, without this program's own.
func backends(ctx context.Context, db *pgx.Conn) (n int, err error) {
	err = db.QueryRow(ctx, `select count(*) from pg_stat_activity
		where backend_type = 'client backend' and pid <> pg_backend_pid()`).Scan(&n)
	return n, err
}

func listens(ctx context.Context, port int) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/healthz", port), http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := client.Do(r); err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d: %w", port, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (r *poolResult) rows() [][]string {
	all := [][]string{{"way", "instances", "requests", "answers", "refused", "backends before", "at most", "max_connections", "s"}}
	for _, o := range r.Runs {
		all = append(all, []string{
			o.Way, fmt.Sprint(o.Instances), fmt.Sprint(o.Requests), fmt.Sprint(o.Answers),
			fmt.Sprint(o.refused()), fmt.Sprint(o.Idle), fmt.Sprint(o.Backends), fmt.Sprint(o.Max),
			fmt.Sprintf("%.1f", o.Took/1000),
		})
	}
	return all
}

func (r *poolResult) notes() []string {
	o := r.Runs[0]
	return []string{fmt.Sprintf("Each instance takes %d calls at once. Goal, through PgBouncer: 0 refused, at most 60 backends: %s.",
		calls, verdict(o.refused() == 0 && o.Backends <= 60))}
}
