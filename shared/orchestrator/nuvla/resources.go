package nuvla

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/nuvla"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// States of a deployment that we decide by.
const (
	created  = "CREATED"
	started  = "STARTED"
	stopping = "STOPPING"
	stopped  = "STOPPED"
	failed   = "ERROR"
)

// Subtypes of modules.
const (
	subtypeCompose    = "application"
	subtypeKubernetes = "application_kubernetes"
)

// edge is a NuvlaEdge that a target names, or a service of one.
type edge struct {
	name    string
	group   string // of its services
	service string // the only one, if the target names it
	status  string // id of its nuvlabox-status; empty = it has none
	offline string // why it cannot be told anything; empty = it can

	containers []container // that it reports; nil with told = none
	reported   time.Time
	told       bool // it reports containers
}

// container is one that an edge reports.
type container struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Status string `json:"container-status"` // in older and in Kubernetes' reports
}

func (c container) runs() bool { return c.State == "running" || c.State == "" && c.Status == "running" }

type nuvlabox struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Online  *bool  `json:"online"`
	Group   string `json:"infrastructure-service-group"`
	Status  string `json:"nuvlabox-status"`
	Updated string `json:"updated"`
}

// edge finds the NuvlaEdge that a cluster of a target is: by its id, by that of a service of it, or by its name. A view
// asks once.
func (n *Nuvla) edge(ctx context.Context, cluster string) (*edge, error) {
	if n.seen == nil {
		return n.lookup(ctx, cluster)
	}
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	have, ok := n.seen.edges[cluster]
	if !ok {
		have.edge, have.err = n.lookup(ctx, cluster)
		if have.err == nil && have.edge.offline == "" {
			have.err = n.report(ctx, have.edge)
		}
		if ctx.Err() == nil {
			n.seen.edges[cluster] = have
		}
	}
	return have.edge, have.err
}

func (n *Nuvla) lookup(ctx context.Context, cluster string) (*edge, error) {
	kind, id, _ := strings.Cut(cluster, "/")
	var box nuvlabox
	switch {
	case kind == "nuvlabox" && uuid.Validate(id) == nil:
		if err := n.client.Get(ctx, cluster, &box); nuvla.IsStatus(err, http.StatusNotFound) {
			return nil, unknown(cluster)
		} else if err != nil {
			return nil, err
		}
	case kind == "infrastructure-service" && uuid.Validate(id) == nil:
		return n.service(ctx, cluster)
	default:
		filter, err := nuvla.Equal("name", cluster)
		if err != nil {
			return nil, unknown(cluster)
		}
		boxes, err := nuvla.List[nuvlabox](ctx, n.client, "nuvlabox", nuvla.Query{Filter: filter, Most: 2})
		switch {
		case err != nil:
			return nil, err
		case len(boxes) == 0:
			return nil, unknown(cluster)
		case len(boxes) > 1:
			return nil, orchestrator.Refuse("Ambiguous", "Nuvla has several NuvlaEdges named %s: name one by its id, %s",
				cluster, boxes[0].ID)
		}
		box = boxes[0]
	}
	return box.edge(cluster), nil
}

func (b *nuvlabox) edge(cluster string) *edge {
	e := &edge{name: b.Name, group: b.Group, status: b.Status}
	label := cluster
	if b.Name != "" && b.Name != cluster {
		label = fmt.Sprintf("%s (%s)", cluster, b.Name)
	}
	switch {
	case b.State != "COMMISSIONED":
		e.offline = fmt.Sprintf("NuvlaEdge %s is %s", label, b.State)
	case b.Online != nil && !*b.Online:
		e.offline = fmt.Sprintf("NuvlaEdge %s is offline", label)
	}
	return e
}

// service is the edge of an infrastructure service; a service of no NuvlaEdge is always there.
func (n *Nuvla) service(ctx context.Context, id string) (*edge, error) {
	var service struct {
		Name   string `json:"name"`
		Parent string `json:"parent"`
	}
	if err := n.client.Get(ctx, id, &service); nuvla.IsStatus(err, http.StatusNotFound) {
		return nil, unknown(id)
	} else if err != nil {
		return nil, err
	}
	e := &edge{name: service.Name}
	filter, err := nuvla.Equal("infrastructure-service-group", service.Parent)
	if err == nil && service.Parent != "" {
		boxes, err := nuvla.List[nuvlabox](ctx, n.client, "nuvlabox", nuvla.Query{Filter: filter, Most: 1})
		if err != nil {
			return nil, err
		}
		if len(boxes) > 0 {
			e = boxes[0].edge(id)
		}
	}
	e.service = id
	return e, nil
}

func unknown(cluster string) error {
	return orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "Nuvla has no NuvlaEdge %s", cluster)
}

// report reads what an edge reports of its containers.
func (n *Nuvla) report(ctx context.Context, e *edge) error {
	if e.status == "" {
		return nil
	}
	var status struct {
		Resources struct {
			Containers []container `json:"container-stats"`
		} `json:"resources"`
		Reported time.Time `json:"last-telemetry"`
	}
	err := n.client.Get(ctx, e.status, &status)
	if nuvla.IsStatus(err, http.StatusNotFound) {
		return nil
	}
	e.containers, e.reported = status.Resources.Containers, status.Reported
	e.told = e.containers != nil
	return err
}

