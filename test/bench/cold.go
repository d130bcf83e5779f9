package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/test/images"
)

// The budgets of all functions in time. Those of image and memory are of its class.
const (
	budgetP50 = 10.0 // ms
	budgetP99 = 50.0 // ms
)

const (
	hello     = "hello"
	coldUsual = 20 // processes of each function
)

// coldResult is the time from process start to the first answer.
type coldResult struct {
	Rounds    int       `json:"rounds"`
	Ways      []string  `json:"ways"`              // to Postgres
	Functions []coldRow `json:"functions"`         // the first is hello, the reference for the others
	Missing   []string  `json:"missing,omitempty"` // functions without a case
}

type coldRow struct {
	Name   string             `json:"name"`
	Listen float64            `json:"listenMs"` // median of exec to the first accepted connection
	Read   map[string]coldWay `json:"read"`     // by way: GET /readyz, one read of Postgres
	Ways   map[string]coldWay `json:"ways"`     // by way: the function's own request
	CPU    float64            `json:"cpuMs"`    // median of the process's user and system time, by socket
	RSS    float64            `json:"rssMiB"`   // median just after the answer, by the way with the highest
	Size   float64            `json:"sizeMB"`   // stripped binary
	Zip    float64            `json:"gzipMB"`
	Misses string             `json:"misses,omitempty"`
}

// coldWay is the time from exec to the complete answer by one way to Postgres.
type coldWay struct {
	Best  float64 `json:"bestMs"` // the least affected by a busy machine
	P50   float64 `json:"p50Ms"`
	P99   float64 `json:"p99Ms"`
	Ratio float64 `json:"ratioToHello"` // of the medians
}

func runCold(ctx context.Context, w *world) (result, error) {
	chosen, err := regexp.Compile("^(?:" + *only + ")$")
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	programs, err := images.Build(ctx, filepath.Join(w.dir, "bin"), chosen.MatchString, images.Module+"/test/bench/"+hello)
	if err != nil {
		return nil, err
	}
	s, err := newScene(ctx, w)
	if err != nil {
		return nil, err
	}
	ways, err := w.ways(ctx, "cold", s.system.socket, s.system.tcp)
	if err != nil {
		return nil, err
	}
	r := coldResult{Rounds: times(coldUsual)}
	for _, way := range ways {
		r.Ways = append(r.Ways, way.name)
	}
	names, limits := make([]string, 0, len(cases)), map[string]function.Limits{hello: function.Spec{}.Limits()}
	for _, entry := range functions.Registry {
		switch {
		case !chosen.MatchString(entry.Name):
		case cases[entry.Name] == nil:
			r.Missing = append(r.Missing, entry.Name)
		default:
			names, limits[entry.Name] = append(names, entry.Name), entry.Spec.Limits()
		}
	}
	slices.Sort(names)
	slices.Sort(r.Missing)
	names = append([]string{hello}, names...)

	found := map[string]starts{}
	for _, name := range names {
		found[name] = starts{}
	}
	// All functions take turns in a random order, so that noise from other programs affects them alike.
	for range r.Rounds {
		if err := s.system.refresh(ctx); err != nil {
			return nil, err
		}
		if err := s.save(ctx); err != nil {
			return nil, err
		}
		for _, i := range rand.Perm(len(names)) {
			name := names[i]
			for _, j := range rand.Perm(len(ways)) {
				if err := s.start(ctx, name, programs[name], ways[j], found[name]); err != nil {
					return nil, fmt.Errorf("%s by %s: %w", name, ways[j].name, err)
				}
				if err := s.startToRead(ctx, name, programs[name], ways[j], found[name]); err != nil {
					return nil, fmt.Errorf("%s to its first read by %s: %w", name, ways[j].name, err)
				}
			}
		}
	}
	for _, name := range names {
		row, err := found[name].row(name, programs[name], found[hello], limits[name])
		if err != nil {
			return nil, err
		}
		r.Functions = append(r.Functions, row)
	}
	return r, nil
}

// starts are the measurements of one function by way, and under the way's name plus reading.
type starts map[string]*measured

const reading = ", read"

type measured struct{ listen, answer, cpu, rss stats.Sample }

func (m *measured) against(base *measured) coldWay {
	return coldWay{
		Best: m.answer.Quantile(0), P50: m.answer.P50(), P99: m.answer.P99(), Ratio: m.answer.P50() / base.answer.P50(),
	}
}

func (m starts) row(name, program string, base starts, limits function.Limits) (coldRow, error) {
	size, zipped, err := images.Weigh(program)
	if err != nil {
		return coldRow{}, err
	}
	row := coldRow{Name: name, Read: map[string]coldWay{}, Ways: map[string]coldWay{}, Size: size, Zip: zipped}
	var misses []string
	over := func(what string, value, budget float64) {
		if value > budget {
			misses = append(misses, what)
		}
	}
	for _, way := range []string{bySocket, byPgBouncer, byTCP} {
		at, there := m[way]
		if !there {
			continue
		}
		read := m[way+reading].against(base[way+reading])
		row.Ways[way], row.Read[way] = at.against(base[way]), read
		row.RSS = max(row.RSS, at.rss.P50(), m[way+reading].rss.P50())
		if way != byTCP { // which is not used in deployments
			over("p50/"+way, read.P50, budgetP50)
			over("p99/"+way, read.P99, budgetP99)
		}
	}
	row.Listen, row.CPU = m[bySocket].listen.P50(), m[bySocket].cpu.P50()
	over("RSS", row.RSS, limits.Started)
	over("image", row.Zip, limits.Image)
	row.Misses = strings.Join(misses, " ")
	return row, nil
}

