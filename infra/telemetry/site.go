package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/prometheus/common/model"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/logs"
)

// Kinds of sites. On a machine one collector is gateway and collects; on a cluster the gateway is one and each node has its own.
const (
	Cluster = "cluster"
	Docker  = "docker"
	Host    = "host"
)

// Site is what the configuration of its collectors depends on. Its fields are the options of the command.
type Site struct {
	Kind                       string
	Agent, Controller, Cluster string
	Issuer, Audience           string
	IssuerKeys                 string // file; none: the issuer is asked, whenever the gateway starts
	NodesIssuer                string // of a cluster: its own, of the tokens of service accounts
	Metrics, Logs, TokenFile   string
	Queue                      string
	QueueMiB                   int
	GRPC, HTTP, Health, Own    string
	Gateway                    string
	Tetragon                   string
	Containers, ServiceAccount string
	KubeletSelfSigned          bool
	Ephemeral                  bool
	Image                      string
	Store, Retention           string // of a Prometheus at the site; no Store: there is none
	StoreMiB                   int
	StoreImage                 string
}

// File is one file of configuration.
type File struct{ Name, Text string }

//go:embed *.yaml.tmpl
var templates embed.FS

// name is what an identifier may consist of: nothing with a meaning in YAML, in the collector's statements or in its variables.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*$`)

// check returns all faults of a site, each with its option.
func (s Site) check() error {
	var faults []error
	wrong := func(option, format string, a ...any) {
		faults = append(faults, fmt.Errorf("-%s: "+format, append([]any{option}, a...)...))
	}
	if s.Kind != Cluster && s.Kind != Docker && s.Kind != Host {
		wrong("kind", "%q is none of cluster, docker, host", s.Kind)
	}
	for _, one := range []struct {
		option, value string
		must          bool
	}{
		{"agent-id", s.Agent, true}, {"controller-id", s.Controller, true}, {"cluster-id", s.Cluster, false}, {"audience", s.Audience, true},
	} {
		if (one.value != "" || one.must) && !name.MatchString(one.value) {
			wrong(one.option, "%q is not an identifier of letters, digits and ._:/@-", one.value)
		}
	}
	for _, one := range []struct {
		option, value string
		must          bool
	}{
		{"issuer", s.Issuer, s.Kind != Cluster},
		{"nodes-issuer", s.NodesIssuer, s.Kind == Cluster},
		{"metrics", s.Metrics, true},
		{"logs", s.Logs, false},
		{"gateway", s.Gateway, s.Kind == Cluster},
	} {
		if one.value == "" && !one.must {
			continue
		}
		if u, err := url.Parse(one.value); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			wrong(one.option, "%q is not the URL of a server", one.value)
		}
	}
	for option, value := range map[string]string{"grpc": s.GRPC, "http": s.HTTP, "health": s.Health, "own-metrics": s.Own} {
		if _, _, err := net.SplitHostPort(value); err != nil {
			wrong(option, "%q is not an address and a port", value)
		}
	}
	if s.Store != "" {
		if s.Kind == Cluster && s.Image != "" && s.StoreImage == "" {
			wrong("store-image", "kubernetes.yaml needs the image of Prometheus")
		}
		if _, _, err := net.SplitHostPort(s.Store); err != nil {
			wrong("store", "%q is not an address and a port", s.Store)
		}
		if d, err := model.ParseDuration(s.Retention); err != nil || d <= 0 {
			wrong("store-retention", "%q is not a time such as 6h", s.Retention)
		}
		if s.StoreMiB < 1 {
			wrong("store-mib", "%d is not a size", s.StoreMiB)
		}
	}
	if s.IssuerKeys != "" && s.Issuer == "" {
		wrong("issuer-keys", "there is no -issuer whose keys they are")
	}
	if s.Queue == "" {
		wrong("queue", "a folder is needed")
	}
	if s.QueueMiB < 1 {
		wrong("queue-mib", "%d is not a size", s.QueueMiB)
	}
	return errors.Join(faults...)
}

