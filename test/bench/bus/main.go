// Command bus measures the topology exporter and the bus: what a tick costs when nothing has changed, how soon a subscriber is told
// of a new place, and the memory of one process that serves subscriptions.
//
//	go run ./test/bench/bus [-keys 10000] [-subscribers 100] [-changes 300]
//
// It starts a Postgres that writes through to the disk. The subscribers are HTTP streams to a process of its own, which runs
// functions/bus/get. A change is told of from the transaction that stores telemetry on, without a Broker in between.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/functions/bus/get"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/bench/stats"
)

func main() {
	keys := flag.Int("keys", 10_000, "keys that are published")
	subscribers := flag.Int("subscribers", 100, "streams that are open, each of all keys")
	changes := flag.Int("changes", 300, "changes of place that are measured")
	serving := flag.String("serve", "", "serve subscriptions from this database, for the run that starts it")
	flag.Parse()
	ctx := context.Background()
	var err error
	if *serving != "" {
		err = serve(ctx, *serving)
	} else {
		err = run(ctx, *keys, *subscribers, *changes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bus:", err)
		os.Exit(1)
	}
}

// serve answers subscriptions as the function does, for callers who may read all.
func serve(ctx context.Context, database string) error {
	db, err := store.Open(ctx, store.Config{DatabaseURL: database, MaxConns: 4}, nil, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	f, err := get.New(function.Platform{
		DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(nil),
	}.Env("bus-get"))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return (&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := auth.Principal{Subject: "bench", Roles: []auth.Role{auth.Viewer}}
		if err := f.Handle(w, r.WithContext(auth.With(r.Context(), who))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}), ReadHeaderTimeout: time.Minute}).Serve(l)
}

// nobody takes every event.
type nobody struct{}

func (nobody) Publish(context.Context, cloudevents.Event) error { return nil }

const (
	components = 5
	nodes      = 100
)

func instance(i int) string { return fmt.Sprintf("app-%05d", i) }

// picture has the pods of all applications, the first of which is where at says.
func picture(applications, at int, now time.Time) *topology.Taxonomy {
	c := topology.Cluster{Type: kinds.OCM, Name: "edge", Node: map[string]topology.Node{}}
	for n := range nodes {
		node := topology.Node{
			Name: fmt.Sprint("n", n), Engine: topology.Kubernetes, LastSeen: topology.Known(float64(now.Unix())), Pod: map[string]topology.Pod{},
			StaticMetrics: topology.StaticMetrics{CPUCores: topology.Known(4), RAMMemory: topology.Known(8e9)},
		}
		for i := range applications {
			if i == 0 && n != at || i > 0 && i%nodes != n {
				continue
			}
			for k := range components {
				name := fmt.Sprint("c", k)
				uid := instance(i) + name
				if i == 0 {
					uid += fmt.Sprint(at) // it moves by another pod
				}
				node.Pod[uid] = topology.Pod{
					Name: name, IP: fmt.Sprint("10.0.0.", n), Workload: map[string]topology.Workload{instance(i): {AppInstance: instance(i), AppComponent: name}},
				}
			}
		}
		c.Node[node.Name] = node
	}
	return &topology.Taxonomy{Cluster: map[string]topology.Cluster{"edge": c}}
}

func run(ctx context.Context, keys, subscribers, changes int) error {
	dir, err := os.MkdirTemp("", "littoral-bench-bus-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := localpg.Start(ctx, localpg.Options{Dir: filepath.Join(dir, "pg"), Durable: true, Notice: func(string) {}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	if err := server.EnsureDatabase(ctx, "bench"); err != nil {
		return err
	}
	if err := migrate.Up(ctx, server.URL("bench")); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Config{DatabaseURL: server.URL("bench"), MaxConns: 2}, nobody{}, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	applications := keys / components
	if err := fill(ctx, db, applications); err != nil {
		return err
	}
	if err := quiet(ctx, db, keys); err != nil {
		return err
	}
	return told(ctx, db, server.URL("bench"), applications, subscribers, changes)
}

func fill(ctx context.Context, db *store.DB, applications int) error {
	now := time.Now()
	var names []string
	for k := range components {
		names = append(names, fmt.Sprint("c", k))
	}
	return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := topology.Save(ctx, tx, picture(applications, 0, now), now, time.Hour); err != nil {
			return err
		}
		for i := range applications {
			if err := exporter.Register(ctx, tx, instance(i), exporter.Application{Name: "bench", Components: names}); err != nil {
				return err
			}
		}
		return nil
	})
}

// quiet measures the heartbeat while nothing is due.
func quiet(ctx context.Context, db *store.DB, keys int) error {
	if _, err := db.Exec(ctx, "analyze"); err != nil {
		return err
	}
	var took stats.Sample
	for i := range 220 {
		began := time.Now()
		if err := exporter.Repeat(ctx, db, time.Hour, time.Hour); err != nil {
			return err
		}
		if i >= 20 { // the first ones find nothing in memory
			took.Add(time.Since(began))
		}
	}
	fmt.Printf("a tick at %d keys of which none has changed: p50 %.2f ms, p99 %.2f ms\n", keys, took.P50(), took.P99())
	return nil
}

// told measures how soon all subscribers know that an application has moved.
func told(ctx context.Context, db *store.DB, database string, applications, subscribers, changes int) error {
	child := exec.CommandContext(ctx, os.Args[0], "-serve", database)
	child.Env = append(os.Environ(), "GOMEMLIMIT=120795955") // as a function of its class has
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	base := "http://" + strings.TrimSpace(address) + "/bus/**"
	heard := make(chan string, 1<<16)
	var states sync.WaitGroup
	states.Add(subscribers)
	for range subscribers {
		go listen(ctx, base, applications*components, &states, heard)
	}
	states.Wait()
	fmt.Printf("%d subscribers have %d keys each: resident %s\n", subscribers, applications*components, resident(child.Process.Pid))
	var took stats.Sample
	for n := range changes {
		began := time.Now()
		at := 1 + n%(nodes-1)
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			if _, err := topology.Save(ctx, tx, picture(applications, at, began), began, time.Hour); err != nil {
				return err
			}
			return exporter.Update(ctx, tx, instance(0))
		})
		if err != nil {
			return err
		}
		for range subscribers * components {
			<-heard
		}
		took.Add(time.Since(began))
	}
	fmt.Printf("from new telemetry to %d subscribers that were told: p50 %.0f ms, p99 %.0f ms, of %d changes; resident %s\n",
		subscribers, took.P50(), took.P99(), changes, resident(child.Process.Pid))
	return nil
}

// listen reads a stream: the state first, then each change of the first application is heard.
func listen(ctx context.Context, url string, state int, states *sync.WaitGroup, heard chan<- string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
	if err != nil {
		panic(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReaderSize(resp.Body, 1<<16)
	for seen := 0; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // the process ended with the run
				fmt.Fprintln(os.Stderr, "bus:", err)
			}
			return
		}
		if !strings.HasPrefix(line, "data:") {
			continue
		}
		if seen++; seen == state {
			states.Done()
		} else if seen > state && strings.Contains(line, instance(0)) {
			heard <- line
		}
	}
}

// resident is the memory that a process has, and has had at most.
func resident(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "unknown"
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS") || strings.HasPrefix(line, "VmHWM") {
			out = append(out, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(out, ", ")
}