// credential finds what a deployment of the subtype is run with at the edge.
func (n *Nuvla) credential(ctx context.Context, e *edge, subtype string) (string, error) {
	engine := "swarm" // what Nuvla calls the service of a Docker host
	if subtype == subtypeKubernetes {
		engine = "kubernetes"
	}
	service := e.service
	if service == "" {
		parent, err := nuvla.Equal("parent", e.group)
		if err != nil {
			return "", err
		}
		if service, err = n.first(ctx, "infrastructure-service", parent+" and subtype='"+engine+"'"); err != nil {
			return "", err
		}
	}
	if service == "" {
		return "", orchestrator.Refuse("NoEngine", "NuvlaEdge %s has no service of type %s", e.name, engine)
	}
	parent, err := nuvla.Equal("parent", service)
	if err != nil {
		return "", err
	}
	credential, err := n.first(ctx, "credential", parent)
	if err == nil && credential == "" {
		err = orchestrator.Refuse("NoCredential", "Nuvla shows us no credential of %s at NuvlaEdge %s", service, e.name)
	}
	return credential, err
}

// first returns the id of the oldest resource that the filter matches.
func (n *Nuvla) first(ctx context.Context, kind, filter string) (string, error) {
	found, err := nuvla.List[struct {
		ID string `json:"id"`
	}](ctx, n.client, kind, nuvla.Query{Filter: filter, Order: "created:asc", Select: "id", Most: 1})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].ID, nil
}

// module is one of ours.
type module struct {
	ID       string   `json:"id"`
	Path     string   `json:"path"`
	Subtype  string   `json:"subtype"`
	Tags     []string `json:"tags"`
	Versions []struct {
		Commit string `json:"commit"`
	} `json:"versions"`
}

// deployment is one of ours.
type deployment struct {
	ID      string   `json:"id"`
	State   string   `json:"state"`
	Tags    []string `json:"tags"`
	Parent  string   `json:"parent"`
	Created string   `json:"created"`
	Updated string   `json:"updated"`
	Module  struct {
		Href    string `json:"href"`
		Content struct {
			Text string `json:"docker-compose"`
		} `json:"content"`
	} `json:"module"`
}

// busy reports whether the edge is at work on it, so that it cannot be told anything but to stop.
func (d *deployment) busy() bool {
	return !slices.Contains([]string{created, started, stopped, failed}, d.State)
}

// base is a module without its version.
func base(href string) string {
	id, _, _ := strings.Cut(href, "_")
	return id
}

// copied is what there is of a copy.
type copied struct {
	module     *module     // nil = nothing
	deployment *deployment // nil = none yet
	others     []deployment

	ours    bool // the record is complete
	record  orchestrator.Record
	cluster string
	runs    []run
	leaving bool
	asked   bool // content was written, and whether the edge was told of it is not known
}

func (c *copied) all() []deployment {
	if c.deployment == nil {
		return c.others
	}
	return append([]deployment{*c.deployment}, c.others...)
}

// pathOf is where the module of the job's copy is. It holds the place too: a copy elsewhere is another one.
func (n *Nuvla) pathOf(j *job.Job) string {
	return n.project + "/" + orchestrator.ResourceName(j.Component, orchestrator.ResourceID(j))
}

// find reads the copy that the job is about.
func (n *Nuvla) find(ctx context.Context, j *job.Job) (*copied, error) {
	path := n.pathOf(j)
	if n.seen != nil {
		m := n.seen.modules[path]
		if m == nil {
			return &copied{}, nil
		}
		return assemble(m, n.seen.deployments[m.ID]), nil
	}
	filter, err := nuvla.Equal("path", path)
	if err != nil {
		return nil, err
	}
	found, err := nuvla.List[*module](ctx, n.client, "module", nuvla.Query{Filter: filter, Most: 1})
	if err != nil || len(found) == 0 {
		return &copied{}, err
	}
	deployments, err := n.deployments(ctx, found[0].ID)
	return assemble(found[0], deployments), err
}

func (n *Nuvla) deployments(ctx context.Context, module string) ([]deployment, error) {
	filter, err := nuvla.Prefix("module/href", module)
	if err != nil {
		return nil, err
	}
	return nuvla.List[deployment](ctx, n.client, "deployment", nuvla.Query{Filter: filter})
}

// modules lists all of ours.
func (n *Nuvla) modules(ctx context.Context, found func(*module)) error {
	return nuvla.Search(ctx, n.client, "module", nuvla.Query{
		Filter: "tags='" + tagManager + "'", Select: "id,path,subtype,tags,versions",
	}, func(m *module) error { found(m); return nil })
}

// ours lists all deployments of ours, without what they contain.
func (n *Nuvla) ours(ctx context.Context, found func(deployment)) error {
	return nuvla.Search(ctx, n.client, "deployment", nuvla.Query{
		Filter: "tags='" + tagManager + "'", Select: "id,state,tags,parent,created,updated,module/href",
	}, func(d deployment) error { found(d); return nil })
}

