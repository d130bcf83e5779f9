package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/test/bench/stats"
	"github.com/littoral-project/littoral/test/deployed"
)

// target is a Knative Service and the request to it.
type target struct {
	name, url string
	role      auth.Role // "" = Viewer
}

const helloName = "bench-hello-"

// deployHellos deploys n copies of hello, configured like our functions: same resources, account and annotations.
func (b *bench) deployHellos(ctx context.Context, n int) error {
	if len(b.hellos) >= n {
		return nil
	}
	image, err := deployed.Image(ctx, "test/bench/knative/hello")
	if err != nil {
		return err
	}
	text, err := b.Kubectl("get", "ksvc", "jobmanager-home", "-o", "json")
	if err != nil {
		return err
	}
	var model struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Spec       map[string]any `json:"spec"`
	}
	if err := json.Unmarshal([]byte(text), &model); err != nil {
		return err
	}
	template := model.Spec["template"].(map[string]any)
	delete(template["metadata"].(map[string]any), "labels")
	containers := template["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["image"] = image
	var all []any
	for i := len(b.hellos); i < n; i++ {
		name := fmt.Sprint(helloName, i)
		b.hellos = append(b.hellos, target{name: name})
		all = append(all, map[string]any{
			"apiVersion": model.APIVersion, "kind": model.Kind, "spec": model.Spec,
			"metadata": map[string]any{"name": name, "labels": map[string]string{"littoral.dev/bench": "hello"}},
		})
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": all})
	if err != nil {
		return err
	}
	apply := exec.Command("kubectl", "-n", deployed.Namespace, "apply", "-f", "-")
	apply.Stdin = strings.NewReader(string(list))
	if out, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if _, err := b.Kubectl("wait", "--for=condition=Ready", "ksvc", "-l", "littoral.dev/bench=hello", "--timeout=300s"); err != nil {
		return err
	}
	for i := range b.hellos {
		if b.hellos[i].url, err = b.Kubectl("get", "ksvc", b.hellos[i].name, "-o", "jsonpath={.status.url}"); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) removeHellos() error {
	if len(b.hellos) == 0 {
		return nil
	}
	_, err := b.Kubectl("delete", "ksvc", "-l", "littoral.dev/bench=hello", "--wait=false")
	return err
}

var parameter = regexp.MustCompile(`\{[^}]+\}`)

// functions lists the functions with an operation that reads, by name, and then the others, whose health is requested.
// A parameter in a path becomes an id that does not exist: the answer 404 takes as many reads.
func (b *bench) functions() (readers, others []target, err error) {
	text, err := b.Kubectl("get", "ksvc", "-l", "app.kubernetes.io/part-of=littoral", "-o", "json")
	if err != nil {
		return nil, nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Status struct {
				URL string `json:"url"`
			} `json:"status"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, nil, err
	}
	for _, i := range list.Items {
		routes := i.Metadata.Annotations["littoral.dev/routes"]
		if routes == "" || strings.HasPrefix(i.Metadata.Name, helloName) {
			continue // it is only reachable inside the cluster
		}
		found := false
		for route := range strings.Lines(routes) {
			method, path, _ := strings.Cut(strings.TrimSpace(route), " ")
			if method == http.MethodGet {
				path = strings.ReplaceAll(path, "{$}", "")
				path = parameter.ReplaceAllString(path, uuid.Nil.String())
				t := target{name: i.Metadata.Name, url: i.Status.URL + path}
				if strings.HasPrefix(path, "/jobmanager/jobs/executable/") {
					t.role = auth.Agent
				}
				readers = append(readers, t)
				found = true
				break
			}
		}
		if !found {
			others = append(others, target{name: i.Metadata.Name, url: i.Status.URL + function.HealthPath})
		}
	}
	return readers, others, nil
}

func names(targets []target) []string {
	var all []string
	for _, t := range targets {
		all = append(all, t.name)
	}
	return all
}

// tokens fetches the tokens in advance, so that no measurement includes it.
func (b *bench) tokens(ctx context.Context) error {
	for _, role := range []auth.Role{auth.Viewer, auth.Agent} {
		if _, err := b.ask(ctx, target{url: b.Base + "/oidc/keys", role: role}); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request on a new connection and returns the milliseconds until the answer is complete. 401, 403 and 5xx
// are errors, since they do not measure the function's work.
func (b *bench) ask(ctx context.Context, t target) (float64, error) {
	role := t.role
	if role == "" {
		role = auth.Viewer
	}
	c, err := b.Client(role)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(resp.Body)
	took := float64(time.Since(begin)) / float64(time.Millisecond)
	_ = resp.Body.Close()
	if err == nil && (resp.StatusCode >= 500 || resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden) {
		err = fmt.Errorf("%s: %s: %.200s", t.url, resp.Status, text)
	}
	return took, err
}

// row is the result of one function.
type row struct {
	Function string       `json:"function"`
	P50      stats.Number `json:"p50_ms"`
	P95      stats.Number `json:"p95_ms"`
	Ratio    stats.Number `json:"p50_to_floor"` // 0 for hello itself
	Warm     stats.Number `json:"warm_p50_ms"`
	Starts   int          `json:"starts"`
	Failures int          `json:"failures"`
	All      stats.Sample `json:"all_ms"`
}

type httpResult struct {
	Rows []row `json:"functions"` // the first is hello, the floor
	Met  int   `json:"met"`
}

// runHTTP wakes one function after the other, each from zero pods, with a copy of hello before every few functions.
func runHTTP(ctx context.Context, b *bench) (result, error) {
	chosen, err := regexp.Compile("^(?:" + *only + ")$")
	if err != nil {
		return nil, err
	}
	all, _, err := b.functions()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t target) bool { return !chosen.MatchString(t.name) })
	if err := b.deployHellos(ctx, *hellos); err != nil {
		return nil, err
	}
	if err := b.tokens(ctx); err != nil {
		return nil, err
	}
	order := interleave(b.hellos[:*hellos], all)
	cold, warm, failures := map[string]stats.Sample{}, map[string]stats.Sample{}, map[string]int{}
	for n := range *rounds {
		say("http: round %d of %d", n+1, *rounds)
		for _, t := range order {
			if err := b.pods.asleep(ctx, t.name); err != nil {
				return nil, err
			}
			key := t.name
			if strings.HasPrefix(key, helloName) {
				key = helloName
			}
			took, err := b.ask(ctx, t)
			if err != nil {
				say("%v", err)
				failures[key]++
				continue
			}
			cold[key] = append(cold[key], took)
			if took, err = b.ask(ctx, t); err == nil {
				warm[key] = append(warm[key], took)
			}
		}
	}
	r := &httpResult{}
	floor := stats.Number(cold[helloName].P50())
	for _, key := range append([]string{helloName}, names(all)...) {
		one := row{
			Function: key, P50: stats.Number(cold[key].P50()), P95: stats.Number(cold[key].P95()),
			Warm: stats.Number(warm[key].P50()), Starts: len(cold[key]), Failures: failures[key], All: cold[key],
		}
		if key == helloName {
			one.Function = "hello (floor)"
		} else if one.Ratio = one.P50 / floor; one.Ratio <= 1.15 {
			r.Met++
		}
		r.Rows = append(r.Rows, one)
	}
	return r, nil
}

// interleave spreads the hellos evenly over the rest.
func interleave(hellos, rest []target) []target {
	var all []target
	each := max((len(rest)+len(hellos)-1)/max(len(hellos), 1), 1)
	for i, t := range rest {
		if i%each == 0 && i/each < len(hellos) {
			all = append(all, hellos[i/each])
		}
		all = append(all, t)
	}
	return all
}

func (r *httpResult) rows() [][]string {
	all := [][]string{{"function", "p50 ms", "p95 ms", "p50/floor", "goal 1.15", "warm ms", "starts", "failures"}}
	for _, o := range r.Rows {
		against, goal := "-", "-"
		if o.Ratio > 0 {
			against, goal = ratio(float64(o.Ratio)), verdict(o.Ratio <= 1.15)
		}
		all = append(all, []string{
			o.Function, ms(float64(o.P50)), ms(float64(o.P95)), against, goal, fmt.Sprintf("%.1f", o.Warm),
			fmt.Sprint(o.Starts), fmt.Sprint(o.Failures),
		})
	}
	return all
}

func (r *httpResult) notes() []string {
	var every stats.Sample
	for _, o := range r.Rows[1:] {
		every = append(every, o.All...)
	}
	p50, p95, floor := stats.Number(every.P50()), stats.Number(every.P95()), r.Rows[0]
	return []string{
		fmt.Sprintf("All functions together: p50 %.0f ms (%.2f of the floor's), p95 %.0f ms (%.2f); %d of %d functions meet the goal.",
			p50, p50/floor.P50, p95, p95/floor.P95, r.Met, len(r.Rows)-1),
	}
}

// waveResult is the time of functions that were woken at once.
type waveResult struct {
	Together int          `json:"together"`
	Floor    stats.Sample `json:"floor_ms"` // hello alone
	Ours     stats.Sample `json:"ours_ms"`
	Hello    stats.Sample `json:"hello_ms"` // as many copies of hello at once; none: not measured
	Failures int          `json:"failures"`
	Beyond   stats.Number `json:"beyond_ms"` // p95 of ours minus p95 of hello alone
}

func runWave(ctx context.Context, b *bench) (result, error) {
	ours, others, err := b.functions()
	if err != nil {
		return nil, err
	}
	ours = append(ours, others...)
	if len(ours) < *many {
		return nil, fmt.Errorf("there are %d functions with a route, not %d", len(ours), *many)
	}
	ours = ours[:*many]
	if err := b.deployHellos(ctx, *hellos); err != nil {
		return nil, err
	}
	if err := b.tokens(ctx); err != nil {
		return nil, err
	}
	r := &waveResult{Together: *many}
	everyone := append(names(ours), names(b.hellos)...)
	for n := range *rounds {
		say("wave: round %d of %d", n+1, *rounds)
		if err := b.pods.asleep(ctx, everyone...); err != nil {
			return nil, err
		}
		for _, h := range b.hellos[:min(*hellos, 5)] {
			took, err := b.ask(ctx, h)
			if err != nil {
				return nil, err
			}
			r.Floor = append(r.Floor, took)
		}
		woken, failures := b.together(ctx, ours)
		r.Ours, r.Failures = append(r.Ours, woken...), r.Failures+failures
		if len(b.hellos) < *many {
			continue
		}
		if err := b.pods.asleep(ctx, everyone...); err != nil {
			return nil, err
		}
		woken, failures = b.together(ctx, b.hellos[:*many])
		r.Hello, r.Failures = append(r.Hello, woken...), r.Failures+failures
	}
	r.Beyond = stats.Number(r.Ours.P95() - r.Floor.P95())
	return r, nil
}

// together sends all requests at once, and counts the failures.
func (b *bench) together(ctx context.Context, targets []target) (all stats.Sample, failures int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, t := range targets {
		group.Go(func() {
			took, err := b.ask(ctx, t)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				say("%v", err)
				failures++
				return
			}
			all = append(all, took)
		})
	}
	group.Wait()
	return all, failures
}

func (r *waveResult) rows() [][]string {
	all := [][]string{{"woken", "p50 ms", "p95 ms", "max ms", "starts"}}
	line := func(what string, s stats.Sample) {
		if len(s) > 0 {
			all = append(all, []string{what, ms(s.P50()), ms(s.P95()), ms(s.Quantile(1)), fmt.Sprint(len(s))})
		}
	}
	line("hello, alone", r.Floor)
	line(fmt.Sprintf("%d functions at once", r.Together), r.Ours)
	line(fmt.Sprintf("%d hellos at once", r.Together), r.Hello)
	return all
}

func (r *waveResult) notes() []string {
	beyond := func(what string, by float64) string {
		return fmt.Sprintf("p95 beyond %s: %.0f ms, goal 2000: %s. %d were not answered.",
			what, by, verdict(by <= 2000 && r.Failures == 0), r.Failures)
	}
	all := []string{beyond("one hello alone", float64(r.Beyond))}
	if len(r.Hello) > 0 {
		all = append(all, beyond("as many hellos at once", r.Ours.P95()-r.Hello.P95()))
	}
	return all
}