// Files returns the configuration of the site's collectors.
func (s Site) Files() ([]File, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	names := []string{"gateway.yaml"}
	if s.Kind == Cluster {
		names = append(names, "node.yaml")
	}
	if s.Store != "" {
		names = append(names, "prometheus.yaml")
	}
	t, err := template.New("").Funcs(template.FuncMap{"quote": quote, "quoteText": text, "host": host, "port": port, "dir": path.Dir, "base": path.Base}).ParseFS(templates, "*.tmpl")
	if err != nil {
		return nil, err
	}
	var files []File
	for _, file := range names {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, file+".tmpl", s); err != nil {
			return nil, err
		}
		files = append(files, File{file, b.String()})
	}
	if s.Kind == Cluster && s.Image != "" {
		var b bytes.Buffer
		objects := struct {
			Site          Site
			Gateway, Node string
			Store         string
			Disk          int
		}{s, files[0].Text, files[1].Text, "", disk(s)}
		if s.Store != "" {
			objects.Store = files[2].Text
		}
		if err := t.ExecuteTemplate(&b, "kubernetes.yaml.tmpl", objects); err != nil {
			return nil, err
		}
		files = append(files, File{"kubernetes.yaml", b.String()})
	}
	return files, nil
}

// StoreArguments are those of the Prometheus at the site, but for its configuration and folder.
func (s Site) StoreArguments() []string {
	return []string{
		"--web.enable-otlp-receiver", "--web.listen-address=" + s.Store,
		"--storage.tsdb.retention.time=" + s.Retention, "--storage.tsdb.retention.size=" + strconv.Itoa(s.StoreMiB) + "MB",
	}
}

// StoreDisk is how many MiB its disk has: the log of what is new, and what is being made smaller, come on top.
func (s Site) StoreDisk() int { return 2*s.StoreMiB + 256 }

