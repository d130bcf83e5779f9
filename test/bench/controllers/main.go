// Controllers measures the command line and hand-overs against the two controllers that "make run-two" starts, which has to run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/api"
)

func main() {
	calls := flag.Int("calls", 100, "calls of the command line")
	moves := flag.Int("moves", 20, "hand-overs")
	deadline := flag.Duration("deadline", time.Second, "of get apps -A")
	flag.Parse()
	if err := measure(context.Background(), *calls, *moves, *deadline); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const (
	program = "bin/littoral"
	shore   = "http://127.0.0.1:8080"
	homes   = ".littoral-"
)

// say gives a command line to one of the two and returns what it prints.
func say(ctx context.Context, home string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), "LITTORAL_HOME="+homes+home), env...)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out, fmt.Errorf("littoral %s: %w: %s", strings.Join(args, " "), err, ended.Stderr)
	}
	return out, err
}

func show(what string, took []time.Duration, bound string) {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[min(int(share*float64(len(took))), len(took)-1)].Round(time.Millisecond / 10)
	}
	fmt.Printf("| %s | %d | %s | %s | %s | %s |\n", what, len(took), at(0.5), at(0.99), at(1), bound)
}

func measure(ctx context.Context, calls, moves int, deadline time.Duration) error {
	fmt.Println("| What | Times | p50 | p99 | Most | Bound |\n|---|---|---|---|---|---|")
	took, err := warm(ctx, calls)
	if err != nil {
		return err
	}
	show("`littoral get apps` against a warm host", took, "p50 30 ms")
	if took, err = everywhere(ctx, deadline); err != nil {
		return err
	}
	show(fmt.Sprintf("`littoral get apps -A`, five controllers, one dead, deadline %s", deadline), took, "deadline + 100 ms")
	return handOvers(ctx, moves)
}

func warm(ctx context.Context, calls int) ([]time.Duration, error) {
	var took []time.Duration
	for range calls {
		began := time.Now()
		if _, err := say(ctx, "shore", nil, "get", "apps"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took[min(len(took)/10, 5):], nil // the first ones warm it
}

// everywhere has five controllers in the phone book: four addresses of shore, and one that takes calls and never answers.
func everywhere(ctx context.Context, deadline time.Duration) ([]time.Duration, error) {
	dead, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dead.Close() }()
	config, err := os.MkdirTemp("", "littoral-bench-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(config) }()
	token, err := filepath.Abs(homes + "shore/token-admin")
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(shore)
	if err != nil {
		return nil, err
	}
	book := http.NewServeMux() // a lighthouse of the bench's own: that of shore would forget or judge them meanwhile
	proxy := httputil.NewSingleHostReverseProxy(target)
	book.Handle("/", proxy)
	var list []api.Controller
	book.HandleFunc("GET /api/v3/controller/{$}", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(list) })
	light := httptest.NewServer(book)
	defer light.Close()
	list = append(list, api.Controller{Name: "dead", Address: "http://" + dead.Addr().String()})
	env := []string{"XDG_CONFIG_HOME=" + config, "LITTORAL_KEYRING=off"}
	for i := range 4 {
		one := httptest.NewServer(proxy)
		defer one.Close()
		name := fmt.Sprintf("one-%d", i)
		list = append(list, api.Controller{Name: name, Address: one.URL})
		if _, err := say(ctx, "shore", env, "--server", one.URL, "--token-file", token, "context", "add", name); err != nil {
			return nil, err
		}
	}
	var took []time.Duration
	for range 10 {
		began := time.Now()
		out, _ := say(ctx, "shore", env, "--server", light.URL, "--token-file", token, "get", "apps", "-A", "--deadline", deadline.String(), "-o", "json")
		took = append(took, time.Since(began))
		var answers []struct{ Error string }
		if err := json.Unmarshal(out, &answers); err != nil {
			return nil, fmt.Errorf("get apps -A: %w: %s", err, out)
		}
		silent := 0
		for _, a := range answers {
			if a.Error != "" {
				silent++
			}
		}
		if len(answers) != 5 || silent != 1 {
			return nil, fmt.Errorf("of five controllers one is dead, but it says: %s", out)
		}
	}
	return took, nil
}

// handOvers moves an application there and back. The times are those of the receiver's history.
func handOvers(ctx context.Context, moves int) error {
	const name = "bench"
	document, err := os.ReadFile("test/examples/hello.yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(os.TempDir(), "littoral-bench.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(document), "name: hello", "name: "+name, 1)), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	if _, err := say(ctx, "shore", nil, "apply", "-f", file, "--wait"); err != nil {
		return err
	}
	var whole, ours []time.Duration
	for range moves {
		if _, err := say(ctx, "shore", nil, "move", name, "--to", "harbour"); err != nil {
			return err
		}
		if err := available(ctx, "harbour", name); err != nil {
			return err
		}
		all, own, err := times(ctx, name)
		if err != nil {
			return err
		}
		whole, ours = append(whole, all), append(ours, own)
		if _, err := say(ctx, "shore", nil, "move", name, "--home"); err != nil {
			return err
		}
		if err := available(ctx, "shore", name); err != nil {
			return err
		}
	}
	show("hand-over, accepted to Available at the peer", whole, "-")
	show("the same without the fleet (an agent's lease to its last report)", ours, "p99 2 s")
	_, err = say(ctx, "shore", nil, "delete", "app", name)
	return err
}

func available(ctx context.Context, home, name string) error {
	for range 600 {
		out, err := say(ctx, home, nil, "get", "apps")
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(out), "\n") {
			if strings.HasPrefix(line, name+" ") && strings.Contains(line, " Available ") {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s was not available at %s within a minute", name, home)
}

// times are of the last hand-over: all of it, and that without what the fleet takes for the component that came last.
func times(ctx context.Context, name string) (all, own time.Duration, err error) {
	out, err := say(ctx, "harbour", nil, "events", name, "--tail", "60", "-o", "json")
	if err != nil {
		return 0, 0, err
	}
	var list []api.Entry
	if err := json.Unmarshal(out, &list); err != nil {
		return 0, 0, err
	}
	var accepted, last time.Time
	taken := map[string]time.Time{}
	var fleet time.Duration
	for _, e := range list {
		switch {
		case e.Controller != "":
		case e.Event == "handover.accepted":
			accepted, taken = e.At, map[string]time.Time{}
		case e.Event == "job.promoted":
			taken[e.Component] = e.At
		case e.Event == "job.finished" && strings.HasPrefix(e.Message, "Available"):
			if begun, known := taken[e.Component]; known && !e.At.Before(last) {
				last, fleet = e.At, e.At.Sub(begun)
			}
		}
	}
	if accepted.IsZero() || last.Before(accepted) {
		return 0, 0, fmt.Errorf("the history of %s at harbour does not show the hand-over", name)
	}
	return last.Sub(accepted), last.Sub(accepted) - fleet, nil
}
