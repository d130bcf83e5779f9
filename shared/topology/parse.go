package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
)

// Bounds of a document.
const (
	MaxBytes = 64 << 20
	MaxDepth = 64  // of nested objects and arrays; a taxonomy needs ten
	maxName  = 512 // bytes of a key, name or label
)

// Parse reads a taxonomy in the newest shape or an older one. The error is TooLarge, Malformed for what is not JSON, or
// Invalid with every fault's path, as cluster[a].node[b].staticMetrics.cpuCores. Unknown keys are ignored.
func Parse(body []byte) (*Taxonomy, error) {
	if err := checkText(body); err != nil {
		return nil, err
	}
	p := &parser{}
	t := p.taxonomy(body)
	if err := p.faults.Err("the taxonomy is invalid"); err != nil {
		return nil, err
	}
	return t, nil
}

// checkText refuses text that must not reach the decoder or, like \u0000, Postgres.
func checkText(body []byte) error {
	switch {
	case len(body) > MaxBytes:
		return problem.New(problem.TooLarge, "a taxonomy has at most %d bytes", MaxBytes)
	case !utf8.Valid(body):
		return problem.New(problem.Malformed, "the taxonomy is not valid UTF-8")
	}
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			if bytes.HasPrefix(body[i:], []byte(`\u0000`)) {
				return problem.New(problem.Invalid, "the taxonomy holds a NUL character at byte %d", i)
			}
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return problem.New(problem.Malformed, "the taxonomy nests deeper than %d at byte %d", MaxDepth, i)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(body) {
		var v json.RawMessage
		err := json.Unmarshal(body, &v)
		return problem.Wrap(problem.Malformed, err, "the taxonomy is not valid JSON: %v", err)
	}
	return nil
}

// parser decodes level by level, since encoding/json does not report the map key under which a fault is.
type parser struct{ faults problem.Faults }

func (p *parser) taxonomy(raw []byte) *Taxonomy {
	var outer struct {
		Timestamp Timestamp       `json:"timestamp"`
		Warnings  []string        `json:"warnings"`
		Cluster   json.RawMessage `json:"cluster"`
	}
	if !p.decode("", raw, &outer) {
		return nil
	}
	if outer.Cluster == nil {
		p.faults.Add("cluster", 0, "is missing")
	}
	t := &Taxonomy{Timestamp: outer.Timestamp, Warnings: outer.Warnings}
	t.Cluster = entries(p, "cluster", outer.Cluster, p.cluster)
	return t
}

func (p *parser) cluster(path string, raw []byte) Cluster {
	type plain Cluster
	var outer struct {
		plain
		Node json.RawMessage `json:"node"`
		Pod  json.RawMessage `json:"pod"`
	}
	p.decode(path, raw, &outer)
	c := Cluster(outer.plain)
	p.oneOf(path+".type", c.Type, kinds.Names()...)
	p.oneOf(path+".engine", c.Engine, Kubernetes, Docker, EngineUnknown)
	p.name(path+".name", c.Name)
	c.Node = entries(p, path+".node", outer.Node, p.node)
	c.Pod = entries(p, path+".pod", outer.Pod, p.pod)
	c.completeEngine()
	c.houseKnownPods()
	return c
}

func (p *parser) node(path string, raw []byte) Node {
	type plain Node
	var outer struct {
		plain
		Vulnerabilities map[string]int64 `json:"vulnerabilities"`
		Pod             json.RawMessage  `json:"pod"`
		Devices         json.RawMessage  `json:"devices"`
		Interfaces      json.RawMessage  `json:"networkInterfaces"`
	}
	p.decode(path, raw, &outer)
	n := Node(outer.plain)
	n.Pod = entries(p, path+".pod", outer.Pod, p.pod)
	n.Devices = entries(p, path+".devices", outer.Devices, p.device)
	n.NetworkInterfaces = entries(p, path+".networkInterfaces", outer.Interfaces, decoded[NetworkInterface](p))
	for severity, count := range outer.Vulnerabilities {
		if n.Vulnerabilities == nil {
			n.Vulnerabilities = map[string]int64{}
		}
		n.Vulnerabilities[strings.ToLower(severity)] += count // the older shape writes Critical
	}
	p.checkNode(path, &n)
	return n
}

func (p *parser) checkNode(path string, n *Node) {
	p.name(path+".name", n.Name)
	p.oneOf(path+".engine", n.Engine, Kubernetes, Docker, EngineUnknown)
	for key, value := range n.Labels {
		p.name(path+".labels", key)
		p.name(fmt.Sprintf("%s.labels[%s]", path, key), value)
	}
	static, dynamic := n.StaticMetrics, n.DynamicMetrics
	p.atMost(path+".ScaScore", n.ScaScore, 100)
	p.atMost(path+".lastSeen", n.LastSeen, maxSeconds)
	p.atMost(path+".staticMetrics.cpuCores", static.CPUCores, 1<<20)
	p.atMost(path+".staticMetrics.RAMMemory", static.RAMMemory, 1<<60)
	p.atMost(path+".dynamicMetrics.cpuUsagePercent", dynamic.CPUUsagePercent, maxPercent)
	p.atMost(path+".dynamicMetrics.memoryUsagePercent", dynamic.MemoryUsagePercent, maxPercent)
	p.atMost(path+".dynamicMetrics.freeRAM", dynamic.FreeRAM, 1<<60)
	p.atMost(path+".dynamicMetrics.usedRAM", dynamic.UsedRAM, 1<<60)
	p.atMost(path+".dynamicMetrics.cpuEnergyConsumption", dynamic.CPUEnergyConsumption, 1e300)
	p.atMost(path+".dynamicMetrics.cpuPowerWatts", dynamic.CPUPowerWatts, 1e9)
}

