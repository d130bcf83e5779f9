// Package about says whether policies are about an application, for those whom package policies itself builds on.
package about

import (
	"context"
	"fmt"

	"github.com/littoral-project/littoral/shared/store"
)

// Any reports whether a policy is about the instance (an application's id), also one that is paused or being deleted.
func Any(ctx context.Context, q store.Querier, instance string) (found bool, err error) {
	const one = `select exists (select 1 from policies where instance = $1)`
	if err := q.QueryRow(ctx, one, instance).Scan(&found); err != nil {
		return false, fmt.Errorf("look for policies: %w", err)
	}
	return found, nil
}
