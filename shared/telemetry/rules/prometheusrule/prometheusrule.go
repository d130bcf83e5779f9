// Package prometheusrule keeps each rule group as a PrometheusRule object, which the Prometheus operator hands to every
// Prometheus and ruler whose rule selector matches it.
//
// Objects are applied on the server's side under one field manager, so a Put needs no reading first and a repeat
// changes nothing. Only objects with our label are listed or deleted.
//
// Four requests of the Kubernetes API are all it takes, so it makes them itself: client-go's dynamic client, together
// with the parser that rules are checked with, makes an image of 7.1 MB where 6 are allowed. The tests speak to both
// sides: this package to an API server that answers with the types of apimachinery, and client-go's dynamic client
// reads what this package put there.
package prometheusrule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

const (
	group     = "monitoring.coreos.com"
	version   = group + "/v1"
	kind      = "PrometheusRule"
	prefix    = "littoral-"
	manager   = "littoral"
	ownLabel  = "app.kubernetes.io/managed-by"
	pageLimit = 500
	maxAnswer = 64 << 20 // bytes
)

// Store is the PrometheusRule objects of one namespace.
type Store struct {
	server     Server
	collection string
	labels     map[string]string
}

var _ rules.Store = (*Store)(nil)

// New returns the store. The labels are put on each object for the rule selectors of the place.
func New(server Server, namespace string, labels map[string]string) *Store {
	return &Store{server, "/apis/" + version + "/namespaces/" + url.PathEscape(namespace) + "/prometheusrules", labels}
}

type meta struct {
	Name     string            `json:"name,omitempty"`
	UID      string            `json:"uid,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Continue string            `json:"continue,omitempty"` // of lists
}

type object struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   meta            `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

// Put applies the group's object.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	name := prefix + rules.ID(g.Name)
	spec, err := json.Marshal(rules.Groups{Groups: []rules.Group{g}})
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	labels := map[string]string{}
	for key, value := range s.labels {
		labels[key] = value
	}
	labels[ownLabel] = manager
	query := url.Values{"fieldManager": {manager}, "force": {"true"}}
	err = s.do(ctx, http.MethodPatch, name, query, object{version, kind, meta{Name: name, Labels: labels}, spec}, nil)
	return classify(err, "") // the object need not be there, its namespace must
}

// Delete removes the group's object, if it is one of ours.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	var found object
	if err := s.do(ctx, http.MethodGet, prefix+id, nil, nil, &found); err != nil {
		return classify(err, id)
	}
	if found.Metadata.Labels[ownLabel] != manager {
		return rules.ErrUnknown(id)
	}
	options := map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": found.Metadata.UID},
	}
	return classify(s.do(ctx, http.MethodDelete, prefix+id, nil, options, nil), id)
}

// List returns the groups of our objects.
func (s *Store) List(ctx context.Context) ([]rules.Group, error) {
	var list []rules.Group
	query := url.Values{"labelSelector": {ownLabel + "=" + manager}, "limit": {strconv.Itoa(pageLimit)}}
	for {
		var page struct {
			Metadata meta     `json:"metadata"`
			Items    []object `json:"items"`
		}
		if err := s.do(ctx, http.MethodGet, "", query, nil, &page); err != nil {
			return nil, classify(err, "")
		}
		for i := range page.Items {
			if g, ok := page.Items[i].group(); ok {
				list = append(list, g)
			}
		}
		if page.Metadata.Continue == "" {
			break
		}
		query.Set("continue", page.Metadata.Continue)
	}
	slices.SortFunc(list, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	return list, nil
}

// group returns the one group of an object that Put made.
func (o *object) group() (rules.Group, bool) {
	var content rules.Groups
	if json.Unmarshal(o.Spec, &content) != nil || len(content.Groups) != 1 {
		return rules.Group{}, false
	}
	g := content.Groups[0]
	return g, o.Metadata.Name == prefix+rules.ID(g.Name)
}

// do sends a request about the object, or about the whole collection without a name, and reads what it answers.
func (s *Store) do(ctx context.Context, method, name string, query url.Values, in, out any) error {
	path := s.collection
	if name != "" {
		path += "/" + name
	}
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.server.URL+path+"?"+query.Encode(), body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/apply-patch+yaml") // JSON is YAML
	}
	if err := s.server.authorize(req); err != nil {
		return err
	}
	resp, err := s.server.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return refused(resp.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// refusal is an answer other than 2xx.
type refusal struct {
	code    int
	reason  string // in the words of the API; empty when it was not the API that answered
	message string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the API server answered %d %s: %s", r.code, r.reason, r.message)
}

func refused(code int, answer []byte) error {
	var status struct{ Kind, Reason, Message string }
	if json.Unmarshal(answer, &status) == nil && status.Kind == "Status" {
		return &refusal{code, status.Reason, status.Message}
	}
	return &refusal{code: code, message: strings.ToValidUTF8(string(answer[:min(len(answer), 300)]), "?")}
}

// classify gives an error of the API server the kind that it means; id is that of the object that was asked for. A
// resource that is not known at all is 404 too, but without a Status.
func classify(err error, id string) error {
	if err == nil {
		return nil
	}
	var r *refusal
	if errors.As(err, &r) {
		switch r.code {
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
			return problem.Wrap(problem.Invalid, err, "the API server refuses the rules: %s", r.message)
		case http.StatusNotFound:
			if r.reason == "" {
				return problem.Wrap(problem.Unavailable, err,
					"the cluster has no PrometheusRule: install the Prometheus operator")
			}
			if id != "" {
				return rules.ErrUnknown(id)
			}
		}
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take the rules; try again")
}
