package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// Labels of records. Containers have those of the job, the epoch and the project as well.
const (
	labelNumber    = "littoral.dev/record"
	labelComponent = "littoral.dev/component"
	labelNamespace = "littoral.dev/namespace"
	labelEpoch     = "littoral.dev/epoch"
	labelContent   = "littoral.dev/content"
	labelRemedy    = "littoral.dev/remedy"
	labelCluster   = "littoral.dev/cluster"
	labelLeaving   = "littoral.dev/leaving"
	labelText      = "littoral.dev/compose"
)

// copied is what there is of a copy.
type copied struct {
	subject    uuid.UUID
	number     int64 // of its newest record; 0 = it has none
	record     orchestrator.Record
	cluster    string
	text       string // the compose file
	leaving    bool
	volumes    []string // those of all its records
	containers []container.Summary
}

func (c *copied) exists() bool { return c.number > 0 || len(c.containers) > 0 }

// project is the name of the compose project. Names of containers begin with it.
func (c *copied) project() string {
	return orchestrator.ResourceName(c.record.Component, c.subject.String())
}

func ours() client.Filters {
	return client.Filters{}.Add("label", orchestrator.LabelManager+"="+orchestrator.Manager)
}

// find reads the copy of a job.
func (e *Engine) find(ctx context.Context, subject uuid.UUID) (*copied, error) {
	found, err := e.search(ctx, ours().Add("label", orchestrator.LabelJob+"="+subject.String()))
	if err != nil {
		return nil, err
	}
	if c := found[subject]; c != nil {
		return c, nil
	}
	return &copied{subject: subject}, nil
}

// all reads every copy.
func (e *Engine) all(ctx context.Context) (map[uuid.UUID]*copied, error) {
	return e.search(ctx, ours())
}

func (e *Engine) search(ctx context.Context, filters client.Filters) (map[uuid.UUID]*copied, error) {
	found := map[uuid.UUID]*copied{}
	of := func(labels map[string]string) *copied {
		subject, err := uuid.Parse(labels[orchestrator.LabelJob])
		if err != nil {
			return nil
		}
		if found[subject] == nil {
			found[subject] = &copied{subject: subject}
		}
		return found[subject]
	}
	containers, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, err
	}
	for _, one := range containers.Items {
		if c := of(one.Labels); c != nil {
			c.containers = append(c.containers, one)
			if c.number == 0 { // until a record says more
				c.read(one.Labels)
				c.record.Content, c.record.Remedy, c.text = "", "", ""
			}
		}
	}
	volumes, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, err
	}
	for _, v := range volumes.Items {
		number := numberOf(v.Labels)
		if number < 1 {
			continue // one of the project's own
		}
		c := of(v.Labels)
		if c == nil {
			continue
		}
		c.volumes = append(c.volumes, v.Name)
		if number > c.number {
			c.number = number
			c.read(v.Labels)
		}
	}
	return found, nil
}

// read takes over what labels say.
func (c *copied) read(labels map[string]string) {
	c.record = orchestrator.Record{
		Subject: c.subject, Component: labels[labelComponent], Namespace: labels[labelNamespace],
		Content: labels[labelContent], Remedy: labels[labelRemedy],
	}
	c.record.Epoch, _ = strconv.ParseInt(labels[labelEpoch], 10, 64)
	c.cluster, c.text, c.leaving = labels[labelCluster], labels[labelText], labels[labelLeaving] != ""
}

// labels are those of the copy's record.
func (c *copied) labels() map[string]string {
	labels := c.marks()
	labels[labelNumber] = strconv.FormatInt(c.number, 10)
	labels[labelContent], labels[labelRemedy], labels[labelText] = c.record.Content, c.record.Remedy, c.text
	if c.leaving {
		labels[labelLeaving] = "true"
	}
	return labels
}

// marks are the labels of everything that belongs to the copy.
func (c *copied) marks() map[string]string {
	return map[string]string{
		orchestrator.LabelManager: orchestrator.Manager, orchestrator.LabelJob: c.subject.String(),
		labelComponent: c.record.Component, labelNamespace: c.record.Namespace, labelCluster: c.cluster,
		labelEpoch: strconv.FormatInt(c.record.Epoch, 10),
	}
}

