// Package engine is a double of the API of a container engine, made from its documentation: containers, networks, volumes
// and images are kept in memory, and nothing runs. The real engines are tested by "make e2e-docker".
//
//	e := engine.Start(t)
//	c, err := client.New(client.WithHost(e.Host), client.WithDialContext(e.Dial))
package engine

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
)

// Server is an engine.
type Server struct {
	Host string // where a client finds it

	mu         sync.Mutex
	cut        bool
	fail       func(call string) bool
	lose       func(call string) bool
	calls      []string
	containers map[string]*Container // by id
	networks   map[string]*thing     // by name
	volumes    map[string]*thing
	images     map[string]bool
	made       int
}

// Container is one of the engine's.
type Container struct {
	ID, Name string
	State    string // created, running, exited
	ExitCode int
	Restarts int
	Files    map[string]string // that were put into it
	Wrote    []Line
	Networks map[string]network.EndpointSettings
	container.Config
	HostConfig container.HostConfig
}

// Line is what a container wrote.
type Line struct {
	At     time.Time
	Stderr bool
	Text   string
}

type thing struct {
	ID     string            `json:"Id,omitempty"`
	Name   string            `json:"Name"`
	Driver string            `json:"Driver"`
	Labels map[string]string `json:"Labels"`
	Scope  string            `json:"Scope"`
}

// Start runs an engine until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{containers: map[string]*Container{}, networks: map[string]*thing{}, volumes: map[string]*thing{}, images: map[string]bool{}}
	dir, err := os.MkdirTemp("", "engine") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.Close()
		_ = os.RemoveAll(dir)
	})
	s.Host = "unix://" + filepath.Join(dir, "s")
	return s
}

// Dial connects to the engine, unless it is cut off.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	if cut {
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(s.Host, "unix://"))
}

// Cut makes the engine unreachable to Dial, and ends it.
func (s *Server) Cut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
}

// Fail answers 500 to the calls, "METHOD path", that which returns true for; nil ends it.
func (s *Server) Fail(which func(call string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = which
}

// Lose breaks the connection instead of answering the calls that which returns true for, after they took effect; nil ends it.
func (s *Server) Lose(which func(call string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = which
}

// Calls lists the calls that change something.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Containers lists the containers by name.
func (s *Server) Containers() (all []Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names lists the networks and volumes.
func (s *Server) Names() (networks, volumes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.networks {
		networks = append(networks, name)
	}
	for name := range s.volumes {
		volumes = append(volumes, name)
	}
	slices.Sort(networks)
	slices.Sort(volumes)
	return networks, volumes
}

// Change lets something happen to a container; false from change removes it, as a person would.
func (s *Server) Change(name string, change func(*Container) (stays bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.container(name); c != nil && !change(c) {
		delete(s.containers, c.ID)
	}
}

// Prune removes the volumes that no container uses, as a person would.
func (s *Server) Prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.volumes {
		if !s.mounted(name) {
			delete(s.volumes, name)
		}
	}
}

// Reboot stops everything; what is to be started again is.
func (s *Server) Reboot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.containers {
		if c.State == running && c.HostConfig.RestartPolicy.Name != container.RestartPolicyUnlessStopped {
			c.State, c.ExitCode = exited, 137
		}
	}
}

const (
	created = "created"
	running = "running"
	exited  = "exited"
)

// ServeHTTP answers a call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1.") {
		_, path, _ = strings.Cut(path[1:], "/")
		path = "/" + path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := r.Method + " " + path
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.calls = append(s.calls, call)
	}
	if s.fail != nil && s.fail(call) {
		answer(w, http.StatusInternalServerError, message("the engine fails"))
		return
	}
	if s.lose != nil && s.lose(call) {
		w = httptest.NewRecorder()
		defer panic(http.ErrAbortHandler)
	}
	switch kind, rest, _ := strings.Cut(path[1:], "/"); kind {
	case "_ping":
		w.Header().Set("Api-Version", "1.45")
		_, _ = io.WriteString(w, "OK")
	case "version":
		answer(w, http.StatusOK, map[string]string{"ApiVersion": "1.45", "Version": "double"})
	case "images":
		s.image(w, r, rest)
	case "volumes":
		s.volume(w, r, rest)
	case "networks":
		s.network(w, r, rest)
	case "containers":
		s.serveContainers(w, r, rest)
	default:
		answer(w, http.StatusNotFound, message("page not found"))
	}
}

