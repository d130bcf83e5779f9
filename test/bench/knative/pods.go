package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/test/deployed"
)

// patience covers the autoscaler's window, its grace period and the end of a pod.
const patience = 4 * time.Minute

// watch calls each with every event of a "kubectl get --watch", until stop is called or ctx ends.
func watch(ctx context.Context, each func(kind string, object json.RawMessage), args ...string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	args = append([]string{"get", "--watch", "--output-watch-events", "-o", "json"}, args...)
	c := exec.CommandContext(ctx, "kubectl", args...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in := json.NewDecoder(out)
		for {
			var e struct {
				Type   string          `json:"type"`
				Object json.RawMessage `json:"object"`
			}
			if err := in.Decode(&e); err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					say("a watch has ended: %v", err)
				}
				_ = c.Wait()
				return
			}
			each(e.Type, e.Object)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// pods tracks the pods of functions, including those that are terminating.
type pods struct {
	stop func()

	mu      sync.Mutex
	of      map[string]string // name of a pod -> of its function
	changed chan struct{}     // closed and replaced with every change
}

func watchPods(ctx context.Context) (*pods, error) {
	p := &pods{of: map[string]string{}, changed: make(chan struct{})}
	var err error
	p.stop, err = watch(ctx, func(kind string, object json.RawMessage) {
		var o struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if json.Unmarshal(object, &o) != nil {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if kind == "DELETED" {
			delete(p.of, o.Metadata.Name)
		} else {
			p.of[o.Metadata.Name] = o.Metadata.Labels["serving.knative.dev/service"]
		}
		close(p.changed)
		p.changed = make(chan struct{})
	}, "pods", "-n", deployed.Namespace, "-l", "serving.knative.dev/service")
	return p, err
}

// asleep waits until none of the functions has a pod, not even a terminating one.
func (p *pods) asleep(ctx context.Context, functions ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var awake []string
		p.mu.Lock()
		for _, function := range p.of {
			if slices.Contains(functions, function) {
				awake = append(awake, function)
			}
		}
		changed := p.changed
		p.mu.Unlock()
		if len(awake) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("still awake: %s", strings.Join(awake, " "))
		}
	}
}
