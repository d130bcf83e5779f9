package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions"
)

// The budgets of a function.
const (
	budgetP50 = 10.0 // ms
	budgetP99 = 50.0 // ms
	budgetRSS = 16.0 // MiB
	budgetZip = 6.0  // MB
)

const (
	module    = "github.com/littoral-project/littoral"
	hello     = "hello"
	coldUsual = 100 // processes of each function
)

// coldResult is process start to first answer.
type coldResult struct {
	Rounds    int       `json:"rounds"`
	Ways      []string  `json:"ways"`              // to Postgres
	Functions []coldRow `json:"functions"`         // the first is hello, which the others are compared with
	Missing   []string  `json:"missing,omitempty"` // functions without a case
}

type coldRow struct {
	Name   string             `json:"name"`
	Listen float64            `json:"listenMs"` // median of exec to the first accepted connection
	Ways   map[string]coldWay `json:"ways"`
	CPU    float64            `json:"cpuMs"`  // median of user and system time of the process, by socket
	RSS    float64            `json:"rssMiB"` // median just after the answer, of the way that has the highest
	Size   float64            `json:"sizeMB"` // stripped binary
	Zip    float64            `json:"gzipMB"`
	Misses string             `json:"misses,omitempty"`
}

// coldWay is exec to the whole answer by one way to Postgres.
type coldWay struct {
	Best  float64 `json:"bestMs"` // what a busy machine spoils least
	P50   float64 `json:"p50Ms"`
	P99   float64 `json:"p99Ms"`
	Ratio float64 `json:"ratioToHello"` // of the medians
}

func runCold(ctx context.Context, w *world) (result, error) {
	chosen, err := regexp.Compile("^(?:" + *only + ")$")
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	programs, err := build(ctx, w.dir, chosen)
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
	names := make([]string, 0, len(cases))
	for _, entry := range functions.Registry {
		switch {
		case !chosen.MatchString(entry.Name):
		case cases[entry.Name] == nil:
			r.Missing = append(r.Missing, entry.Name)
		default:
			names = append(names, entry.Name)
		}
	}
	slices.Sort(names)
	slices.Sort(r.Missing)
	names = append([]string{hello}, names...)

	found := map[string]starts{}
	for _, name := range names {
		found[name] = starts{}
	}
	// All functions take turns in a random order, so that a neighbour's noise hits them alike.
	for range r.Rounds {
		if err := s.system.look(ctx); err != nil {
			return nil, err
		}
		if err := s.keep(ctx); err != nil {
			return nil, err
		}
		for _, i := range rand.Perm(len(names)) {
			name := names[i]
			for _, j := range rand.Perm(len(ways)) {
				if err := s.start(ctx, name, programs[name], ways[j], found[name]); err != nil {
					return nil, fmt.Errorf("%s by %s: %w", name, ways[j].name, err)
				}
			}
		}
	}
	for _, name := range names {
		row, err := found[name].row(name, programs[name], found[hello])
		if err != nil {
			return nil, err
		}
		r.Functions = append(r.Functions, row)
	}
	return r, nil
}

// build makes the functions and hello as an image would hold them, and returns their files by name.
func build(ctx context.Context, dir string, chosen *regexp.Regexp) (map[string]string, error) {
	at := filepath.Join(dir, "bin")
	flags, env, err := imageFlags(ctx)
	if err != nil {
		return nil, err
	}
	args := slices.Concat([]string{"build"}, flags, []string{"-o", at + "/", module + "/test/bench/" + hello})
	programs := map[string]string{hello: filepath.Join(at, hello)}
	for main, entry := range functions.Registry {
		if !chosen.MatchString(entry.Name) {
			continue
		}
		args = append(args, main)
		programs[entry.Name] = filepath.Join(at, path.Base(main))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, out)
	}
	return programs, nil
}

// imageFlags returns what images are built with, so that a process here is the one that a cluster starts.
func imageFlags(ctx context.Context) (flags, env []string, err error) {
	text, err := projectFile(ctx, ".ko.yaml")
	if err != nil {
		return nil, nil, err
	}
	var ko struct {
		Flags   []string `json:"defaultFlags"`
		Ldflags []string `json:"defaultLdflags"`
		Env     []string `json:"defaultEnv"`
	}
	if err := yaml.Unmarshal(text, &ko); err != nil {
		return nil, nil, fmt.Errorf(".ko.yaml: %w", err)
	}
	return append(ko.Flags, "-ldflags="+strings.Join(ko.Ldflags, " ")), ko.Env, nil
}

