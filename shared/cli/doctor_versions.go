package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// labelVersion is on each object of a release.
const labelVersion = "app.kubernetes.io/version"

// deployed is what the cluster says of our objects of a kind.
type deployed struct{ Items []deployedObject }

type deployedObject struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Status struct{ Succeeded, Failed, Active int } // of a Job
}

func (p *patient) deployed(kind string) (d deployed, err error) {
	text, err := p.kubectl("-n", p.namespace, "get", kind, "-l", "app.kubernetes.io/part-of=littoral", "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &d)
	}
	return d, err
}

// versions are those of the objects, without those that are of no release.
func (d deployed) versions() (list []string) {
	for _, item := range d.Items {
		if v := item.Metadata.Labels[labelVersion]; v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	slices.Sort(list)
	return list
}

// skew checks that what runs is of one version, and that this command line is at most one version apart from it: functions of
// one version run on the schema of the next, and talk to a command line of the one before or after.
func (p *patient) skew(before bool) {
	functions, err := p.deployed("service.serving.knative.dev")
	if err != nil {
		if !before { // else there is none, and what is missing was said
			p.note("version", unsure, err.Error(), "")
		}
		return
	}
	here := thisVersion().Version
	switch list := functions.versions(); {
	case len(functions.Items) == 0 && before:
		p.note("version", fine, "nothing is deployed yet", "")
	case len(list) == 0:
		p.note("version", fine, "what is deployed is of no release, and has no version", "")
	case len(list) > 1:
		p.note("version", faulty, "functions are of the versions "+strings.Join(list, " and "), "a deployment has stopped halfway: do it again")
	default:
		apart, known := minorsApart(here, list[0])
		switch {
		case !known:
			p.note("version", fine, fmt.Sprintf("functions are of %s; this command line, %s, is of no release", list[0], here), "")
		case apart > 1 && before:
			p.note("version", faulty, fmt.Sprintf("functions are of %s, and %s is to be deployed", list[0], here), "deploy the versions between them first, one after the other")
		case apart > 1:
			p.note("version", faulty, fmt.Sprintf("functions are of %s, this command line of %s", list[0], here), "use a command line of "+list[0]+", or of the version before or after")
		default:
			p.note("version", fine, fmt.Sprintf("functions are of %s, this command line of %s", list[0], here), "")
		}
	}
	if !before {
		p.schema(functions)
	}
}

// schema checks that the database was migrated by the version of the functions, or a later one.
func (p *patient) schema(functions deployed) {
	jobs, err := p.deployed("jobs.batch")
	if err != nil {
		p.note("schema", unsure, err.Error(), "")
		return
	}
	i := slices.IndexFunc(jobs.Items, func(o deployedObject) bool { return o.Metadata.Name == "migrate" })
	const advice = "kubectl logs job/migrate says why; when that is mended, deploy again"
	switch {
	case i < 0:
		p.note("schema", unsure, "the Job migrate is not there any more, so nobody says which schema the database has", "")
	case jobs.Items[i].Status.Active > 0:
		p.note("schema", unsure, "the database is being migrated", "")
	case jobs.Items[i].Status.Succeeded == 0:
		p.note("schema", faulty, "the database was not migrated", advice)
	default:
		to, of := jobs.Items[i].Metadata.Labels[labelVersion], functions.versions()
		if len(of) == 1 && to != "" && older(to, of[0]) {
			p.note("schema", faulty, fmt.Sprintf("the database has the schema of %s, and functions are of %s", to, of[0]), advice)
			return
		}
		p.note("schema", fine, "the database was migrated to the schema that was deployed", "")
	}
}

// numbers are major, minor and patch of a version like v1.2.3; nil for others.
func numbers(version string) []int {
	text, is := strings.CutPrefix(version, "v")
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if !is || len(parts) != 3 {
		return nil
	}
	list := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list[i] = n
	}
	return list
}

func older(a, b string) bool { return slices.Compare(numbers(a), numbers(b)) < 0 }

// minorsApart is by how many minor versions two versions differ; those of two major versions are far apart.
func minorsApart(a, b string) (n int, known bool) {
	x, y := numbers(a), numbers(b)
	if x == nil || y == nil || a == "v0.0.0" || strings.HasPrefix(a, "v0.0.0-") {
		return 0, false // the tool chain calls a build without a tag v0.0.0 and a time
	}
	if x[0] != y[0] {
		return 2, true
	}
	return max(x[1]-y[1], y[1]-x[1]), true
}