func message(format string, args ...any) map[string]string {
	return map[string]string{"message": fmt.Sprintf(format, args...)}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

// image knows every image but those that begin with "unpullable", once it was fetched.
func (s *Server) image(w http.ResponseWriter, r *http.Request, rest string) {
	if rest == "create" {
		name := r.URL.Query().Get("fromImage") + ":" + r.URL.Query().Get("tag")
		if strings.Contains(name, "unpullable") {
			answer(w, http.StatusNotFound, message("manifest for %s not found", name))
			return
		}
		if strings.HasPrefix(name, Private) && !signedIn(r) {
			answer(w, http.StatusInternalServerError, message("unauthorized: authentication required"))
			return
		}
		s.images[short(name)] = true
		answer(w, http.StatusOK, map[string]string{"status": "Download complete"})
		return
	}
	name := strings.TrimSuffix(rest, "/json")
	if !s.images[short(name)] {
		answer(w, http.StatusNotFound, message("No such image: %s", name))
		return
	}
	answer(w, http.StatusOK, map[string]any{"Id": "sha256:" + name})
}

// Private is a registry that User may fetch from by Password.
const (
	Private  = "registry.example.org/"
	User     = "harbour"
	Password = "a password of the double"
)

func signedIn(r *http.Request) bool {
	auth, err := authconfig.Decode(r.Header.Get("X-Registry-Auth"))
	return err == nil && auth.Username == User && auth.Password == Password
}

// short is an image without the registry that is meant when none is named.
func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/")
}

// labelled reports whether the labels are those that a listing asks for.
func labelled(r *http.Request, labels map[string]string) bool {
	var filters struct {
		Label map[string]bool `json:"label"`
	}
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	for want := range filters.Label {
		name, value, valued := strings.Cut(want, "=")
		if have, ok := labels[name]; !ok || valued && have != value {
			return false
		}
	}
	return true
}

func (s *Server) mounted(volume string) bool {
	for _, c := range s.containers {
		for _, m := range c.HostConfig.Mounts {
			if m.Source == volume {
				return true
			}
		}
	}
	return false
}

func (s *Server) volume(w http.ResponseWriter, r *http.Request, rest string) {
	switch {
	case r.Method == http.MethodPost:
		var in thing
		_ = json.NewDecoder(r.Body).Decode(&in)
		if s.volumes[in.Name] == nil { // an existing one is answered as it is
			s.volumes[in.Name] = &thing{Name: in.Name, Driver: "local", Labels: in.Labels, Scope: "local"}
		}
		answer(w, http.StatusCreated, s.volumes[in.Name])
	case r.Method == http.MethodDelete && s.volumes[rest] == nil:
		answer(w, http.StatusNotFound, message("get %s: no such volume", rest))
	case r.Method == http.MethodDelete && s.mounted(rest):
		answer(w, http.StatusConflict, message("remove %s: volume is in use", rest))
	case r.Method == http.MethodDelete:
		delete(s.volumes, rest)
		w.WriteHeader(http.StatusNoContent)
	default:
		list := []*thing{}
		for _, v := range s.volumes {
			if labelled(r, v.Labels) {
				list = append(list, v)
			}
		}
		answer(w, http.StatusOK, map[string]any{"Volumes": list})
	}
}

func (s *Server) network(w http.ResponseWriter, r *http.Request, rest string) {
	rest, action, _ := strings.Cut(rest, "/")
	switch {
	case rest == "create":
		var in thing
		_ = json.NewDecoder(r.Body).Decode(&in)
		if s.networks[in.Name] != nil {
			answer(w, http.StatusConflict, message("network with name %s already exists", in.Name))
			return
		}
		s.networks[in.Name] = &thing{ID: in.Name, Name: in.Name, Driver: in.Driver, Labels: in.Labels, Scope: "local"}
		answer(w, http.StatusCreated, map[string]string{"Id": in.Name})
	case rest == "":
		list := []*thing{}
		for _, n := range s.networks {
			if labelled(r, n.Labels) {
				list = append(list, n)
			}
		}
		answer(w, http.StatusOK, list)
	case s.networks[rest] == nil:
		answer(w, http.StatusNotFound, message("network %s not found", rest))
	case r.Method == http.MethodDelete:
		for _, c := range s.containers {
			if _, in := c.Networks[rest]; in {
				answer(w, http.StatusForbidden, message("error while removing network: network %s has active endpoints", rest))
				return
			}
		}
		delete(s.networks, rest)
		w.WriteHeader(http.StatusNoContent)
	case action == "connect":
		var in struct {
			Container      string
			EndpointConfig network.EndpointSettings
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		c := s.container(in.Container)
		if c == nil {
			answer(w, http.StatusNotFound, message("No such container: %s", in.Container))
			return
		}
		if _, there := c.Networks[rest]; there {
			answer(w, http.StatusForbidden, message("endpoint with name %s already exists in network %s", c.Name, rest))
			return
		}
		c.Networks[rest] = in.EndpointConfig
		w.WriteHeader(http.StatusOK)
	default:
		answer(w, http.StatusOK, s.networks[rest])
	}
}

func (s *Server) container(name string) *Container {
	for _, c := range s.containers {
		if c.ID == name || c.Name == name {
			return c
		}
	}
	return nil
}

func (s *Server) serveContainers(w http.ResponseWriter, r *http.Request, rest string) {
	switch rest {
	case "json":
		list := []any{}
		for _, c := range s.containers {
			if labelled(r, c.Labels) {
				list = append(list, map[string]any{
					"Id": c.ID, "Names": []string{"/" + c.Name}, "Image": c.Image, "State": c.State, "Labels": c.Labels,
				})
			}
		}
		answer(w, http.StatusOK, list)
		return
	case "create":
		s.create(w, r)
		return
	}
	name, action, _ := strings.Cut(rest, "/")
	c := s.container(name)
	if c == nil {
		answer(w, http.StatusNotFound, message("No such container: %s", name))
		return
	}
	switch {
	case action == "start":
		c.State, c.ExitCode = running, 0
		w.WriteHeader(http.StatusNoContent)
	case action == "stop":
		c.State = exited
		w.WriteHeader(http.StatusNoContent)
	case action == "archive":
		reader := tar.NewReader(r.Body)
		for {
			header, err := reader.Next()
			if err != nil {
				break
			}
			text, _ := io.ReadAll(reader)
			c.Files["/"+header.Name] = string(text)
		}
		w.WriteHeader(http.StatusOK)
	case action == "json":
		answer(w, http.StatusOK, s.inspect(c))
	case action == "logs":
		wrote(w, r, c)
	case r.Method == http.MethodDelete:
		delete(s.containers, c.ID)
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusNotFound, message("page not found"))
	}
}

