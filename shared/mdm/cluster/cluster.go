// Package cluster reads the nodes, pods, services and volume claims of a cluster as the metadata graph has them.
package cluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/mdm/connect"
)

// Kinds are those that are read. What others lead to comes first.
var Kinds = []string{"Node", "PersistentVolumeClaim", "Service", "Pod"}

// Type is what the graph calls a kind.
func Type(kind string) string { return strings.ToLower(kind) }

// Cluster is the API of a cluster, and what the taxonomy calls it.
type Cluster struct {
	Name   string
	client dynamic.Interface
}

type config struct {
	// Where is the cluster, as for CodecoApps.
	Where string `envconfig:"CODECO_OBJECTS"`
	// Name is what the taxonomy calls it. Empty: its objects are not in the graph.
	Name string `envconfig:"MDM_CLUSTER"`
}

// Open returns the cluster that the settings name; nil if they name none. Nothing is dialled.
func Open(env *function.Env) (*Cluster, error) {
	var c config
	if err := env.Config(&c); err != nil || c.Where == "" || c.Name == "" {
		return nil, err
	}
	client, err := kube.Open(c.Where, env.Observe.Transport)
	if err != nil {
		return nil, fmt.Errorf("CODECO_OBJECTS: %w", err)
	}
	return &Cluster{c.Name, client}, nil
}

// Page is a part of what there is of a kind, at a version of the cluster.
type Page struct {
	Version int64
	Objects []connect.Object
}

// One looks for an object. It asks for a list, since only that says at which version there was none.
func (c *Cluster) One(ctx context.Context, kind, namespace, name string) (Page, error) {
	var found Page
	err := c.pages(ctx, kind, namespace, "metadata.name="+name, func(p Page) error {
		found = Page{p.Version, append(found.Objects, p.Objects...)}
		return nil
	})
	return found, err
}

// Each calls do for every page of all objects of a kind.
func (c *Cluster) Each(ctx context.Context, kind string, do func(Page) error) error {
	return c.pages(ctx, kind, metav1.NamespaceAll, "", do)
}

func (c *Cluster) pages(ctx context.Context, kind, namespace, fields string, do func(Page) error) error {
	of := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: Type(kind) + "s"}).Namespace(namespace)
	return kube.Pages(ctx, of, metav1.ListOptions{FieldSelector: fields}, func(list *unstructured.UnstructuredList) error {
		version, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
		if err != nil {
			return fmt.Errorf("the version %q of the cluster is no number", list.GetResourceVersion())
		}
		page := Page{Version: version, Objects: make([]connect.Object, 0, len(list.Items))}
		for i := range list.Items {
			page.Objects = append(page.Objects, c.read(kind, &list.Items[i]))
		}
		return do(page)
	})
}
