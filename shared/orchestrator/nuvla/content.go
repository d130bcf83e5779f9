package nuvla

import (
	"context"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/composefile"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// content is what a module deploys.
type content struct {
	subtype, text string
	runs          []run
}

// render writes what the job deploys. A scaling starts from what is deployed, unless that is of another content.
func render(ctx context.Context, j *job.Job, c *copied) (*content, error) {
	deployed := ""
	if c.deployment != nil {
		deployed = c.deployment.Module.Content.Text
	}
	former, contents, scalings := c.record.Start(j, deployed)
	if j.Instruction.Type == appmodel.TypeDocker {
		return writeCompose(ctx, j, former, contents, scalings)
	}
	return writeKubernetes(j, former, contents, scalings)
}

// writeKubernetes writes the objects of the contents, and those of the former text that the contents do not name.
func writeKubernetes(j *job.Job, former string, contents []job.Content, scalings []job.Remedy) (*content, error) {
	before, err := manifest.Read([]job.Content{{Name: "deployed", YAML: former}})
	if err != nil {
		return nil, err
	}
	objects := before
	if contents != nil {
		if objects, err = manifest.Build(j); err != nil {
			return nil, err
		}
		objects = objects[1:] // Nuvla makes the namespace, and takes none of its name besides
		named := map[string]bool{}
		for _, o := range objects {
			named[o.GetKind()+"/"+o.GetName()] = true
		}
		for _, o := range before {
			if !named[o.GetKind()+"/"+o.GetName()] {
				objects = append(objects, o)
			}
		}
	}
	next := &content{subtype: subtypeKubernetes}
	var text strings.Builder
	for _, o := range objects {
		if _, err := manifest.Scale(o, scalings...); err != nil {
			return nil, err
		}
		plain(o)
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + string(doc))
		next.runs = append(next.runs, run{o.GetKind() + " " + o.GetName(), podsOf(o)})
	}
	next.text = text.String()
	return next, nil
}

// plain takes off an object what a new decision changes though it runs the same: the record is in tags, and a module gets
// a version for changed content only.
func plain(o *unstructured.Unstructured) {
	notes := o.GetAnnotations()
	delete(notes, "littoral.dev/epoch")
	delete(notes, "littoral.dev/revision")
	o.SetAnnotations(notes)
}

// podsOf is how many pods of the object Nuvla reports on; -1 for an object that it says nothing of.
func podsOf(o *unstructured.Unstructured) int64 {
	if o.GetKind() != "Deployment" {
		return -1
	}
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return n
}

// writeCompose writes one compose file.
func writeCompose(ctx context.Context, j *job.Job, former string, contents []job.Content, scalings []job.Remedy) (*content, error) {
	p, err := composefile.Build(ctx, j, former, contents, scalings)
	if err != nil {
		return nil, err
	}
	next := &content{subtype: subtypeCompose}
	if next.text, err = p.Text(); err != nil {
		return nil, composefile.Bad(j, err)
	}
	names, replicas := p.Services()
	for _, name := range names {
		next.runs = append(next.runs, run{name, replicas[name]})
	}
	return next, nil
}

// numbered reports whether a container's name is that of one of the service's, in any of the forms that engines give
// them: project-service-1, project_service_1, project_service.1.task.
func numbered(name, project, service string) bool {
	rest, ok := strings.CutPrefix(name, project)
	if !ok || rest == "" || !strings.ContainsAny(rest[:1], "-_") {
		return false
	}
	rest, ok = strings.CutPrefix(rest[1:], service)
	if !ok || rest == "" || !strings.ContainsAny(rest[:1], "-_.") {
		return false
	}
	number, _, _ := strings.Cut(rest[1:], ".")
	_, err := strconv.Atoi(number)
	return err == nil
}