// wrote answers with what a container wrote from a time on, in the frames of the API.
func wrote(w http.ResponseWriter, r *http.Request, c *Container) {
	seconds, nanos, _ := strings.Cut(r.URL.Query().Get("since"), ".")
	whole, _ := strconv.ParseInt(seconds, 10, 64)
	part, _ := strconv.ParseInt(nanos, 10, 64)
	w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
	for _, line := range c.Wrote {
		if line.At.Before(time.Unix(whole, part)) {
			continue
		}
		text := line.At.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + " " + line.Text + "\n"
		header := [8]byte{0: 1}
		if line.Stderr {
			header[0] = 2
		}
		binary.BigEndian.PutUint32(header[4:], uint32(len(text))) //nolint:gosec // it is short
		_, _ = w.Write(append(header[:], text...))
	}
}

// create makes a container, of an image that is there and in networks that are there.
func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		container.Config
		HostConfig       container.HostConfig
		NetworkingConfig network.NetworkingConfig
	}
	name := r.URL.Query().Get("name")
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		answer(w, http.StatusBadRequest, message("invalid JSON: %v", err))
		return
	}
	switch mode := string(in.HostConfig.NetworkMode); {
	case s.container(name) != nil:
		answer(w, http.StatusConflict, message("the container name %q is already in use", "/"+name))
		return
	case !s.images[short(in.Image)]:
		answer(w, http.StatusNotFound, message("No such image: %s", in.Image))
		return
	case len(in.NetworkingConfig.EndpointsConfig) > 1: // as the engines of Docker before 25
		answer(w, http.StatusBadRequest, message("Container cannot be connected to network endpoints"))
		return
	case mode != "" && mode != "host" && mode != "none" && mode != "bridge" && !strings.HasPrefix(mode, "container:") && s.networks[mode] == nil:
		answer(w, http.StatusNotFound, message("network %s not found", mode))
		return
	}
	s.made++
	c := &Container{
		ID: fmt.Sprintf("%064x", s.made), Name: name, State: created, Files: map[string]string{},
		Config: in.Config, HostConfig: in.HostConfig, Networks: map[string]network.EndpointSettings{},
	}
	for name, settings := range in.NetworkingConfig.EndpointsConfig {
		c.Networks[name] = *settings
	}
	s.containers[c.ID] = c
	answer(w, http.StatusCreated, map[string]any{"Id": c.ID, "Warnings": []string{}})
}

// inspect describes a container. One with a check of its health never becomes healthy.
func (s *Server) inspect(c *Container) any {
	state := map[string]any{
		"Status": c.State, "Running": c.State == running, "ExitCode": c.ExitCode, "StartedAt": "0001-01-01T00:00:00Z",
	}
	if c.State != created {
		state["StartedAt"] = time.Now().UTC().Format(time.RFC3339Nano)
	}
	if c.Healthcheck != nil && !slices.Equal(c.Healthcheck.Test, []string{"NONE"}) {
		state["Health"] = map[string]any{"Status": "starting"}
	}
	return map[string]any{
		"Id": c.ID, "Name": "/" + c.Name, "State": state, "RestartCount": c.Restarts, "Config": c.Config, "HostConfig": c.HostConfig,
		"NetworkSettings": map[string]any{"Networks": c.Networks},
	}
}