// of are the labels of something that the file has labels for: ours count.
func (c *copied) of(labels map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	maps.Copy(all, c.marks())
	return all
}

// write makes the next record of a copy.
func (e *Engine) write(ctx context.Context, c *copied, record orchestrator.Record, p *compose.Project, cluster string) error {
	text, err := p.Text()
	if err != nil {
		return err
	}
	return e.put(ctx, c, record, text, cluster, false)
}

// leave writes that the copy is to go.
func (e *Engine) leave(ctx context.Context, c *copied, record orchestrator.Record) error {
	return e.put(ctx, c, record, c.text, c.cluster, true)
}

func (e *Engine) put(ctx context.Context, c *copied, record orchestrator.Record, text, cluster string, leaving bool) error {
	next := *c
	next.number, next.record, next.text, next.cluster, next.leaving = c.number+1, record, text, cluster, leaving
	labels := next.labels()
	made, err := e.client.VolumeCreate(ctx, client.VolumeCreateOptions{
		Name: next.newest(), Labels: labels,
	})
	if err != nil {
		return err
	}
	now, err := e.find(ctx, c.subject)
	switch {
	case err != nil:
		return err
	case now.number != next.number, !maps.Equal(made.Volume.Labels, labels):
		return problem.New(problem.Unavailable, "component %s was changed at the same time; try again", record.Component)
	}
	*c = *now
	return nil
}

// newest is the name of the copy's record.
func (c *copied) newest() string { return c.project() + "-record-" + strconv.FormatInt(c.number, 10) }

// tidy removes the records before the newest.
func (e *Engine) tidy(ctx context.Context, c *copied) error {
	for _, name := range c.volumes {
		if name != c.newest() {
			if err := e.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop removes a volume.
func (e *Engine) drop(ctx context.Context, name string) error {
	_, err := e.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// erase takes away everything of a copy, its record last. A record that was written since it was found stays.
func (e *Engine) erase(ctx context.Context, c *copied) error {
	for _, one := range c.containers {
		if err := e.end(ctx, one.ID); err != nil {
			return err
		}
	}
	mine := client.Filters{}.Add("label", orchestrator.LabelJob+"="+c.subject.String())
	networks, err := e.client.NetworkList(ctx, client.NetworkListOptions{Filters: mine})
	if err != nil {
		return err
	}
	for _, n := range networks.Items {
		_, err := e.client.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		switch {
		case err == nil, errdefs.IsNotFound(err):
		case errdefs.IsPermissionDenied(err): // a container is in it still, or again by somebody who follows an older decision
			return problem.Wrap(problem.Unavailable, orchestrator.Failed(err), "the engine does not remove network %s now; try again", n.Name)
		default:
			return err
		}
	}
	volumes, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: mine})
	if err != nil {
		return err
	}
	for _, v := range volumes.Items {
		if numberOf(v.Labels) == 0 {
			if err := e.drop(ctx, v.Name); err != nil {
				return err
			}
		}
	}
	// The newest last: without it, an older one would count.
	slices.SortFunc(volumes.Items, byNumber)
	for _, v := range volumes.Items {
		if slices.Contains(c.volumes, v.Name) {
			if err := e.drop(ctx, v.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func byNumber(a, b volume.Volume) int {
	return cmp.Compare(numberOf(a.Labels), numberOf(b.Labels))
}

// numberOf is the number of a record; 0 when the labels are not those of one.
func numberOf(labels map[string]string) int64 {
	n, err := strconv.ParseInt(labels[labelNumber], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// load reads the compose file of a copy.
func (c *copied) load(ctx context.Context) (*compose.Project, error) {
	return compose.Load(ctx, []compose.File{{Name: "deployed", Text: c.text}})
}

// nameOf is the name of a container without the slash that engines put before it.
func nameOf(c *container.Summary) string {
	if len(c.Names) == 0 {
		return ""
	}
	return strings.TrimPrefix(c.Names[0], "/")
}
