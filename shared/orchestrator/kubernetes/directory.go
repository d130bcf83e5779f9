package kubernetes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/kube"
)

// Config is read from the environment by envconfig.
type Config struct {
	Directory string `envconfig:"KUBECONFIG_DIR"`   // kubeconfigs, one file per cluster, under the cluster's name
	Local     string `envconfig:"KUBERNETES_LOCAL"` // what targets call the cluster that the function runs in
}

// Open returns the orchestrator over the clusters that the settings name, nil when they name none: then jobs are left
// to agents that ask for them.
//
// The error is always nil; it has the shape that carry.Open takes.
func Open(s Config) (orchestrator.Orchestrator, error) {
	if s == (Config{}) {
		return nil, nil
	}
	return New(&Directory{Path: s.Directory, Local: s.Local}), nil
}

// Directory is clusters by kubeconfigs: one file each, named as targets name the cluster, as a Secret is mounted. A
// file that is added or changed counts from the next job on.
type Directory struct {
	Path  string // empty = none
	Local string // name of the cluster that this runs in; empty = that one is not for jobs
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
		return names // as if there were none: jobs say so
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
	where := kube.InCluster
	if name != d.Local || name == "" {
		if d.Path == "" || name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\`) {
			return nil, unknown(name)
		}
		where = filepath.Join(d.Path, name)
	}
	client, err := kube.Open(where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unknown(name)
	case err != nil:
		return nil, &orchestrator.Refusal{
			Reason: "BadKubeconfig", Message: "the kubeconfig of cluster " + name + " cannot be used: " + err.Error(), Err: err,
		}
	}
	return client, nil
}

func unknown(name string) error {
	return orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "there is no kubeconfig of a cluster %s", name)
}
