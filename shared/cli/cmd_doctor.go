package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

type doctorCommand struct {
	Cluster      bool   `help:"Look at the cluster of KUBECONFIG too, with kubectl."`
	BeforeDeploy bool   `help:"Look only at what a cluster needs before Littoral is deployed to it."`
	Namespace    string `short:"n" default:"littoral" help:"Namespace of Littoral in the cluster."`
	outputFlag
}

// Help is the long help of doctor.
func (doctorCommand) Help() string {
	return "Nothing is changed. The exit code is 1 if something is wrong; -o name lists what was checked, the worst first.\n\nExample: littoral doctor --cluster"
}

// What a check may find.
const (
	fine   = "ok"
	unsure = "warning" // it works, or nobody could look
	faulty = "wrong"
)

// states are those, the worst first.
var states = []string{faulty, unsure, fine}

// The least minor versions of Kubernetes' kubectl and of Knative, both 1.
const (
	leastKubectl = 31
	leastKnative = 19
)

// finding is what one check found, and what to do about it.
type finding struct {
	Check   string `json:"check"`
	State   string `json:"state"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// patient is what is looked at, and what was found so far.
type patient struct {
	*session

	namespace string
	found     []finding
}

// Run looks at everything and says what is wrong.
func (c *doctorCommand) Run(s *session) error {
	p := &patient{session: s, namespace: c.Namespace}
	if !c.BeforeDeploy {
		p.server()
	}
	if (c.Cluster || c.BeforeDeploy) && p.kubernetes() {
		p.types()
		p.knative()
		p.rights()
		p.skew(c.BeforeDeploy)
		if !c.BeforeDeploy {
			p.secrets()
			p.objects()
		}
	}
	worst := slices.Clone(p.found)
	slices.SortStableFunc(worst, func(a, b finding) int {
		return cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State))
	})
	done, err := s.said(p.found, namesOf("check", worst, func(f *finding) string { return f.Check })...)
	if !done {
		err = p.tell()
	}
	if err != nil {
		return err
	}
	wrong := 0
	for _, f := range p.found {
		if f.State == faulty {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks found something wrong", wrong, len(p.found))
	}
	return nil
}

func (p *patient) tell() error {
	rows := make([][]string, len(p.found))
	for i, f := range p.found {
		rows[i] = []string{f.Check, f.State, f.Message, or(f.Advice)}
	}
	if err := p.newTable("CHECK", "STATE", "FOUND", "+ADVICE").write(rows...); err != nil || p.wide() {
		return err
	}
	for _, f := range p.found {
		if f.Advice != "" {
			p.text("%s: %s", f.Check, f.Advice)
		}
	}
	return nil
}

func (p *patient) note(check, state, message, advice string) {
	if state == fine {
		advice = ""
	}
	p.found = append(p.found, finding{check, state, message, advice})
}

// Beyond tolerated, tokens may count as expired or as not valid yet; a difference that is noticed is worth a look.
const (
	noticed   = 5 * time.Second
	tolerated = 30 * time.Second
)

// server checks what answers at the base URL: an operation that reads the database, and the clock.
func (p *patient) server() {
	base := strings.TrimSuffix(p.client.Base, "/")
	r, err := http.NewRequestWithContext(p.ctx, http.MethodGet, base+"/jobmanager/groups?limit=1", http.NoBody)
	if err != nil {
		p.note("server", faulty, err.Error(), "set LITTORAL_SERVER to the base URL")
		return
	}
	if p.client.Token != nil {
		if token, err := p.client.Token(); err == nil && token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	sent := p.now()
	a, err := p.client.HTTP.Do(r)
	if err != nil {
		p.note("server", faulty, err.Error(), "start it (littoral up), or set LITTORAL_SERVER to its base URL")
		return
	}
	defer func() { _ = a.Body.Close() }()
	p.note("server", fine, base+" answers", "")
	switch a.StatusCode {
	case http.StatusOK:
		p.note("database", fine, "an operation has read it", "")
	case http.StatusUnauthorized, http.StatusForbidden:
		p.note("token", faulty, "the server answers "+a.Status, "littoral login, or set LITTORAL_TOKEN; littoral whoami says who you are")
	case http.StatusServiceUnavailable:
		p.note("database", faulty, "an operation could not read it", "look at Postgres and at DATABASE_URL in the Secret littoral")
	default:
		p.note("database", faulty, "an operation answers "+a.Status, "look at the log of the function jobmanager-group-list")
	}
	p.clock(a.Header.Get("Date"), sent)
}

// clock compares the server's time with ours, to the second that its header has.
func (p *patient) clock(header string, sent time.Time) {
	there, err := http.ParseTime(header)
	if err != nil {
		p.note("clock", unsure, "the server does not say what time it is", "")
		return
	}
	half := p.now().Sub(sent) / 2
	apart := there.Sub(sent.Add(half)).Round(time.Second).Abs()
	const advice = "set both clocks by NTP: leases, tokens and the freshness of telemetry depend on them"
	message := fmt.Sprintf("the clocks differ by %s", apart)
	switch {
	case apart > tolerated+half:
		p.note("clock", faulty, message, advice)
	case apart > noticed+half:
		p.note("clock", unsure, message, advice)
	default:
		p.note("clock", fine, "the clocks agree", "")
	}
}

// kubectl runs it and returns what it wrote.
func (p *patient) kubectl(args ...string) (string, error) {
	cmd := exec.CommandContext(p.ctx, cmp.Or(p.getenv("KUBECTL"), "kubectl"), args...)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if text := strings.TrimSpace(failure.String()); err != nil && text != "" {
		first, _, _ := strings.Cut(text, "\n")
		err = fmt.Errorf("kubectl: %s", first)
	}
	return strings.TrimSpace(string(out)), err
}

// kubernetes checks that the cluster answers; without it there is nothing else to look at.
func (p *patient) kubernetes() bool {
	const advice = "install kubectl (1.31 or newer), and set KUBECONFIG to the cluster"
	text, err := p.kubectl("version", "-o", "json")
	var v struct {
		ClientVersion, ServerVersion struct{ GitVersion string }
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		p.note("cluster", faulty, err.Error(), advice)
		return false
	}
	here, there := minor(v.ClientVersion.GitVersion), minor(v.ServerVersion.GitVersion)
	message := fmt.Sprintf("Kubernetes %s, kubectl %s", v.ServerVersion.GitVersion, v.ClientVersion.GitVersion)
	switch {
	case here < leastKubectl:
		p.note("cluster", faulty, message, advice)
	case here-there > 1 || there-here > 1:
		p.note("cluster", unsure, message, "they should be at most one minor version apart")
	default:
		p.note("cluster", fine, message, "")
	}
	return true
}

// minor is the number after the first dot of a version.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// needed are types without which nothing runs.
var needed = []string{
	"services.serving.knative.dev", "brokers.eventing.knative.dev", "triggers.eventing.knative.dev",
	"pingsources.sources.knative.dev",
}

func (p *patient) types() {
	text, err := p.kubectl("get", "crd", "-o", "name")
	if err != nil {
		p.note("types", unsure, err.Error(), "")
		return
	}
	there := strings.Fields(text)
	var lacking []string
	for _, name := range needed {
		if !slices.Contains(there, "customresourcedefinition.apiextensions.k8s.io/"+name) {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		p.note("types", faulty, "the cluster lacks "+strings.Join(lacking, ", "), "install Knative Serving and Eventing")
		return
	}
	p.note("types", fine, "those of Knative are there", "")
}

// knative checks its versions, which its own Deployments name.
func (p *patient) knative() {
	for _, part := range [][2]string{{"knative-serving", "controller"}, {"knative-eventing", "eventing-controller"}} {
		text, err := p.kubectl("-n", part[0], "get", "deployment", part[1], "-o", `jsonpath={.metadata.labels.app\.kubernetes\.io/version}`)
		switch {
		case err != nil:
			p.note(part[0], unsure, err.Error(), "its version is not known; Littoral needs 1."+strconv.Itoa(leastKnative))
		case minor(text) == 0: // built from source, it may call itself "devel"
			p.note(part[0], unsure, fmt.Sprintf("version %q is no number", text), "Littoral needs 1."+strconv.Itoa(leastKnative))
		case minor(text) < leastKnative:
			p.note(part[0], faulty, "version "+text, fmt.Sprintf("update it to 1.%d or newer", leastKnative))
		default:
			p.note(part[0], fine, "version "+text, "")
		}
	}
}

// rights are what a deployment does.
var rights = [][2]string{
	{"create", "namespaces"},
	{"create", "clusterroles.rbac.authorization.k8s.io"},
	{"create", "serviceaccounts"},
	{"create", "secrets"},
	{"create", "jobs.batch"},
	{"create", "networkpolicies.networking.k8s.io"},
	{"create", "services.serving.knative.dev"},
	{"create", "triggers.eventing.knative.dev"},
}

func (p *patient) rights() {
	var lacking []string
	for _, right := range rights {
		if text, err := p.kubectl("auth", "can-i", right[0], right[1], "-n", p.namespace); err != nil || text != "yes" {
			lacking = append(lacking, right[0]+" "+right[1])
		}
	}
	if len(lacking) > 0 {
		p.note("permissions", faulty, "you may not "+strings.Join(lacking, ", "), "use an account that may, such as one with the role cluster-admin")
		return
	}
	p.note("permissions", fine, "you may deploy", "")
}

// secrets checks what nobody can start without.
func (p *patient) secrets() {
	text, err := p.kubectl("-n", p.namespace, "get", "secret", "littoral", "-o", `go-template={{range $key, $value := .data}}{{$key}}{{"\n"}}{{end}}`)
	if err != nil {
		p.note("secret", faulty, err.Error(), "make deploy creates it")
		return
	}
	for _, key := range []string{"DATABASE_URL", "EVENT_KEY"} {
		if !slices.Contains(strings.Fields(text), key) {
			p.note("secret", faulty, "the Secret littoral has no "+key, "add it, see infra/README.md (Postgres, The key of events)")
			return
		}
	}
	p.note("secret", fine, "the Secret littoral has what functions need", "")
}

// objects checks that the Broker, and what wakes functions, and functions are ready.
func (p *patient) objects() {
	for _, kind := range []string{"broker.eventing.knative.dev", "trigger.eventing.knative.dev", "pingsource.sources.knative.dev", "service.serving.knative.dev"} {
		check, _, _ := strings.Cut(kind, ".")
		text, err := p.kubectl("-n", p.namespace, "get", kind, "-l", "app.kubernetes.io/part-of=littoral", "-o", "json")
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct {
					Conditions []struct{ Type, Status, Reason, Message string }
				}
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &list)
		}
		if err != nil {
			p.note(check, unsure, err.Error(), "")
			continue
		}
		unready := 0
		for _, item := range list.Items {
			ready, why := false, "nobody has looked at it"
			for _, condition := range item.Status.Conditions {
				if condition.Type == "Ready" {
					ready, why = condition.Status == "True", cmp.Or(condition.Message, condition.Reason)
				}
			}
			if !ready {
				unready++
				p.note(check, faulty, item.Metadata.Name+" is not ready: "+why, "kubectl -n "+p.namespace+" describe "+kind+" "+item.Metadata.Name)
			}
		}
		switch {
		case len(list.Items) == 0:
			p.note(check, faulty, "there is none", "make deploy creates them")
		case unready == 0:
			p.note(check, fine, fmt.Sprintf("%d of %[1]d ready", len(list.Items)), "")
		}
	}
}
