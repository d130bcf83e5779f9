package nuvla

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
)

// Kinds of what containers run on at an edge.
const (
	Docker     = "swarm" // what Nuvla calls the service of a Docker host
	Kubernetes = "kubernetes"
)

// edge is a NuvlaEdge with what runs on it.
type edge struct {
	group    string
	offline  bool
	projects map[string]*project // by uuid of the deployment
	hold     bool                // it takes no jobs
}

// project is what a deployment has made at an edge.
type project struct {
	subtype string
	objects map[string]*object // by "Kind/name", or by the name of a service
}

// object is an object of Kubernetes or a service of a compose file.
type object struct {
	doc     map[string]any
	running int // pods or containers
}

// AddEdge adds a NuvlaEdge that is online, with a service and a credential for each kind of engine, and returns its id.
func (s *Server) AddEdge(name string, engines ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := s.put("infrastructure-service-group", resource{"name": name})
	status := s.put("nuvlabox-status", resource{"status": "OPERATIONAL", "online": true, "hostname": name})
	id := s.put("nuvlabox", resource{
		"name": name, "version": 2.0, "owner": "user/littoral", "state": "COMMISSIONED", "refresh-interval": 60.0,
		"online": true, "infrastructure-service-group": group, "nuvlabox-status": status,
	})
	for _, engine := range engines {
		service := s.put("infrastructure-service", resource{
			"name": name + " " + engine, "parent": group, "subtype": engine, "endpoint": "https://" + name + ".example.org",
		})
		s.put("credential", resource{
			"name": name + " " + engine, "parent": service, "subtype": "infrastructure-service-" + engine,
		})
	}
	s.edges[id] = &edge{group: group, projects: map[string]*project{}}
	return id
}

func (s *Server) edge(name string) (string, *edge) {
	for id, e := range s.edges {
		if id == name || s.resources[id].text("name") == name {
			return id, e
		}
	}
	panic("no edge " + name)
}

// Offline cuts an edge off, or brings it back.
func (s *Server) Offline(name string, offline bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, e := s.edge(name)
	e.offline = offline
	s.resources[id]["online"] = !offline
	s.resources[s.resources[id].text("nuvlabox-status")]["online"] = !offline
}

// Hold has an edge take no jobs, though it is online, until it is let go: a deployment stays STARTING.
func (s *Server) Hold(name string, hold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e := s.edge(name)
	e.hold = hold
}

// Object is what the tests see of what runs at an edge.
type Object struct {
	Deployment string // its uuid
	Name       string // "Kind/name", or that of a service
	Doc        map[string]any
	Running    int
}

// Running lists what runs at an edge.
func (s *Server) Running(name string) (all []Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, e := s.edge(name)
	for _, id := range slices.Sorted(maps.Keys(e.projects)) {
		for _, name := range slices.Sorted(maps.Keys(e.projects[id].objects)) {
			o := e.projects[id].objects[name]
			all = append(all, Object{id, name, o.doc, o.running})
		}
	}
	return all
}

// Stop has a deployment stopped, as a person does in Nuvla's own pages, if its state allows it.
func (s *Server) Stop(deployment string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.resources[deployment]; d != nil {
		_, _, _ = s.act(httptest.NewRecorder(), d, "stop", nil)
	}
}

// Work lets a step of time pass: a job that was queued runs, and one that ran ends; edges report what runs on them.
func (s *Server) Work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Clone(s.order) {
		if strings.HasPrefix(id, "job/") {
			s.work(s.resources[id])
		}
	}
	for id, e := range s.edges {
		if !e.offline {
			s.report(id, e)
		}
	}
}

// Go has time pass in steps of the length until the channel is closed.
func (s *Server) Go(step time.Duration, end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-time.After(step):
			s.Work()
		}
	}
}

func (s *Server) work(job resource) {
	target, _ := job["target-resource"].(map[string]any)
	id, _ := target["href"].(string)
	d := s.resources[id]
	e := s.edges[d.text("nuvlabox")]
	switch {
	case job.text("state") != "QUEUED" && job.text("state") != "RUNNING":
		return
	case d == nil:
		job["state"], job["status-message"] = "CANCELED", id+" not found"
		return
	case e != nil && (e.offline || e.hold):
		return // it waits for the edge to fetch it
	case job.text("state") == "QUEUED":
		job["state"], job["progress"], job["started"] = "RUNNING", 10.0, s.now()
		if d.text("state") == "PENDING" {
			d["state"] = "STARTING"
		}
		return
	}
	var err error
	uuid := strings.TrimPrefix(id, "deployment/")
	state := map[string]string{
		"start_deployment": "STARTED", "update_deployment": "STARTED", "stop_deployment": "STOPPED",
	}[job.text("action")]
	switch {
	case e == nil:
		err = errors.New("no NuvlaEdge")
	case state == "STOPPED":
		delete(e.projects, uuid)
	case state == "STARTED" && d.text("state") != "STARTING" && d.text("state") != "UPDATING":
		job["state"], job["status-message"] = "CANCELED", "superseded" // it was stopped meanwhile
		return
	case state != "":
		err = e.deploy(uuid, d)
	}
	job["progress"], job["duration"] = 100.0, 1.0
	if err != nil {
		job["state"], job["status-message"], job["return-code"] = "FAILED", err.Error(), 1.0
		d["state"], d["updated"] = "ERROR", s.now()
		return
	}
	job["state"], job["return-code"] = "SUCCESS", 0.0
	if state != "" {
		d["state"], d["updated"] = state, s.now()
	}
}

