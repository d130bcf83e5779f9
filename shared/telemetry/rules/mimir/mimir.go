// Package mimir keeps rule groups in the ruler of Grafana Mimir or Cortex.
//
// Each group has its own namespace, named by its id, so it can be found and removed without reading all others. The API
// is described at https://grafana.com/docs/mimir/latest/references/http-api/#ruler-rules.
package mimir

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Store is the ruler of one tenant.
type Store struct{ remote *rules.Remote }

var _ rules.Store = (*Store)(nil)

const media = "application/yaml"

// root is the path of the ruler's configuration below the prefix in RULES_URL.
var root = []string{"config", "v1", "rules"}

// New returns the ruler at the remote.
func New(remote *rules.Remote) *Store { return &Store{remote} }

// Put stores the group; the ruler replaces a group with the same namespace and name.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	body, err := yaml.Marshal(g)
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	_, err = s.do(ctx, http.MethodPost, body, rules.ID(g.Name))
	return err
}

// Delete removes the group's namespace. The ruler answers 202 even if it does not exist, so that is checked first.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	found, err := s.get(ctx, id)
	if err == nil && len(found) == 0 {
		return rules.ErrUnknown(id)
	}
	if err == nil {
		_, err = s.do(ctx, http.MethodDelete, nil, id)
	}
	if problem.KindOf(err) == problem.NotFound {
		return rules.ErrUnknown(id)
	}
	return err
}

// List returns the groups whose namespace equals their id; other groups of the tenant are not ours.
func (s *Store) List(ctx context.Context) ([]rules.Group, error) {
	all, err := s.get(ctx)
	if err != nil && problem.KindOf(err) != problem.NotFound { // NotFound means that there is no group at all
		return nil, err
	}
	var list []rules.Group
	for namespace, groups := range all {
		for _, g := range groups {
			if rules.ID(g.Name) == namespace {
				list = append(list, g)
			}
		}
	}
	slices.SortFunc(list, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	return list, nil
}

// get returns the groups of one namespace or of all, by namespace.
func (s *Store) get(ctx context.Context, path ...string) (map[string][]rules.Group, error) {
	body, err := s.do(ctx, http.MethodGet, nil, path...)
	if err != nil {
		return nil, err
	}
	var found map[string][]rules.Group
	if err := yaml.Unmarshal(body, &found); err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the ruler's answer cannot be read")
	}
	return found, nil
}

func (s *Store) do(ctx context.Context, method string, body []byte, path ...string) ([]byte, error) {
	return s.remote.Do(ctx, method, media, body, append(slices.Clone(root), path...)...)
}
