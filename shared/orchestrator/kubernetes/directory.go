package kubernetes

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Config is read from the environment by envconfig.
type Config struct {
	Directory string `envconfig:"KUBECONFIG_DIR"`   // kubeconfigs, one file per cluster, under the cluster's name
	Local     string `envconfig:"KUBERNETES_LOCAL"` // what targets call the cluster that the function runs in
}

// Open returns the orchestrator for the clusters that the settings name; nil when they name none, and jobs are left to
// agents that poll. wrap is put around its calls.
//
// The error is always nil; it has the shape that stored.Open takes.
func Open(s Config, wrap func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error) {
	if s == (Config{}) {
		return nil, nil
	}
	return New(&Directory{Path: s.Directory, Local: s.Local, Wrap: wrap}), nil
}

// Directory finds clusters by kubeconfigs, one file each, named as targets name the cluster; a mounted Secret looks
// like that. A file that is added or changed takes effect with the next job.
type Directory struct {
	Path  string // empty = none
	Local string // name of the cluster that this runs in; empty = jobs cannot go there
	Wrap  func(http.RoundTripper) http.RoundTripper

	mu     sync.Mutex
	opened map[string]opened
}

// opened is a client with the kubeconfig it was made from. It is kept, so that looking at many jobs takes one
// connection.
type opened struct {
	kubeconfig string
	client     *kube.Client
}

// Names lists the clusters.
func (d *Directory) Names() []string {
	var names []string
	if d.Local != "" {
		names = append(names, d.Local)
	}
	if d.Path == "" {
		return names
	}
	files, err := os.ReadDir(d.Path)
	if err != nil {
		return names // as if there were none: jobs report it
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") && f.Name() != d.Local { // mounts keep their own state in dotted names
			names = append(names, f.Name())
		}
	}
	return names
}

// Open returns the cluster.
func (d *Directory) Open(name string) (*kube.Client, error) {
	var text []byte
	if name != d.Local || name == "" {
		if d.Path == "" || name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\`) {
			return nil, unknown(name)
		}
		var err error
		if text, err = os.ReadFile(filepath.Join(d.Path, name)); errors.Is(err, fs.ErrNotExist) {
			if _, err = os.Stat(d.Path); err == nil { // otherwise the directory is missing, and the cluster may well exist
				return nil, unknown(name)
			}
		}
		if err != nil {
			return nil, unusable(name, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if have, ok := d.opened[name]; ok && have.kubeconfig == string(text) {
		return have.client, nil
	}
	client, err := d.read(name, text)
	if err != nil {
		return nil, unusable(name, err)
	}
	if d.opened == nil {
		d.opened = map[string]opened{}
	}
	d.opened[name] = opened{string(text), client}
	return client, nil
}

func (d *Directory) read(name string, kubeconfig []byte) (*kube.Client, error) {
	if name == d.Local {
		return kube.Open(kube.InCluster, d.Wrap)
	}
	return kube.Read(kubeconfig, d.Wrap)
}

func unusable(name string, err error) error {
	return &orchestrator.Refusal{
		Reason: "BadKubeconfig", Message: "the kubeconfig of cluster " + name + " cannot be used: " + err.Error(), Err: err,
	}
}

func unknown(name string) error {
	return orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "there is no kubeconfig of a cluster %s", name)
}
