package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lldp is what lldpd of a node has found.
type lldp struct {
	node  string
	ask   func(context.Context) ([]byte, error)
	speed func(port string) int64 // of the node's own port, in bit/s; 0: not known
}

// neighboursIn reads a file: of a node that is named before it, or of this one.
func neighboursIn(file, here string) lldp {
	node, name, named := strings.Cut(file, "=")
	if !named {
		node, name = here, file
	}
	l := lldp{node, func(context.Context) ([]byte, error) { return os.ReadFile(name) }, unknown}
	if node == here {
		l.speed = speedOf
	}
	return l
}

// neighboursHere asks lldpd of this node.
func neighboursHere(program, here string) lldp {
	return lldp{here, func(ctx context.Context) ([]byte, error) {
		ctx, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "-f", "json", "show", "neighbors")
		cmd.Stderr = &said
		out, err := cmd.Output()
		if text := bytes.TrimSpace(said.Bytes()); err != nil && len(text) > 0 {
			return nil, fmt.Errorf("%s: %w: %s", program, err, text)
		}
		return out, err
	}, speedOf}
}

func unknown(string) int64 { return 0 }

// speedOf asks the kernel for the speed of a port, which it has in Mbit/s.
func speedOf(port string) int64 {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", filepath.Base(port), "speed"))
	if err != nil {
		return 0
	}
	mega, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32)
	if err != nil || mega <= 0 {
		return 0
	}
	return mega * 1e6
}

// read returns the node and its neighbours, with a link there and one back to each.
func (l lldp) read(ctx context.Context) (p part, err error) {
	text, err := l.ask(ctx)
	if err != nil {
		return p, err
	}
	found, err := neighboursOf(text)
	if err != nil {
		return p, fmt.Errorf("what lldpd of %s has found cannot be read: %w", l.node, err)
	}
	p.nodes = []node{{ids: []string{l.node}, computer: true}}
	for _, f := range found {
		bits := l.speed(f.port)
		if bits == 0 {
			bits = f.bits
		}
		if !slices.ContainsFunc(p.nodes, func(n node) bool { return n.ids[0] == f.ids[0] }) {
			p.nodes = append(p.nodes, f.node)
		}
		p.links = append(p.links,
			link{source: l.node, target: f.ids[0], bits: bits, more: map[string]string{"port": f.port}},
			link{source: f.ids[0], target: l.node, bits: bits})
	}
	return p, nil
}

// neighbour is one behind a port.
type neighbour struct {
	node

	port string
	bits int64 // as its end of the link says
}

// many is a value or a list of values: lldpcli writes a list only where there are several.
type many[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (m *many[T]) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]T)(m))
	}
	var one T
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	*m = many[T]{one}
	return nil
}

// chassis is a neighbour as lldpcli writes it.
type chassis struct {
	ID struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"id"`
	Addresses    many[string] `json:"mgmt-ip"`
	Capabilities many[struct {
		Type    string `json:"type"`
		Enabled bool   `json:"enabled"`
	}] `json:"capability"`
}

// neighboursOf reads what "lldpcli -f json show neighbors" prints. Ports and neighbours are members by their names; a neighbour
// that has none is the chassis itself.
func neighboursOf(text []byte) ([]neighbour, error) {
	var document struct {
		LLDP *struct {
			Interfaces many[map[string]struct {
				Chassis json.RawMessage `json:"chassis"`
				Port    struct {
					Negotiation struct {
						Current string `json:"current"`
					} `json:"auto-negotiation"`
				} `json:"port"`
			}] `json:"interface"`
		} `json:"lldp"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if document.LLDP == nil {
		return nil, fmt.Errorf(`there is no "lldp" in it`)
	}
	var out []neighbour
	for _, ports := range document.LLDP.Interfaces {
		for port, behind := range ports {
			name, c, err := chassisOf(behind.Chassis)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", port, err)
			}
			n := neighbour{port: port, bits: rate(behind.Port.Negotiation.Current)}
			n.name = name
			for _, id := range slices.Concat([]string{name, c.ID.Value}, c.Addresses) {
				if id != "" {
					n.ids = append(n.ids, id)
				}
			}
			if len(n.ids) == 0 {
				continue
			}
			if c.ID.Type == "mac" {
				n.mac = c.ID.Value
			}
			if len(c.Addresses) > 0 {
				n.ip = c.Addresses[0]
			}
			for _, can := range c.Capabilities {
				if can.Enabled {
					n.computer = can.Type == "Station"
					if !n.computer {
						break
					}
				}
			}
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b neighbour) int { return strings.Compare(a.port, b.port) })
	return out, nil
}

func chassisOf(text json.RawMessage) (name string, c chassis, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return "", c, fmt.Errorf("chassis: %w", err)
	}
	if _, unnamed := members["id"]; !unnamed {
		for name, text = range members {
		}
	}
	return name, c, json.Unmarshal(text, &c)
}

// speeds are how lldpd writes what a port does: 1000BaseTFD, 10GigBaseSR, 2p5GigT.
var speeds = regexp.MustCompile(`^([0-9]+(?:p[0-9]+)?)(G?)`)

// rate returns the bits per second of such a port; 0 where it is none.
func rate(current string) int64 {
	m := speeds.FindStringSubmatch(strings.TrimSpace(current))
	if m == nil {
		return 0
	}
	v, err := strconv.ParseFloat(strings.Replace(m[1], "p", ".", 1), 64)
	if err != nil {
		return 0
	}
	if m[2] == "G" {
		v *= 1000
	}
	return int64(v * 1e6)
}