// assemble makes a copy of what was read. Until its deployment has a record, that of the module counts.
func assemble(m *module, deployments []deployment) *copied {
	c := &copied{module: m}
	c.deployment, c.others = choose(deployments)
	c.read(m.Tags)
	if c.deployment != nil && slices.Contains(c.deployment.Tags, tagManager) {
		c.read(c.deployment.Tags)
	} else {
		c.record.Content, c.record.Remedy = "", "" // it is not carried out yet
	}
	return c
}

// choose tells the deployment that is the copy from others that calls at the same time have made: one that was started,
// or else the oldest.
func choose(all []deployment) (*deployment, []deployment) {
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b deployment) int {
		if fresh := a.State == created; fresh != (b.State == created) {
			if fresh {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Created+a.ID, b.Created+b.ID)
	})
	return &all[0], all[1:]
}

// keepModule makes the module, or a further version if its content differs, and returns the version.
func (n *Nuvla) keepModule(ctx context.Context, j *job.Job, c *copied, next *content) (string, error) {
	commit := orchestrator.Digest([]byte(next.text))
	body := map[string]any{
		"name": j.Component + " of " + j.ApplicationName, "description": "deployed by Littoral",
		"tags": tagsOf(j.Cluster, orchestrator.RecordOf(j), nil), "subtype": next.subtype,
		"content": map[string]any{"author": "littoral", "commit": commit, "docker-compose": next.text},
	}
	if c.module == nil {
		path := n.pathOf(j)
		if err := n.keepProject(ctx); err != nil {
			return "", err
		}
		body["path"], body["parent-path"] = path, n.project
		id, err := n.client.Create(ctx, "module", body)
		return id + "_0", err
	}
	last := len(c.module.Versions) - 1
	if last >= 0 && c.module.Versions[last].Commit == commit {
		return fmt.Sprintf("%s_%d", c.module.ID, last), nil
	}
	return fmt.Sprintf("%s_%d", c.module.ID, last+1), n.client.Edit(ctx, c.module.ID, body)
}

// keepProject makes the project that holds our modules, and those above it.
func (n *Nuvla) keepProject(ctx context.Context) error {
	parts := strings.Split(n.project, "/")
	for i := range parts {
		path := strings.Join(parts[:i+1], "/")
		filter, err := nuvla.Equal("path", path)
		if err != nil {
			return err
		}
		id, err := n.first(ctx, "module", filter)
		if err != nil {
			return err
		}
		if id != "" {
			continue
		}
		_, err = n.client.Create(ctx, "module", map[string]any{
			"name": parts[i], "path": path, "parent-path": strings.Join(parts[:i], "/"), "subtype": "project",
		})
		if err != nil && !nuvla.IsStatus(err, http.StatusConflict) {
			return err
		}
	}
	return nil
}

// Tags of modules and deployments.
const (
	tagManager = orchestrator.LabelManager + "=" + orchestrator.Manager
	tagAsked   = "littoral.dev/asked"
	tagLeaving = "littoral.dev/leaving"

	keyJob       = orchestrator.LabelJob + "="
	keyCluster   = "littoral.dev/cluster="
	keyNamespace = "littoral.dev/namespace="
	keyEpoch     = "littoral.dev/epoch="
	keyContent   = "littoral.dev/content="
	keyRemedy    = "littoral.dev/remedy="
	keyRuns      = "littoral.dev/runs="
	keyComponent = label.MarkComponent + "="
)

// run is something that a copy runs, with its number of pods or containers; -1 = it has none of its own.
type run struct {
	name string // "Kind name", or the name of a service
	pods int64
}

// tagsOf writes a record as tags.
func tagsOf(cluster string, r orchestrator.Record, runs []run) []string {
	tags := []string{
		tagManager, keyJob + r.Subject.String(), keyComponent + r.Component, keyCluster + cluster, keyNamespace + r.Namespace,
		keyEpoch + strconv.FormatInt(r.Epoch, 10), keyContent + r.Content, keyRemedy + r.Remedy,
	}
	for _, one := range runs {
		tags = append(tags, keyRuns+strconv.FormatInt(one.pods, 10)+" "+one.name)
	}
	return tags
}

// read reads a record from tags.
func (c *copied) read(tags []string) {
	c.runs, c.leaving, c.asked = nil, slices.Contains(tags, tagLeaving), slices.Contains(tags, tagAsked)
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		switch key + "=" {
		case keyJob:
			c.record.Subject, _ = uuid.Parse(value)
		case keyComponent:
			c.record.Component = value
		case keyCluster:
			c.cluster = value
		case keyNamespace:
			c.record.Namespace = value
		case keyEpoch:
			c.record.Epoch, _ = strconv.ParseInt(value, 10, 64)
		case keyContent:
			c.record.Content = value
		case keyRemedy:
			c.record.Remedy = value
		case keyRuns:
			pods, name, _ := strings.Cut(value, " ")
			n, _ := strconv.ParseInt(pods, 10, 64)
			c.runs = append(c.runs, run{name, n})
		}
	}
	c.ours = c.record.Subject != uuid.Nil && c.cluster != ""
}