const (
	maxSeconds = 253402300799 // the end of year 9999, the last that RFC 3339 can write
	maxPercent = 1000         // a source may overshoot 100 by its rounding; the factor ten catches one in the wrong unit
)

func (p *parser) device(path string, raw []byte) Device {
	d := decoded[Device](p)(path, raw)
	p.oneOf(path+".status", d.Status, DeviceAvailable, DeviceBusy, DeviceDetached, DeviceUnknown)
	return d
}

func (p *parser) pod(path string, raw []byte) Pod {
	pod := decoded[Pod](p)(path, raw)
	p.name(path+".name", pod.Name)
	for name, c := range pod.Container {
		p.atMost(fmt.Sprintf("%s.container[%s].cpuUsage", path, name), c.CPUUsage, 1<<20)
		p.atMost(fmt.Sprintf("%s.container[%s].containerMemory", path, name), c.ContainerMemory, 1<<60)
	}
	return pod
}

// decoded returns a function for entries that reads plain values.
func decoded[E any](p *parser) func(path string, raw []byte) E {
	return func(path string, raw []byte) (e E) {
		p.decode(path, raw, &e)
		return e
	}
}

// decode fills v and records a value of the wrong type under its path.
func (p *parser) decode(path string, raw []byte, v any) bool {
	err := json.Unmarshal(raw, v)
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &typ):
		// The helper structs embed the real type, whose Go name encoding/json puts into the path.
		field := strings.TrimPrefix(typ.Field, "plain.")
		p.faults.Add(strings.Trim(path+"."+field, "."), 0, "is a JSON %s, want %s", typ.Value, want(typ))
	default:
		p.faults.Add(path, 0, "cannot be read: %v", err)
	}
	return false
}

// want names the JSON type for a Go type.
func want(typ *json.UnmarshalTypeError) string {
	switch kind := typ.Type.Kind().String(); {
	case kind == "struct" || kind == "map":
		return "object"
	case kind == "slice":
		return "array"
	case strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "float"):
		return "number"
	default:
		return kind
	}
}

// entries reads a JSON object key by key, so that a key given twice is seen. null and a missing object have none.
func entries[E any](p *parser, path string, raw []byte, read func(path string, raw []byte) E) map[string]E {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		p.faults.Add(path, 0, "is a JSON %s, want object", kindOf(raw))
		return nil
	}
	all := map[string]E{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			p.faults.Add(path, 0, "cannot be read: %v", err)
			return all
		}
		key, _ := token.(string)
		at := fmt.Sprintf("%s[%s]", path, shorten(key))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			p.faults.Add(at, 0, "cannot be read: %v", err)
			return all
		}
		if _, twice := all[key]; twice {
			p.faults.Add(at, 0, "is given twice")
		}
		if key == "" {
			p.faults.Add(path, 0, "holds an empty key")
		}
		p.name(at, key)
		all[key] = read(at, value)
	}
	return all
}

func (p *parser) name(path, name string) {
	switch {
	case len(name) > maxName:
		p.faults.Add(path, 0, "has %d bytes, at most %d are allowed", len(name), maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		p.faults.Add(path, 0, "holds a control character")
	}
}

func (p *parser) oneOf(path, value string, allowed ...string) {
	if value == "" {
		return
	}
	for _, a := range allowed {
		if a == value {
			return
		}
	}
	p.faults.Add(path, 0, "%q is not one of %s", shorten(value), strings.Join(allowed, ", "))
}

func (p *parser) atMost(path string, m Measure, top float64) {
	switch v, known := m.Get(); {
	case known && v < 0:
		p.faults.Add(path, 0, "%v is negative", v)
	case known && v > top:
		p.faults.Add(path, 0, "%v is more than %v", v, top)
	}
}

// shorten keeps a hostile key from filling the answer.
func shorten(s string) string { return problem.Brief(s, 80) }

// completeEngine infers engines that older documents do not have from the cluster type: Nuvla runs Docker, OCM
// Kubernetes. A node without an engine gets its cluster's.
func (c *Cluster) completeEngine() {
	if c.Engine == "" {
		c.Engine = EngineOf(c.Type)
	}
	for key, n := range c.Node {
		if n.Engine == "" {
			n.Engine = c.Engine
			c.Node[key] = n
		}
	}
}

// EngineOf infers the engine from the type of the cluster.
func EngineOf(clusterType string) string {
	if kind, known := kinds.Of(clusterType); known {
		return kind.Engine
	}
	return EngineUnknown
}

// houseKnownPods moves pods of the cluster to the node that one of their containers names.
func (c *Cluster) houseKnownPods() {
	byName := make(map[string]string, len(c.Node))
	for key, n := range c.Node {
		byName[n.Name] = key
		byName[key] = key
	}
	for podKey, p := range c.Pod {
		for _, container := range p.Container {
			key, known := byName[container.Node]
			if container.Node == "" || !known {
				continue
			}
			n := c.Node[key]
			if n.Pod == nil {
				n.Pod = map[string]Pod{}
			}
			n.Pod[podKey] = p
			c.Node[key] = n
			delete(c.Pod, podKey)
			break
		}
	}
}