// start restores the scene and runs a process until it has answered one request of its own kind.
func (s *scene) start(ctx context.Context, name, program string, way way, found starts) error {
	if err := s.restore(ctx); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	a, err := s.request(ctx, name)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return s.run(ctx, program, way, a, found.of(way.name))
}

// startToRead runs a process once until it has answered after a read of Postgres.
func (s *scene) startToRead(ctx context.Context, name, program string, way way, found starts) error {
	path := function.ReadyPath
	if name == hello {
		path = "/"
	}
	return s.run(ctx, program, way, ask{method: http.MethodGet, path: path}, found.of(way.name+reading))
}

func (m starts) of(key string) *measured {
	if m[key] == nil {
		m[key] = &measured{}
	}
	return m[key]
}

// run starts a process and measures the time until it has answered the request.
func (s *scene) run(ctx context.Context, program string, way way, a ask, into *measured) error {
	request, err := raw(ctx, s.system.world, a)
	if err != nil {
		return err
	}
	address, err := loopback.Free(ctx)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(s.environment(way.address), fmt.Sprintf("PORT=%d", address.Port()))
	cmd.Stdout, cmd.Stderr = &log, &log

	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	conn, err := dial(address.String())
	listening := time.Since(begin)
	var answer *http.Response
	var body []byte
	if err == nil {
		answer, body, err = exchange(conn, request)
	}
	answered := time.Since(begin)
	rss := images.Resident(cmd.Process.Pid)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait() // it was killed
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.Bytes())
	}
	if answer.StatusCode != a.refused && answer.StatusCode/100 != 2 && answer.StatusCode/100 != 3 { // sign-in redirects
		return fmt.Errorf("answered %s: %s\n%s", answer.Status, body, log.Bytes())
	}
	into.listen.Add(listening)
	into.answer.Add(answered)
	into.cpu.Add(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	into.rss = append(into.rss, rss)
	return nil
}

// dial tries to connect every few microseconds until it succeeds.
func dial(address string) (net.Conn, error) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil || time.Now().After(deadline) {
			return conn, err
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func exchange(conn net.Conn, request []byte) (*http.Response, []byte, error) {
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if strings.HasPrefix(answer.Header.Get("Content-Type"), sse.Type) { // it goes on for minutes; its first bytes are its start
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, 1), answer.Body}
	}
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

func (r coldResult) print(w io.Writer) {
	_, _ = fmt.Fprintln(w, "To the first 200 with a read of Postgres (GET "+function.ReadyPath+"):")
	_, _ = fmt.Fprintln(w)
	r.table(w, func(f coldRow) map[string]coldWay { return f.Read }, []string{"listens", "RSS MiB", "size MB", "gzip MB", "misses"},
		func(f coldRow) []string {
			return []string{say(f.Listen), say(f.RSS), say(f.Size), say(f.Zip), cmp.Or(f.Misses, "-")}
		})
	_, _ = fmt.Fprintf(w, "\nTo the answer to what the function is for, with the caller's token, everything it writes, and its commit:\n\n")
	r.table(w, func(f coldRow) map[string]coldWay { return f.Ways }, []string{"cpu ms"},
		func(f coldRow) []string { return []string{say(f.CPU)} })
	_, _ = fmt.Fprintf(w, "\n%d processes of each by each way, in turn; times in ms. Budgets, of the first table: "+
		"p50 %.0f ms, p99 %.0f ms, RSS (the higher of both) and image (gzip of the binary alone) by the function's class.\n",
		r.Rounds, budgetP50, budgetP99)
	if !slices.Contains(r.Ways, byPgBouncer) {
		_, _ = fmt.Fprintln(w, "NOT MEASURED by PgBouncer, which is not on this machine: Debian has it in the package pgbouncer.")
	}
	if len(r.Missing) > 0 {
		_, _ = fmt.Fprintf(w, "NOT MEASURED, since cases has no request for them: %s.\n",
			strings.Join(r.Missing, ", "))
	}
}

// table prints one kind of times of each function by each way, followed by more columns.
func (r coldResult) table(w io.Writer, times func(coldRow) map[string]coldWay, more []string, cells func(coldRow) []string) {
	head := []string{"function"}
	for _, way := range r.Ways {
		head = append(head, way+" best", "p50", "p99", "/hello")
	}
	rows := [][]string{append(head, more...)}
	for _, f := range r.Functions {
		row := []string{f.Name}
		for _, way := range r.Ways {
			c := times(f)[way]
			row = append(row, say(c.Best), say(c.P50), say(c.P99), say(c.Ratio))
		}
		rows = append(rows, append(row, cells(f)...))
	}
	stats.Table(w, rows)
}
