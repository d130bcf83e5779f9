// Package report writes what becomes of groups and CodecoApps to the objects of SWM in the cluster: the AssignmentPlan and the Channels of
// each, and the status of what was handed in. Plans and Channels belong to what they are about, so Kubernetes removes them with it.
package report

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/plan"
)

// Owner is what an object belongs to.
type Owner struct{ APIVersion, Kind, Name, UID string }

// Object is one to write.
type Object struct {
	Kind, Namespace, Name string
	Labels                map[string]string
	Owner                 Owner
	Spec, Status          any
}

// Cluster is where the objects are.
type Cluster interface {
	Write(ctx context.Context, o Object) error
	// Keep deletes the Channels of a group that are not named.
	Keep(ctx context.Context, namespace, group string, names map[string]bool) error
	SetStatus(ctx context.Context, kind, namespace, name string, status any) error
}

// channelSpec is the spec of a Channel.
type channelSpec struct {
	ChannelFrom    string       `json:"channelFrom"` // nodes
	ChannelTo      string       `json:"channelTo"`
	ChannelPath    *channelPath `json:"channelPath,omitempty"`
	SourceWorkload string       `json:"sourceWorkload"`
	TargetWorkload string       `json:"targetWorkload"`
	TargetPort     int          `json:"targetPort,omitempty"`
	BandwidthBits  int64        `json:"bandwidthBits"`
	MaxDelayNanos  int64        `json:"maxDelayNanos,omitempty"`
	FrameSize      int64        `json:"framesize,omitempty"`
	SendInterval   int64        `json:"sendInterval,omitempty"`
	ServiceClass   string       `json:"serviceClass,omitempty"`
}

type channelPath struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// channelStatus is the status of a Channel.
type channelStatus struct {
	Status  plan.State `json:"status"`
	Reason  string     `json:"reason"`
	Latency int64      `json:"latency"` // ns

	CNIMetadata map[string]any `json:"cniMetadata"`
}

// metadata is what is known of the ends of a channel. It is merged with what was written before, so what is no longer known is null.
func metadata(e plan.Ends) map[string]any {
	if e == (plan.Ends{}) {
		return nil
	}
	out := map[string]any{}
	for key, v := range map[string]string{
		"sourceip": e.SourceIP, "targetip": e.TargetIP, "sourceInterface": e.SourceInterface, "targetInterface": e.TargetInterface,
	} {
		if out[key] = nil; v != "" {
			out[key] = v
		}
	}
	return out
}

// All writes everything that is an object of Kubernetes.
func All(ctx context.Context, db *store.DB, c Cluster) error {
	running, err := groups.Running(ctx, db)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for _, g := range running {
		if g.UID != "" {
			ids = append(ids, *g.Application)
		}
	}
	apps, err := acm.WithObjects(ctx, db)
	if err != nil {
		return err
	}
	for _, id := range append(ids, apps...) {
		if err := One(ctx, db, c, id); err != nil {
			return err
		}
	}
	return nil
}

// One writes what becomes of an application, if it is that of a group or a CodecoApp that is an object of Kubernetes.
func One(ctx context.Context, db *store.DB, c Cluster, id uuid.UUID) error {
	group, err := groups.RunBy(ctx, db, id)
	if err != nil {
		return err
	}
	owner, namespace, err := OwnerOf(ctx, db, id, group)
	if err != nil || owner.UID == "" {
		return err
	}
	name := owner.Name
	p, err := plan.Of(ctx, db, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := write(ctx, c, owner, namespace, name, p); err != nil {
		return problem.Wrap(problem.Unavailable, err, "the plan of %s/%s could not be written: %v", namespace, name, err)
	}
	if group == nil {
		return nil
	}
	return members(ctx, db, c, group, p)
}

// OwnerOf is the object that an application runs for, of the group that it runs, if any; without UID for one that came over HTTP.
func OwnerOf(ctx context.Context, q store.Querier, id uuid.UUID, group *groups.Stored) (o Owner, namespace string, err error) {
	if group != nil {
		return Owner{groups.Group + "/" + groups.Version, string(groups.ApplicationGroup), group.Name, group.UID}, group.Namespace, nil
	}
	key, uid, err := acm.ObjectOf(ctx, q, id)
	return Owner{codecoapp.Group + "/" + codecoapp.Version, codecoapp.Kind, key.Name, uid}, key.Namespace, err
}

// ChannelName is what the object of a channel is called.
func ChannelName(group, source, channel string) string {
	return objectName(group + "-" + source + "-" + channel)
}

func write(ctx context.Context, c Cluster, owner Owner, namespace, group string, p *plan.Planned) error {
	labels := map[string]string{groups.LabelGroup: group}
	err := c.Write(ctx, Object{"AssignmentPlan", namespace, plan.Name(group), labels, owner, p.Plan.Spec, p.Plan.Status})
	if err != nil {
		return err
	}
	at := map[string]string{}
	for _, j := range p.Application.Jobs {
		if j.Live() {
			at[job.ReplicaName(j.Component, j.Replica)] = j.Node
		}
	}
	names := map[string]bool{}
	for _, ch := range p.Channels {
		name := ChannelName(group, ch.Source, ch.Name)
		names[name] = true
		spec := channelSpec{
			ChannelFrom: at[ch.Source], ChannelTo: at[ch.Target], SourceWorkload: ch.Source, TargetWorkload: ch.Target,
			TargetPort: ch.Port, BandwidthBits: ch.Bandwidth, MaxDelayNanos: int64(ch.MaxLatency), FrameSize: ch.Frame,
			SendInterval: ch.Interval, ServiceClass: string(ch.Class),
		}
		own := map[string]string{groups.LabelGroup: group}
		if ch.Network != "" {
			spec.ChannelPath = &channelPath{ch.Path, namespace}
			own[groups.LabelNetwork] = objectName(ch.Network)
		}
		status := channelStatus{ch.Status, ch.Reason, int64(ch.Latency), metadata(ch.Ends)}
		if err := c.Write(ctx, Object{"Channel", namespace, name, own, owner, spec, status}); err != nil {
			return err
		}
	}
	return c.Keep(ctx, namespace, group, names)
}

func members(ctx context.Context, db *store.DB, c Cluster, group *groups.Stored, p *plan.Planned) error {
	all, err := groups.Members(ctx, db, group.Key)
	if err != nil {
		return err
	}
	failed := c.SetStatus(ctx, string(groups.ApplicationGroup), group.Namespace, group.Name, p.Group())
	for _, m := range all {
		if m.UID != "" && failed == nil {
			failed = c.SetStatus(ctx, string(groups.Application), m.Namespace, m.Name, p.Member(m.Name))
		}
	}
	if failed != nil {
		return problem.Wrap(problem.Unavailable, failed, "the status of group %s could not be written: %v", group.Name, failed)
	}
	return nil
}

// objectName makes a name that Kubernetes takes: small letters, digits, dashes and dots.
func objectName(s string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	return strings.Trim(out[:min(len(out), 253)], "-.")
}
