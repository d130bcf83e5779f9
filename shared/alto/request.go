package alto

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// fields are the members of an object, at a path.
type fields struct {
	at      string // with a / at its end, or empty
	members map[string]json.RawMessage
}

// parse reads the one object of a request.
func parse(body []byte) (fields, *Error) {
	if !json.Valid(body) {
		var any json.RawMessage
		err := json.Unmarshal(body, &any)
		var wrong *json.SyntaxError
		if errors.As(err, &wrong) {
			return fields{}, &Error{Code: Syntax, SyntaxError: brief(wrong.Error()) + " at byte " + strconv.FormatInt(wrong.Offset, 10)}
		}
		return fields{}, &Error{Code: Syntax, SyntaxError: "the body is no JSON"}
	}
	f := fields{}
	if json.Unmarshal(body, &f.members) != nil || f.members == nil {
		return f, &Error{Code: Syntax, SyntaxError: "the body is no object"}
	}
	return f, nil
}

func (f fields) has(name string) bool { _, there := f.members[name]; return there }

// object returns the member as an object.
func (f fields) object(name string) (fields, *Error) {
	raw, there := f.members[name]
	if !there {
		return fields{}, Missing(f.at + name)
	}
	inner := fields{at: f.at + name + "/"}
	if json.Unmarshal(raw, &inner.members) != nil || inner.members == nil {
		return inner, &Error{Code: InvalidFieldType, Field: f.at + name}
	}
	return inner, nil
}