// StoreURL is where the gateway sends to it.
func (s Site) StoreURL() (string, error) {
	h, p, err := net.SplitHostPort(s.Store)
	if s.Kind == Cluster {
		h = "site-metrics"
	} else if ip := net.ParseIP(h); h == "" || ip != nil && ip.IsUnspecified() {
		h = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(h, p) + "/api/v1/otlp/v1/metrics", err
}

// disk is how many MiB the gateway's has: two queues, and as much again for making room.
func disk(s Site) int { return 4*s.QueueMiB + 64 }

// text makes a YAML text.
func text(of string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // a text of JSON is one of YAML
	e.SetEscapeHTML(false)
	err := e.Encode(of)
	return strings.TrimSpace(b.String()), err
}

// quote is the same for the collector, which finds no variables in it.
func quote(of string) (string, error) {
	quoted, err := text(of)
	return strings.ReplaceAll(quoted, "$", "$$"), err
}

func host(address string) (string, error) {
	h, _, err := net.SplitHostPort(address)
	return h, err
}

func port(address string) (string, error) {
	_, p, err := net.SplitHostPort(address)
	return p, err
}

// What pods of a cluster find where: the token of a node's collector for the gateway, which the kubelet renews, and the authority of
// the API server, for the gateway, which has no token.
const (
	nodeToken   = "/var/run/secrets/littoral/token"
	clusterCA   = "/var/run/secrets/cluster/ca.crt"
	nodeSubject = "system:serviceaccount:littoral-agents:collector"
)

// NodeToken is the file with the token of a node's collector.
func (Site) NodeToken() string { return nodeToken }

// ClusterCA is the file with the authority of the cluster's own issuer; empty if that has a certificate that everybody knows.
func (s Site) ClusterCA() string {
	if u, err := url.Parse(s.NodesIssuer); err == nil && strings.HasPrefix(u.Host, "kubernetes.default.svc") && u.Scheme == "https" {
		return clusterCA
	}
	return ""
}

// claim is a claim of the sender's token; nil of what the collector itself collects.
func claim(name string) string {
	return fmt.Sprintf(`otelcol.client.auth.attributes["claims.%s"]`, name)
}

// Stranger holds for what a pod sends with a token of the cluster that is not a node's collector.
func (s Site) Stranger() string {
	return fmt.Sprintf(`%s == %q and otelcol.client.auth.attributes["subject"] != %q`, claim("iss"), s.NodesIssuer, nodeSubject)
}

// hostMetrics are the first words of metrics that only nodes and clusters tell (shared/topology/METRICS.md), however a sender
// spells them: Prometheus makes an underscore of what is no letter or digit, and appends the unit, also to no name at all.
const hostMetrics = "tlum|node|kube|container|SCA|vulnerabilities|scaph|intelligence|littoral|tetragon|otelcol"

// Pretended holds for metrics of a node that an application sends.
func (Site) Pretended() string {
	return fmt.Sprintf(`%s != nil and IsMatch(metric.name, "^[^a-zA-Z0-9]*((%s)([^a-zA-Z0-9]|$)|$)")`, claim(label.AppInstance), hostMetrics)
}

// Claimed is a label that the sender's token may say, with the statements that then set it, whatever else the sender says.
type Claimed struct {
	If            string
	Metrics, Logs []string
}

// Claims are the labels that tokens say: of which host of the site a sender is, or of which application.
func (Site) Claims() []Claimed {
	var all []Claimed
	for _, one := range []struct{ label, mark string }{
		{label.Host, ""},
		{label.HostName, ""},
		{label.AppName, label.MarkApplication},
		{label.AppInstance, label.MarkInstance},
		{label.AppComponent, label.MarkComponent},
	} {
		said := claim(one.label)
		without := func(attributes, name string) string {
			return fmt.Sprintf(`delete_matching_keys(%s, %q)`, attributes, sameName(name))
		}
		set := func(attributes string) string {
			return fmt.Sprintf(`set(%s[%q], String(%s))`, attributes, one.label, said)
		}
		c := Claimed{If: said + " != nil"}
		c.Metrics = []string{without("resource.attributes", one.label), without("datapoint.attributes", one.label), set("datapoint.attributes")}
		c.Logs = []string{without("resource.attributes", one.label), without("log.attributes", one.label)}
		if one.mark != "" { // by which logs say it, see LogFields
			c.Logs = append(c.Logs, fmt.Sprintf(`delete_key(resource.attributes, %q)`, one.mark))
		}
		c.Logs = append(c.Logs, set("resource.attributes"))
		all = append(all, c)
	}
	return all
}

// owner are the labels that say whose a series is, as the gateway knows them.
func (s Site) owner() []struct{ label, value string } {
	return []struct{ label, value string }{{label.Agent, s.Agent}, {label.Controller, s.Controller}, {label.Cluster, s.Cluster}}
}

// sameName matches every name that Prometheus stores as that one: what is no letter or digit becomes an underscore there, and
// several become one. A sender could otherwise say icos.agent.id, which would be joined to ours.
func sameName(name string) string {
	return "^" + strings.ReplaceAll(name, "_", "[^a-zA-Z0-9]+") + "$"
}

// Owned are the statements that set the labels of the owner on attributes, whatever a sender says.
func (s Site) Owned(attributes string) []string {
	var all []string
	for _, one := range s.owner() {
		if one.value == "" {
			continue // hosts of a site that is no cluster each have their own
		}
		all = append(all,
			fmt.Sprintf(`delete_matching_keys(%s, "%s")`, attributes, sameName(one.label)),
			fmt.Sprintf(`set(%s[%q], %q)`, attributes, one.label, one.value))
	}
	return all
}

// Identity are the statements that let metrics by which clusters and agents come to be speak of this agent alone. Their names
// are compared as Prometheus makes them, which appends the unit.
func (s Site) Identity() []string {
	var all []string
	for _, one := range []struct{ metric, label string }{{"tlum_orch_info", "agent_id"}, {"tlum_ocm_agent_info", "id"}} {
		of := fmt.Sprintf(`where IsMatch(metric.name, "%s")`, sameName(one.metric))
		all = append(all,
			fmt.Sprintf(`delete_matching_keys(datapoint.attributes, "%s") %s`, sameName(one.label), of),
			fmt.Sprintf(`set(datapoint.attributes[%q], %q) %s`, one.label, s.Agent, of))
	}
	return all
}

// NoUnits keeps units from becoming a part of the names that Identity compares.
func (Site) NoUnits() string {
	return `set(metric.unit, "") where IsMatch(metric.name, "^[^a-zA-Z0-9]*tlum")`
}

// LogFields are the statements that give entries the names under which logs are read again.
func (Site) LogFields() []string {
	all := []string{`replace_pattern(log.body, "[\r\n]+$", "") where IsString(log.body)`} // the engine's lines have their ends
	for _, one := range []struct{ field, attribute string }{
		{logs.FieldApplication, label.MarkInstance},
		{logs.FieldComponent, label.MarkComponent},
		{logs.FieldCluster, "k8s.cluster.name"},
		{logs.FieldNode, "k8s.node.name"},
		{logs.FieldPod, "k8s.pod.name"},
		{logs.FieldContainer, "k8s.container.name"},
	} {
		all = append(all, fmt.Sprintf(`set(resource.attributes[%[1]q], resource.attributes[%[2]q]) where resource.attributes[%[2]q] != nil`,
			one.field, one.attribute))
	}
	return all
}

// NodeMetrics are those under node_exporter's names that the taxonomy and policies read (shared/topology/METRICS.md).
func (Site) NodeMetrics() string {
	return "^node_(" + strings.Join([]string{
		"cpu_seconds_total", "memory_MemTotal_bytes", "memory_MemAvailable_bytes", "thermal_zone_temp", "uname_info", "mounted",
		"network_(info|up|address_info|speed_bytes|receive_bytes_total|transmit_bytes_total)", "filesystem_(size|avail)_bytes",
	}, "|") + ")$"
}

// AtMost is a number of MiB within what may wait.
func (s Site) AtMost(mib int) int { return min(mib, s.QueueMiB) }

// QueueBytes is how much may wait.
func (s Site) QueueBytes() int { return s.QueueMiB << 20 }

// TetragonKinds are the kinds of Tetragon's events that are about a process.
func (Site) TetragonKinds() []string {
	return []string{"process_exec", "process_exit", "process_kprobe", "process_tracepoint", "process_uprobe", "process_lsm", "process_loader"}
}

// copied is a value that an entry of the log gets from the event.
type copied struct{ If, From, To string }

// JournalFields are what says whose an entry of the journal is. Names with an underscore before them are journald's own, which nobody else
// can write; Docker's driver makes the others of labels.
func (Site) JournalFields() []copied {
	const entry = "attributes.entry."
	all := []copied{
		{entry + "_HOSTNAME != nil", entry + "_HOSTNAME", `resource["k8s.node.name"]`},
		{entry + "_SYSTEMD_UNIT != nil", entry + "_SYSTEMD_UNIT", "attributes.systemd_unit"},
		{entry + "CONTAINER_ID_FULL != nil", entry + "CONTAINER_ID_FULL", `resource["k8s.container.name"]`},
	}
	for _, mark := range []string{label.MarkInstance, label.MarkComponent} {
		at := entry + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_").Replace(mark))
		all = append(all, copied{entry + `_SYSTEMD_UNIT == "docker.service" and ` + at + " != nil", at, `resource["` + mark + `"]`})
	}
	return all
}

// TetragonFields are what says whose an event is.
func (Site) TetragonFields() []copied {
	const pod = "attributes.process.pod"
	in := "attributes.process != nil and " + pod + " != nil"
	all := []copied{{`attributes.event["node_name"] != nil`, "attributes.event.node_name", `resource["k8s.node.name"]`}}
	for field, attribute := range map[string]string{"name": "k8s.pod.name", "namespace": "k8s.namespace.name"} {
		all = append(all, copied{in, pod + "." + field, `resource["` + attribute + `"]`})
	}
	all = append(all, copied{in + " and " + pod + ".container != nil", pod + ".container.name", `resource["k8s.container.name"]`})
	for _, mark := range []string{label.MarkInstance, label.MarkComponent} {
		at := pod + `.pod_labels["` + mark + `"]`
		all = append(all, copied{in + " and " + pod + ".pod_labels != nil and " + at + " != nil", at, `resource["` + mark + `"]`})
	}
	return all
}
