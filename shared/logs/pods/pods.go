// Package pods reads what containers write from the clusters that they run in. A cluster keeps that only while the pod is there, and only
// the last of it, so it is no log store; it is for those who have none.
package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

const (
	mostContainers = 100     // whose logs one question reads
	atOnce         = 8       // of them
	mostBytes      = 4 << 20 // of the log of one container
)

// Place is where pods of an application are.
type Place struct{ Cluster, Namespace string }

// Clusters opens the client of a cluster.
type Clusters func(name string) (*kube.Client, error)

var resource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// container is one whose log is read.
type container struct {
	client    *kube.Client
	namespace string
	about     logs.Entry // without time and line
}

// Read returns the lines that the query selects, oldest first. missing says whose lines could not be read, and why; when that is those of
// all places there is an error, which is Unavailable.
func Read(ctx context.Context, open Clusters, places []Place, q logs.Query) (found []logs.Entry, missing []string, err error) {
	if err := q.Check(); err != nil {
		return nil, nil, err
	}
	var all []container
	failed := 0
	for _, p := range places {
		list, err := containers(ctx, open, p, q)
		if err != nil {
			missing = append(missing, "cluster "+p.Cluster+": "+reason(err))
			failed++
			continue
		}
		all = append(all, list...)
	}
	if failed > 0 && failed == len(places) {
		return nil, nil, problem.New(problem.Unavailable, "no cluster shows what was written: %s", strings.Join(missing, "; "))
	}
	if extra := len(all) - mostContainers; extra > 0 {
		missing = append(missing, fmt.Sprintf("%d of %d containers, which are too many for one question", extra, len(all)))
		all = all[:mostContainers]
	}
	var mu sync.Mutex
	var reading sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, c := range all {
		reading.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			lines, err := c.read(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, lines...)
			if err != nil {
				missing = append(missing, "pod "+c.about.Pod+", container "+c.about.Container+": "+reason(err))
			}
		})
	}
	reading.Wait()
	slices.Sort(missing)
	return q.Limited(found), missing, nil
}

// reason says why a cluster did not answer, without its address.
func reason(err error) string {
	var refused *orchestrator.Refusal
	if errors.As(err, &refused) {
		return refused.Message
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return problem.Brief([]byte(status.Status().Message), 200)
	}
	return "its API does not answer"
}

// containers lists those of the application at the place.
func containers(ctx context.Context, open Clusters, p Place, q logs.Query) (list []container, err error) {
	client, err := open(p.Cluster)
	if err != nil {
		return nil, err
	}
	selector := label.MarkInstance + "=" + q.Application
	err = kube.Each(ctx, client.Resource(resource).Namespace(p.Namespace), selector, func(pod *unstructured.Unstructured) {
		component := pod.GetLabels()[label.MarkComponent]
		if q.Component != "" && component != q.Component {
			return
		}
		node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		specs, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		for _, spec := range specs {
			if c, ok := spec.(map[string]any); ok {
				name, _ := c["name"].(string)
				list = append(list, container{client, p.Namespace, logs.Entry{
					Application: q.Application, Component: component, Cluster: p.Cluster, Node: node, Pod: pod.GetName(), Container: name,
				}})
			}
		}
	})
	return list, err
}

// read returns the lines of the container that the query selects. A pod that has gone meanwhile, or whose container has not begun, has
// none.
func (c *container) read(ctx context.Context, q logs.Query) ([]logs.Entry, error) {
	query := map[string]string{
		"container": c.about.Container, "timestamps": "true", "limitBytes": strconv.Itoa(mostBytes),
		"sinceTime": q.From.UTC().Truncate(time.Second).Format(time.RFC3339),
	}
	if q.Newest {
		most := q.Limit
		if q.Text != "" || !q.To.IsZero() { // the last ones may not be among those that are asked for
			most = logs.MaxLines
		}
		query["tailLines"] = strconv.Itoa(most)
	}
	text, err := c.client.Text(ctx, query, mostBytes, "api", "v1", "namespaces", c.namespace, "pods", c.about.Pod, "log")
	if kube.IsAbsent(err) || apierrors.IsBadRequest(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []logs.Entry
	for line := range strings.Lines(text) {
		stamp, rest, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(stamp))
		if err != nil {
			continue // the rest of a line that was cut
		}
		e := c.about
		e.At, e.Line = at, rest
		if e = logs.Clean(e); q.Selects(e) {
			list = append(list, e)
		}
	}
	return list, nil
}
