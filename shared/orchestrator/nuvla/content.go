package nuvla

import (
	"context"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// content is what a module deploys.
type content struct {
	subtype, text string
	runs          []run
}

// render writes what the job deploys. A scaling starts from what is deployed, unless that is of another content.
func render(ctx context.Context, j *job.Job, c *copied) (*content, error) {
	lacking, keeps := c.record.Lacking(j)
	keeps = keeps && orchestrator.ScalesOnly(j) && c.deployment != nil && c.deployment.Module.Content.Text != ""
	former := ""
	patches := j.Type == job.Update && j.SubType == string(job.Patch)
	if c.deployment != nil && (keeps || patches) {
		former = c.deployment.Module.Content.Text
	}
	write := writeKubernetes
	if j.Instruction.Type == appmodel.TypeDocker {
		write = writeCompose
	}
	if keeps {
		return write(ctx, j, former, nil, lacking)
	}
	return write(ctx, j, former, j.Instruction.Contents, orchestrator.Scalings(j))
}

// writeKubernetes writes the objects of the contents, and those of the former text that the contents do not name.
func writeKubernetes(_ context.Context, j *job.Job, former string, contents []job.Content, scalings []job.Remedy) (*content, error) {
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
	bad := func(err error) error {
		return &orchestrator.Refusal{
			Reason: orchestrator.ReasonBadManifest, Message: "component " + j.Component + ": " + err.Error(), Err: err,
		}
	}
	var p *compose.Project
	var err error
	if former != "" {
		if p, err = compose.Load(ctx, []compose.File{{Name: "deployed", Text: former}}); err != nil {
			return nil, bad(err)
		}
	}
	if contents != nil {
		var files []compose.File
		for _, c := range contents {
			files = append(files, compose.File{Name: c.Name, Text: c.YAML})
		}
		named, err := compose.Load(ctx, files)
		if err != nil {
			return nil, bad(err)
		}
		if err := named.Attach(j.Instruction.Requirements.Devices); err != nil {
			return nil, bad(err)
		}
		named.Label(map[string]string{
			orchestrator.LabelManager: orchestrator.Manager, orchestrator.LabelJob: orchestrator.Subject(j).String(),
			label.MarkApplication: j.ApplicationName, label.MarkInstance: j.ApplicationID.String(),
			label.MarkComponent: j.Component, label.MarkResource: orchestrator.ResourceID(j),
		})
		if p == nil {
			p = named
		} else {
			p.Replace(named)
		}
	}
	for _, s := range scalings {
		scale(p, s)
	}
	next := &content{subtype: subtypeCompose}
	if next.text, err = p.Text(); err != nil {
		return nil, bad(err)
	}
	names, replicas := p.Services()
	for _, name := range names {
		next.runs = append(next.runs, run{name, replicas[name]})
	}
	return next, nil
}

// scale carries out a remediation on each service.
func scale(p *compose.Project, r job.Remedy) {
	by := int64(max(r.Step, 1))
	switch r.Type {
	case job.ScaleDown:
		by = -by
		fallthrough
	case job.ScaleUp:
		p.Scale(func(n int64) int64 { return orchestrator.ScaledReplicas(n, by) })
	case job.ScaleOut, job.ScaleIn:
		more := r.Type == job.ScaleOut
		p.Reserve(func(cpu, memory int64) (int64, int64) {
			return orchestrator.ScaledRequest(cpu, orchestrator.StepCPUMilli, more),
				orchestrator.ScaledRequest(memory, orchestrator.StepMemoryBytes, more)
		})
	}
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