// projectFile reads a file of the project, wherever within it this was started.
func projectFile(ctx context.Context, name string) ([]byte, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), name))
}

// starts are the measurements of one function by each way.
type starts map[string]*measured

type measured struct{ listen, answer, cpu, rss sample }

func (m starts) row(name, program string, base starts) (coldRow, error) {
	size, zipped, err := weigh(program)
	if err != nil {
		return coldRow{}, err
	}
	row := coldRow{Name: name, Ways: map[string]coldWay{}, Size: size, Zip: zipped}
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
		c := coldWay{Best: at.answer.quantile(0), P50: at.answer.p50(), P99: at.answer.p99()}
		c.Ratio = c.P50 / base[way].answer.p50()
		row.Ways[way] = c
		row.RSS = max(row.RSS, at.rss.p50())
		if way != byTCP { // which nobody deploys
			over("p50/"+way, c.P50, budgetP50)
			over("p99/"+way, c.P99, budgetP99)
		}
	}
	row.Listen, row.CPU = m[bySocket].listen.p50(), m[bySocket].cpu.p50()
	over("RSS", row.RSS, budgetRSS)
	over("image", row.Zip, budgetZip)
	row.Misses = strings.Join(misses, " ")
	return row, nil
}

// weigh returns the size of a file in MB, as it is and compressed as a layer of an image is.
func weigh(file string) (plain, zipped float64, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		return 0, 0, err
	}
	if err := z.Close(); err != nil {
		return 0, 0, err
	}
	return float64(len(text)) / 1e6, float64(out.Len()) / 1e6, nil
}

// start runs a process on the scene as it was kept until it has answered one request.
func (s *scene) start(ctx context.Context, name, program string, way way, found starts) error {
	if err := s.restore(ctx); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	into := found[way.name]
	if into == nil {
		into = &measured{}
		found[way.name] = into
	}
	request, err := s.request(ctx, name)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(s.environment(way.address), "PORT="+port)
	cmd.Stdout, cmd.Stderr = &log, &log

	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	conn, err := dial("127.0.0.1:" + port)
	listening := time.Since(begin)
	var answer *http.Response
	var body []byte
	if err == nil {
		answer, body, err = exchange(conn, request)
	}
	answered := time.Since(begin)
	rss := resident(cmd.Process.Pid)
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait() // it was killed
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log.Bytes())
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s: %s\n%s", answer.Status, body, log.Bytes())
	}
	into.listen.add(listening)
	into.answer.add(answered)
	into.cpu.add(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	into.rss = append(into.rss, rss)
	return nil
}

// dial knocks every few microseconds until someone opens.
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
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

// resident returns the memory of a process in MiB, pages of its binary included.
func resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}

func (r coldResult) print(w io.Writer) {
	head := []string{"function", "listens"}
	for _, way := range r.Ways {
		head = append(head, way+" best", "p50", "p99", "/hello")
	}
	rows := [][]string{append(head, "cpu ms", "RSS MiB", "size MB", "gzip MB", "misses")}
	for _, f := range r.Functions {
		row := []string{f.Name, say(f.Listen)}
		for _, way := range r.Ways {
			c := f.Ways[way]
			row = append(row, say(c.Best), say(c.P50), say(c.P99), say(c.Ratio))
		}
		rows = append(rows, append(row, say(f.CPU), say(f.RSS), say(f.Size), say(f.Zip), cmp.Or(f.Misses, "-")))
	}
	table(w, rows)
	_, _ = fmt.Fprintf(w, "\n%d processes of each by each way, in turn; times in ms. "+
		"Budgets: p50 %.0f ms, p99 %.0f ms, RSS %.0f MiB, image %.0f MB (gzip of the binary alone).\n",
		r.Rounds, budgetP50, budgetP99, budgetRSS, budgetZip)
	if !slices.Contains(r.Ways, byPgBouncer) {
		_, _ = fmt.Fprintln(w, "NOT MEASURED by PgBouncer, which is not on this machine: Debian has it in the package pgbouncer.")
	}
	if len(r.Missing) > 0 {
		_, _ = fmt.Fprintf(w, "NOT MEASURED, since cases has no request for them: %s.\n",
			strings.Join(r.Missing, ", "))
	}
}
