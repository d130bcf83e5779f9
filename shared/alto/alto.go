// Package alto is the wire form of ALTO (RFC 7285): media types, version tags, cost types, requests with their faults, and
// answers written without a copy of what they show. Beside it, multi-cost requests of RFC 8189, the metrics of RFC 9439 and calendars
// of RFC 8896.
//
// It knows no network: who answers gives names, addresses and a function of costs. An error is one of the four of the RFC and
// has a document of its own, which clients of ALTO understand; a problem document of RFC 9457 they would not.
package alto

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// Media types of answers.
const (
	Directory    = "application/alto-directory+json"
	NetworkMap   = "application/alto-networkmap+json"
	CostMap      = "application/alto-costmap+json"
	EndpointProp = "application/alto-endpointprop+json"
	EndpointCost = "application/alto-endpointcost+json"
	ErrorMedia   = "application/alto-error+json"
)

// Media types of requests.
const (
	NetworkMapFilter   = "application/alto-networkmapfilter+json"
	CostMapFilter      = "application/alto-costmapfilter+json"
	EndpointPropParams = "application/alto-endpointpropparams+json"
	EndpointCostParams = "application/alto-endpointcostparams+json"
)

// Media types of the updates of RFC 8895.
const (
	UpdateParams  = "application/alto-updatestreamparams+json"
	UpdateControl = "application/alto-updatestreamcontrol+json"
	MergePatch    = "application/merge-patch+json"
	JSONPatch     = "application/json-patch+json"
	EventStream   = "text/event-stream"
)

// Modes of costs.
const (
	Numerical = "numerical"
	Ordinal   = "ordinal" // ranks from 1, the least is the best
)

// VersionTag names one state of a network map; equal tags are equal maps.
type VersionTag struct {
	ResourceID string `json:"resource-id"`
	Tag        string `json:"tag"`
}

// CostType says what a cost counts and how.
type CostType struct {
	Mode        string `json:"cost-mode"`
	Metric      string `json:"cost-metric"`
	Description string `json:"description,omitempty"`
}

// Group is the addresses of a PID by their type.
type Group map[string][]string

// Types of addresses.
const (
	IPv4 = "ipv4"
	IPv6 = "ipv6"
)

// Meta is what an answer says about itself.
type Meta struct {
	VTag           *VersionTag  `json:"vtag,omitempty"`
	DependentVTags []VersionTag `json:"dependent-vtags,omitempty"`
	CostType       *CostType    `json:"cost-type,omitempty"`
	MultiCostTypes []CostType   `json:"multi-cost-types,omitempty"`
	Calendars      []Calendar   `json:"calendar-response-attributes,omitempty"`
}

// Calendar says over which intervals of time costs are given: in a directory those that there are, in an answer those that it has, with
// their start.
type Calendar struct {
	CostTypeNames     []string `json:"cost-type-names,omitempty"`
	Start             string   `json:"calendar-start-time,omitempty"` // a date of HTTP
	IntervalSize      float64  `json:"time-interval-size"`            // seconds
	NumberOfIntervals int      `json:"number-of-intervals"`
}

// HTTPDate writes a time as a header of HTTP has it.
func HTTPDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// NetworkMapDocument is a network map, whole or filtered.
type NetworkMapDocument struct {
	Meta       Meta             `json:"meta"`
	NetworkMap map[string]Group `json:"network-map"`
}

// EndpointProperties answers what endpoints are.
type EndpointProperties struct {
	Meta       Meta                         `json:"meta"`
	Properties map[string]map[string]string `json:"endpoint-properties"`
}

// Resources is an information resource directory.
type Resources struct {
	Meta      DirectoryMeta       `json:"meta"`
	Resources map[string]Resource `json:"resources"`
}

// DirectoryMeta names the network map that is meant without a name, and the types of costs.
type DirectoryMeta struct {
	DefaultNetworkMap string              `json:"default-alto-network-map"`
	CostTypes         map[string]CostType `json:"cost-types"`
}

// Resource is one entry of a directory.
type Resource struct {
	URI          string        `json:"uri"`
	MediaType    string        `json:"media-type"`
	Accepts      string        `json:"accepts,omitempty"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	Uses         []string      `json:"uses,omitempty"`
}

// Capabilities say what a resource can do.
type Capabilities struct {
	CostConstraints       *bool             `json:"cost-constraints,omitempty"`
	CostTypeNames         []string          `json:"cost-type-names,omitempty"`
	MaxCostTypes          int               `json:"max-cost-types,omitempty"`
	TestableCostTypeNames []string          `json:"testable-cost-type-names,omitempty"`
	Calendars             []Calendar        `json:"calendar-attributes,omitempty"`
	PropTypes             []string          `json:"prop-types,omitempty"`
	IncrementalChanges    map[string]string `json:"incremental-change-media-types,omitempty"`
	StreamControl         *bool             `json:"support-stream-control,omitempty"`
}

var (
	pidName = regexp.MustCompile(`^[A-Za-z0-9\-:@_.]{1,64}$`)
	metric  = regexp.MustCompile(`^[A-Za-z0-9\-:_.]{1,32}$`)
)

// IsName reports whether the text may be the name of a PID or the id of a resource.
func IsName(text string) bool { return pidName.MatchString(text) }

// Codes of errors.
const (
	Syntax            = "E_SYNTAX"
	MissingField      = "E_MISSING_FIELD"
	InvalidFieldType  = "E_INVALID_FIELD_TYPE"
	InvalidFieldValue = "E_INVALID_FIELD_VALUE"
)

// Error is what is wrong with a request. Exactly one fault is reported, the first that was found.
type Error struct {
	Code        string `json:"code"`
	SyntaxError string `json:"syntax-error,omitempty"`
	Field       string `json:"field,omitempty"` // parents first: cost-type/cost-metric
	Value       string `json:"value,omitempty"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s%s %s", e.Code, e.Field, e.SyntaxError, e.Value)
}

// Write answers the error with status 400.
func (e *Error) Write(w http.ResponseWriter) error {
	text, err := json.Marshal(map[string]*Error{"meta": e})
	if err != nil {
		return fmt.Errorf("encode an error: %w", err)
	}
	w.Header().Set("Content-Type", ErrorMedia)
	w.WriteHeader(http.StatusBadRequest)
	_, err = w.Write(text)
	return err
}

// Missing is the error for a field that is needed.
func Missing(field string) *Error { return &Error{Code: MissingField, Field: field} }

// BadValue is the error for a value that a field may not have.
func BadValue(field, value string) *Error {
	return &Error{Code: InvalidFieldValue, Field: field, Value: brief(value)}
}

// WriteJSON answers a document of a media type.
func WriteJSON(w http.ResponseWriter, media string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	return Write(w, media, text)
}

// Write answers a document that is text already.
func Write(w http.ResponseWriter, media string, text []byte) error {
	w.Header().Set("Content-Type", media)
	_, _ = w.Write(text)
	return nil
}

// brief keeps answers short that quote a request.
func brief(text string) string {
	const most = 100
	if len(text) > most {
		text = text[:most]
	}
	return text
}
