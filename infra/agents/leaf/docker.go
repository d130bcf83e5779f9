package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// engine is the API of Docker, or of Podman in Docker's form, at its socket. nil = there is none.
type engine struct{ client *http.Client }

// engineState is what the engine says.
type engineState struct {
	Info struct {
		ServerVersion string
		Labels        []string
		NCPU          float64
		MemTotal      float64
		Name          string
	}
	Containers []container
}

type container struct {
	ID     string `json:"Id"`
	Names  []string
	State  string
	Labels labels
}

// findEngine returns the engine at the socket; of "auto" at the first that there is.
func findEngine(socket, root string) *engine {
	switch socket {
	case "off", "":
		return nil
	case "auto":
		socket = ""
		for _, name := range []string{"run/docker.sock", "var/run/docker.sock", "run/podman/podman.sock"} {
			if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode()&os.ModeSocket != 0 {
				socket = filepath.Join(root, name)
				break
			}
		}
		if socket == "" {
			return nil
		}
	}
	socket = strings.TrimPrefix(socket, "unix://")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &engine{&http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConns: 1}, Timeout: 10 * time.Second}}
}

const mostAnswer = 16 << 20

// get decodes the answer of the engine, in the version of its API that Podman speaks too.
func (e *engine) get(ctx context.Context, path string, into any) error {
	return getJSON(ctx, e.client, "http://engine/v1.41"+path, "", into)
}

// getJSON decodes the answer of a GET.
func getJSON(ctx context.Context, client *http.Client, address, token string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return doJSON(client, req, into)
}

// doJSON decodes the answer to a request.
func doJSON(client *http.Client, req *http.Request, into any) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", req.URL.Path, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into)
}

func (e *engine) ask(ctx context.Context) (*engineState, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // there is no engine
	}
	var s engineState
	if err := e.get(ctx, "/info", &s.Info); err != nil {
		return nil, err
	}
	if err := e.get(ctx, "/containers/json?all=true", &s.Containers); err != nil {
		return nil, err
	}
	return &s, nil
}

// states are those of tlum_workload_info by the engine's.
var states = map[string]string{
	"created": "pending", "restarting": "pending", "paused": "pending", "running": "running", "exited": "exited", "dead": "failed",
}

func stateOf(state string) string {
	if s, ok := states[strings.ToLower(state)]; ok {
		return s
	}
	return "unknown"
}

// workload are the labels icos_{prefix}_{label} of annotations and labels {prefix}.icos.eu/{label}.
func workload(into labels, from labels) {
	for name, value := range from {
		if prefix, label, ok := strings.Cut(name, ".icos.eu/"); ok {
			into["icos_"+labelName(prefix)+"_"+labelName(label)] = value
		}
	}
}

// tellEngine tells the engine and its containers.
func (l *leaf) tellEngine(ctx context.Context, k *look, s *engineState, node, cluster string) {
	k.add("tlum_runtime_info", "The container engine", 1, labels{
		"type": "Docker", "version": s.Info.ServerVersion, "node_name": node, "cluster_id": cluster,
	})
	seen := map[string]bool{}
	for _, c := range s.Containers {
		of := labels{"id": c.ID, "status": stateOf(c.State), "name": ""}
		if len(c.Names) > 0 {
			of["name"] = strings.TrimPrefix(c.Names[0], "/")
		}
		workload(of, c.Labels)
		k.add("tlum_workload_info", "What runs on the host", 1, of)
		if of["status"] != "running" {
			continue
		}
		seen[c.ID] = true
		if err := l.usage(ctx, k, c.ID); err != nil {
			k.failed("container "+of["name"], err)
		}
	}
	for id := range l.cpus {
		if !seen[id] {
			delete(l.cpus, id)
		}
	}
}

// cpuTime is what a container had used at a time.
type cpuTime struct {
	at      time.Time
	seconds float64
}

// What containers use, by the names that the collector of the original has for it.
const (
	containerCores  = "container_cpu_utilization_ratio" // no ratio
	containerMemory = "container_memory_working_set_bytes"
)

// usage tells what a container uses: cores since the last look, and memory without what the kernel gives back on demand.
func (l *leaf) usage(ctx context.Context, k *look, id string) error {
	var s struct {
		CPU struct {
			Usage struct {
				Total float64 `json:"total_usage"` // nanoseconds
			} `json:"cpu_usage"`
		} `json:"cpu_stats"`
		Memory struct {
			Usage float64
			Stats map[string]float64
		} `json:"memory_stats"`
	}
	if err := l.docker.get(ctx, "/containers/"+url.PathEscape(id)+"/stats?stream=false&one-shot=true", &s); err != nil {
		return err
	}
	of := labels{"container_id": id}
	inactive := s.Memory.Stats["inactive_file"] // version 2 of cgroups
	if v, ok := s.Memory.Stats["total_inactive_file"]; ok {
		inactive = v
	}
	k.add(containerMemory, "Memory of a container", max(0, s.Memory.Usage-inactive), of)
	now := cpuTime{time.Now(), s.CPU.Usage.Total / 1e9}
	before, known := l.cpus[id]
	if elapsed := now.at.Sub(before.at).Seconds(); known && elapsed > 0 && now.seconds >= before.seconds {
		k.add(containerCores, "Cores that a container uses", (now.seconds-before.seconds)/elapsed, of)
	}
	l.cpus[id] = now
	return nil
}