// deploy does what docker compose up or kubectl apply do at an edge. The latter takes nothing away.
func (e *edge) deploy(id string, d resource) error {
	module, _ := d["module"].(map[string]any)
	content, _ := module["content"].(map[string]any)
	text, _ := content["docker-compose"].(string)
	if strings.Contains(text, "unpullable") {
		return errors.New("manifest for unpullable not found: manifest unknown")
	}
	p := e.projects[id]
	subtype, _ := module["subtype"].(string)
	if p == nil {
		p = &project{objects: map[string]*object{}}
	}
	p.subtype = subtype
	next := map[string]*object{}
	decoder := yaml.NewDecoder(bytes.NewBufferString(text))
	for {
		var doc map[string]any
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("yaml: %w", err)
		}
		if subtype == "application" {
			services, _ := doc["services"].(map[string]any)
			for name, service := range services {
				made, _ := service.(map[string]any)
				next[name] = &object{doc: made}
			}
			continue
		}
		if kind, ok := doc["kind"].(string); ok {
			meta, _ := doc["metadata"].(map[string]any)
			next[kind+"/"+fmt.Sprint(meta["name"])] = &object{doc: doc}
		}
	}
	if len(next) == 0 {
		return errors.New("nothing to deploy")
	}
	if subtype == "application" { // --remove-orphans
		for name, o := range p.objects {
			if next[name] == nil {
				delete(p.objects, name)
			} else {
				next[name].running = o.running
			}
		}
	}
	for name, o := range next {
		if before := p.objects[name]; before != nil {
			o.running = before.running
		}
		p.objects[name] = o
	}
	e.projects[id] = p
	p.run()
	return nil
}

// run sets how many pods or containers of each object run. Those whose image begins with "slow" never do; a Deployment
// keeps the pods that it had before, and a service of a compose file does not.
func (p *project) run() {
	for _, o := range p.objects {
		n, image := o.wanted()
		switch {
		case !strings.HasPrefix(image, "slow"):
			o.running = n
		case p.subtype == "application":
			o.running = 0
		}
	}
}

func (o *object) wanted() (n int, image string) {
	n = 1
	if spec, ok := o.doc["spec"].(map[string]any); ok {
		if replicas, ok := spec["replicas"].(int); ok {
			n = replicas
		}
		for _, part := range []string{"template", "spec"} {
			spec, _ = spec[part].(map[string]any)
		}
		containers, _ := spec["containers"].([]any)
		if len(containers) > 0 {
			first, _ := containers[0].(map[string]any)
			image, _ = first["image"].(string)
		}
		return n, image
	}
	if deploy, ok := o.doc["deploy"].(map[string]any); ok {
		if replicas, ok := deploy["replicas"].(int); ok {
			n = replicas
		}
	}
	image, _ = o.doc["image"].(string)
	return n, image
}

// report writes what an edge tells: the parameters of its deployments, and its containers.
func (s *Server) report(id string, e *edge) {
	var containers []any
	for _, of := range slices.Sorted(maps.Keys(e.projects)) {
		p := e.projects[of]
		deployment := "deployment/" + of
		if s.resources[deployment] == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(p.objects)) {
			o := p.objects[name]
			n, image := o.wanted()
			if p.subtype == "application" {
				s.parameter(deployment, name, "image", image)
				s.parameter(deployment, name, "service-id", fmt.Sprintf("%x", name))
				s.parameter(deployment, name, "node-id", name)
				for i := range n {
					state := "running"
					if i >= o.running {
						state = "restarting"
					}
					containers = append(containers, map[string]any{
						"id": uuid.NewString()[:12], "name": fmt.Sprintf("%s-%s-%d", of, name, i+1), "state": state, "image": image,
					})
				}
				continue
			}
			if kind, called, _ := strings.Cut(name, "/"); kind == "Deployment" {
				s.parameter(deployment, kind+"."+called, "replicas.desired", strconv.Itoa(n))
				s.parameter(deployment, kind+"."+called, "replicas.running", strconv.Itoa(o.running))
			}
		}
	}
	status := s.resources[s.resources[id].text("nuvlabox-status")]
	status["resources"] = map[string]any{"container-stats": containers}
	status["last-telemetry"] = s.now()
}

func (s *Server) parameter(deployment, node, name, value string) {
	name = node + "." + name
	for _, p := range s.resources {
		if p.text("parent") == deployment && p.text("name") == name {
			p["value"] = value
			return
		}
	}
	s.put("deployment-parameter", resource{"parent": deployment, "name": name, "node-id": node, "value": value})
}