// text returns the member, which must be there.
func (f fields) text(name string) (string, *Error) {
	raw, there := f.members[name]
	if !there {
		return "", Missing(f.at + name)
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", &Error{Code: InvalidFieldType, Field: f.at + name}
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is a text
	return text, nil
}

// elements returns the members of an array; none if it is not there. An element of a wrong type is a wrong value of the array.
func (f fields) elements(name string) ([]json.RawMessage, *Error) {
	raw, there := f.members[name]
	if !there {
		return nil, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || bytes.Equal(raw, []byte("null")) {
		return nil, &Error{Code: InvalidFieldType, Field: f.at + name}
	}
	return list, nil
}

// texts returns an array of texts, without those that are there twice.
func (f fields) texts(name string) ([]string, *Error) {
	list, fault := f.elements(name)
	if fault != nil {
		return nil, fault
	}
	seen := make(map[string]bool, len(list))
	var out []string
	for _, raw := range list {
		var text string
		if raw[0] != '"' {
			return nil, BadValue(f.at+name, string(raw))
		}
		_ = json.Unmarshal(raw, &text) // it is a text
		if !seen[text] {
			seen[text] = true
			out = append(out, text)
		}
	}
	return out, nil
}

// MapFilter asks for a part of a network map.
type MapFilter struct {
	PIDs         []string // none: all
	AddressTypes []string // none: all
}

// ParseMapFilter reads one.
func ParseMapFilter(body []byte) (MapFilter, *Error) {
	var m MapFilter
	f, fault := parse(body)
	if fault != nil {
		return m, fault
	}
	if !f.has("pids") {
		return m, Missing("pids")
	}
	if m.PIDs, fault = f.texts("pids"); fault != nil {
		return m, fault
	}
	m.AddressTypes, fault = f.texts("address-types")
	return m, fault
}

// CostFilter asks for costs between PIDs, or between endpoints.
type CostFilter struct {
	Types      []CostType     // those that are answered
	Multi      bool           // each cost is an array, in the order of Types
	Tested     []CostType     // those that constraints are about
	Allowed    [][]Constraint // a cost passes one of the rows, each of which is a conjunction; none: all pass
	Calendared []bool         // by type, whether it is wanted by intervals of time; none: no type is
	Srcs, Dsts []string       // none: all, or the endpoint that asks
}

// Constraint is a bound of one of the tested costs.
type Constraint struct {
	Of       int // in CostFilter.Tested
	Operator string
	Value    float64
}

// holds reports whether a cost is within the bound.
func (c Constraint) holds(cost float64) bool {
	switch c.Operator {
	case "gt":
		return cost > c.Value
	case "lt":
		return cost < c.Value
	case "ge":
		return cost >= c.Value
	case "le":
		return cost <= c.Value
	}
	return cost == c.Value
}

// Passes reports whether costs, which cost returns by their place in Tested, are allowed. One that is not defined is not.
func (c *CostFilter) Passes(cost func(tested int) (float64, bool)) bool {
	if len(c.Allowed) == 0 {
		return true
	}
rows:
	for _, all := range c.Allowed {
		for _, bound := range all {
			if v, known := cost(bound.Of); !known || !bound.holds(v) {
				continue rows
			}
		}
		return true
	}
	return false
}

// Known finds a type of cost that a resource has; the description does not count.
type Known func(CostType) (CostType, bool)

// ParseCostFilter reads a request for a part of a cost map.
func ParseCostFilter(body []byte, known Known) (*CostFilter, *Error) {
	f, fault := parse(body)
	if fault != nil {
		return nil, fault
	}
	c, fault := f.costs(known)
	if fault != nil || !f.has("pids") {
		return c, fault
	}
	p, fault := f.object("pids")
	if fault != nil {
		return nil, fault
	}
	if c.Srcs, fault = p.texts("srcs"); fault != nil {
		return nil, fault
	}
	c.Dsts, fault = p.texts("dsts")
	return c, fault
}

// ParseEndpointCost reads a request for costs between endpoints.
func ParseEndpointCost(body []byte, known Known) (*CostFilter, *Error) {
	f, fault := parse(body)
	if fault != nil {
		return nil, fault
	}
	c, fault := f.costs(known)
	if fault != nil {
		return nil, fault
	}
	p, fault := f.object("endpoints")
	if fault != nil {
		return nil, fault
	}
	if c.Srcs, fault = p.addresses("srcs"); fault != nil {
		return nil, fault
	}
	if c.Dsts, fault = p.addresses("dsts"); fault != nil {
		return nil, fault
	}
	if len(c.Srcs)+len(c.Dsts) == 0 {
		return nil, Missing("endpoints/srcs")
	}
	return c, nil
}

// costs reads which costs are asked for, and their bounds.
func (f fields) costs(known Known) (c *CostFilter, fault *Error) {
	c = &CostFilter{Multi: f.has("multi-cost-types")}
	switch {
	case c.Multi && f.has("cost-type"):
		return nil, BadValue("multi-cost-types", "beside cost-type")
	case c.Multi:
		if c.Types, fault = f.costTypes("multi-cost-types", known); fault == nil && len(c.Types) == 0 {
			fault = BadValue("multi-cost-types", "[]")
		}
	default:
		var one CostType
		if one, fault = f.costType(known); fault == nil {
			c.Types = []CostType{one}
		}
	}
	if fault != nil {
		return nil, fault
	}
	if c.Tested = c.Types; f.has("testable-cost-types") {
		if c.Tested, fault = f.costTypes("testable-cost-types", known); fault != nil {
			return nil, fault
		}
	}
	if fault = f.constraints(c); fault == nil {
		fault = f.calendared(c)
	}
	return c, fault
}

// calendared reads which of the types are wanted as calendars (RFC 8896): as many truth values as there are types.
func (f fields) calendared(c *CostFilter) *Error {
	const name = "calendared"
	list, fault := f.elements(name)
	if fault != nil || !f.has(name) {
		return fault
	}
	if len(list) != len(c.Types) {
		return BadValue(f.at+name, string(f.members[name]))
	}
	for _, raw := range list {
		switch text := string(raw); text {
		case "true", "false":
			c.Calendared = append(c.Calendared, text == "true")
		default:
			return BadValue(f.at+name, text)
		}
	}
	return nil
}

// costType reads the member cost-type.
func (f fields) costType(known Known) (CostType, *Error) {
	o, fault := f.object("cost-type")
	if fault != nil {
		return CostType{}, fault
	}
	return o.asCostType(known)
}

// asCostType reads the object as a type of cost.
func (f fields) asCostType(known Known) (t CostType, fault *Error) {
	if t.Metric, fault = f.text("cost-metric"); fault != nil {
		return t, fault
	}
	if t.Mode, fault = f.text("cost-mode"); fault != nil {
		return t, fault
	}
	if t.Mode != Numerical && t.Mode != Ordinal {
		return t, BadValue(f.at+"cost-mode", t.Mode)
	}
	if !metric.MatchString(t.Metric) {
		return t, BadValue(f.at+"cost-metric", t.Metric)
	}
	found, there := known(t)
	if !there {
		return t, BadValue(f.at+"cost-metric", t.Metric)
	}
	return found, nil
}

func (f fields) costTypes(name string, known Known) ([]CostType, *Error) {
	list, fault := f.elements(name)
	if fault != nil {
		return nil, fault
	}
	var out []CostType
	for _, raw := range list {
		o := fields{at: f.at + name + "/"}
		if json.Unmarshal(raw, &o.members) != nil || o.members == nil {
			return nil, BadValue(f.at+name, string(raw))
		}
		t, fault := o.asCostType(known)
		if fault != nil {
			return nil, fault
		}
		out = append(out, t)
	}
	return out, nil
}

// constraints reads constraints, a conjunction, or or-constraints, a disjunction of such.
func (f fields) constraints(c *CostFilter) *Error {
	const both = "or-constraints"
	if f.has("constraints") && f.has(both) {
		return BadValue(both, "beside constraints")
	}
	if f.has("constraints") {
		all, fault := f.conjunction("constraints", f.members["constraints"], c)
		if fault == nil && len(all) > 0 {
			c.Allowed = [][]Constraint{all}
		}
		return fault
	}
	rows, fault := f.elements(both)
	if fault != nil {
		return fault
	}
	for _, raw := range rows {
		all, fault := f.conjunction(both, raw, c)
		if fault != nil {
			return fault
		}
		if len(all) > 0 {
			c.Allowed = append(c.Allowed, all)
		}
	}
	return nil
}

func (f fields) conjunction(name string, raw json.RawMessage, c *CostFilter) ([]Constraint, *Error) {
	row := fields{members: map[string]json.RawMessage{name: raw}}
	texts, fault := row.texts(name)
	if fault != nil {
		return nil, fault
	}
	var out []Constraint
	for _, text := range texts {
		one, ok := constraint(text, c)
		if !ok {
			return nil, BadValue(f.at+name, text)
		}
		out = append(out, one)
	}
	return out, nil
}

// constraint reads "ge 5", or "[1] ge 5" for the second of several costs.
func constraint(text string, c *CostFilter) (out Constraint, ok bool) {
	if rest, indexed := strings.CutPrefix(text, "["); indexed {
		number, bound, found := strings.Cut(rest, "] ")
		of, err := strconv.Atoi(number)
		if !found || err != nil || of < 0 || of >= len(c.Tested) || !c.Multi {
			return out, false
		}
		out.Of, text = of, bound
	}
	operator, number, found := strings.Cut(text, " ")
	var err error
	if out.Value, err = strconv.ParseFloat(number, 64); err != nil || !found {
		return out, false
	}
	switch out.Operator = operator; operator {
	case "gt", "lt", "ge", "le", "eq":
		return out, true
	}
	return out, false
}

// PropertyRequest asks what endpoints are.
type PropertyRequest struct{ Properties, Endpoints []string }

// ParsePropertyRequest reads one.
func ParsePropertyRequest(body []byte, known func(string) bool) (p PropertyRequest, fault *Error) {
	f, fault := parse(body)
	if fault != nil {
		return p, fault
	}
	for _, name := range []string{"properties", "endpoints"} {
		if !f.has(name) {
			return p, Missing(name)
		}
	}
	if p.Properties, fault = f.texts("properties"); fault != nil {
		return p, fault
	}
	for _, name := range p.Properties {
		if !known(name) {
			return p, BadValue("properties", name)
		}
	}
	if p.Endpoints, fault = f.addresses("endpoints"); fault != nil {
		return p, fault
	}
	switch {
	case len(p.Properties) == 0:
		return p, BadValue("properties", "[]")
	case len(p.Endpoints) == 0:
		return p, BadValue("endpoints", "[]")
	}
	return p, nil
}

// addresses reads an array of typed addresses.
func (f fields) addresses(name string) ([]string, *Error) {
	list, fault := f.texts(name)
	if fault != nil {
		return nil, fault
	}
	for _, text := range list {
		if _, ok := Address(text); !ok {
			return nil, BadValue(f.at+name, text)
		}
	}
	return list, nil
}

// Address reads a typed address, such as ipv4:192.0.2.1.
func Address(text string) (netip.Addr, bool) {
	kind, rest, _ := strings.Cut(text, ":")
	a, err := netip.ParseAddr(rest)
	if err != nil || a.Zone() != "" || (kind != IPv4 && kind != IPv6) || (kind == IPv4) != a.Is4() {
		return netip.Addr{}, false
	}
	return a, true
}

// Typed writes an address with its type.
func Typed(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() {
		return IPv4 + ":" + a.String()
	}
	return IPv6 + ":" + a.String()
}
