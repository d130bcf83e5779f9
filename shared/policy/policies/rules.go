package policies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Rules stores alert rules.
type Rules interface {
	// Put creates or replaces the rule group of a policy and returns the store's name for it.
	Put(ctx context.Context, group registry.RuleGroup) (file string, err error)
	// Delete deletes a rule group; it is no error if there is none.
	Delete(ctx context.Context, file string) error
	// List returns every rule group by its file.
	List(ctx context.Context) (map[string]registry.RuleGroup, error)
	// URL is where people can read the rules.
	URL() string
}

// ruleClaim is how long one attempt to change a rule may take.
const ruleClaim = time.Minute

func claimOfRule(id uuid.UUID) string { return "rule of policy " + id.String() }

// Sync makes the rule store follow the policy as it is now, not as it was when someone asked, until there is nothing left
// to follow. Only one call at a time does so for a policy, and so an older state never overwrites a newer one. The error
// is store.ErrClaimed for any other.
func Sync(ctx context.Context, db *store.DB, rules Rules, id uuid.UUID) error {
	for more := true; more; {
		var change *ruleChange
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			change, err = claimRule(ctx, tx, id)
			return err
		})
		if err != nil || change == nil {
			return err
		}
		if err := change.claim.Do(ctx, func(ctx context.Context) error { return change.act(ctx, rules) }); err != nil {
			return db.Release(ctx, change.claim, err)
		}
		err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			more, err = change.complete(ctx, tx, id)
			return err
		})
		if err != nil {
			return db.Release(ctx, change.claim, err)
		}
	}
	return nil
}

// ruleChange is one step of the rule store towards its policy.
type ruleChange struct {
	claim  *store.Claim
	number int64               // Policy.RuleWanted
	put    *registry.RuleGroup // nil: the policy shall have no rule
	former string              // file that the store has of the policy so far; empty = none

	file, url string
	refused   error // what the store says is wrong with the rule; a repeat would be refused, too
}

// claimRule decides what is to be done, if anything.
func claimRule(ctx context.Context, tx *store.Tx, id uuid.UUID) (*ruleChange, error) {
	p, err := lockAny(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil, nil
	}
	if err != nil || p.RuleDone >= p.RuleWanted {
		return nil, err
	}
	c := &ruleChange{number: p.RuleWanted, former: p.RuleFile}
	if p.Active() && p.watched() {
		group, err := p.group()
		if err != nil {
			return nil, err
		}
		c.put = &group
	}
	c.claim, err = tx.Claim(ctx, claimOfRule(id), ruleClaim)
	return c, err
}

// act changes the rule store. It may be repeated: the store knows a rule by the name of its group.
func (c *ruleChange) act(ctx context.Context, rules Rules) error {
	if c.put != nil {
		file, err := rules.Put(ctx, *c.put)
		switch {
		case problem.KindOf(err) == problem.Invalid:
			c.refused = err
		case err != nil:
			return err
		default:
			c.file, c.url = file, rules.URL()
		}
	}
	if c.former != "" && c.former != c.file {
		return rules.Delete(ctx, c.former)
	}
	return nil
}

// complete records how far the rule store has followed. more says that the policy has changed again since. If the store
// refused the rule, the policy becomes unknown until it is activated again.
func (c *ruleChange) complete(ctx context.Context, tx *store.Tx, id uuid.UUID) (more bool, err error) {
	p, err := lockAny(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if held, err := tx.Complete(ctx, c.claim); err != nil || !held {
		return false, err
	}
	p.RuleDone, p.RuleFile, p.RuleURL = c.number, c.file, c.url
	more = p.RuleDone < p.RuleWanted
	if c.refused != nil && !more {
		if err := p.refused(ctx, tx, c.refused); err != nil {
			return false, err
		}
	}
	return more, p.synced(ctx, tx)
}

// group is the rule group of the policy. A rules API knows a group by its name, and Prometheus an alert by its labels,
// of which the expression may leave only the alert's name. Names are unique within one application only: if a name does
// not contain the instance, the policy's id is added to tell equal names apart.
func (p *Policy) group() (registry.RuleGroup, error) {
	g, err := p.RuleGroup()
	if err != nil || p.Instance != "" && p.Instance == instanceIn(p.Name) {
		return g, err
	}
	g.Name += " " + p.ID
	for _, rule := range g.Rules {
		rule.Labels[registry.LabelID] = p.ID
	}
	return g, nil
}

var instanceForm = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// instanceIn returns the instance id in the name, as names from descriptors have it; empty unless there is exactly one.
func instanceIn(name string) string {
	if found := instanceForm.FindAllString(name, 2); len(found) == 1 {
		return found[0]
	}
	return ""
}

// synced records how far the rule store has followed, and deletes the row of a deleted policy whose rule is gone. If a
// person has deleted a policy of a descriptor, the row stays as a mark: otherwise Follow would create the policy again.
func (p *Policy) synced(ctx context.Context, tx *store.Tx) error {
	if p.DeletedAt != nil && p.OriginVersion == 0 && p.RuleDone >= p.RuleWanted {
		return p.forget(ctx, tx)
	}
	_, err := tx.Exec(ctx, `update policies set rule_done = $2, rule_file = $3, rule_url = $4 where id = $1`,
		p.UUID(), p.RuleDone, p.RuleFile, p.RuleURL)
	if err != nil {
		return fmt.Errorf("note the rule: %w", err)
	}
	return nil
}

func (p *Policy) forget(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.Exec(ctx, `delete from policies where id = $1`, p.UUID()); err != nil {
		return fmt.Errorf("forget policy: %w", err)
	}
	return nil
}

// Repaired is what Reconcile found wrong.
type Repaired struct{ Missing, Orphans, Late int }

// Reconcile compares the rule store with the policies: a rule that is missing or differs is asked for again, one
// without an active policy is deleted. Rules that name no policy belong to somebody else.
//
// Late changes are carried over even if the rule store cannot list its rules, as the rules API of ICOS cannot.
func Reconcile(ctx context.Context, db *store.DB, rules Rules) (Repaired, error) {
	var r Repaired
	err := r.compare(ctx, db, rules)
	if rules.URL() != "" {
		err = errors.Join(err, r.askAgain(ctx, db, false, nil))
	}
	n, late := syncLate(ctx, db, rules)
	r.Late = n
	return r, errors.Join(err, late)
}

// compare lists the rules before it reads the policies. A rule is only made after its policy was stored, so a rule
// whose policy does not exist then is an orphan.
func (r *Repaired) compare(ctx context.Context, db *store.DB, rules Rules) error {
	listed, err := rules.List(ctx)
	if err != nil {
		return err
	}
	found, doubtful, err := inStep(ctx, db, listed)
	if err != nil {
		return err
	}
	for file, id := range doubtful {
		fits, err := checkRule(ctx, db, rules, id, file, listed[file])
		if err != nil {
			return err
		}
		if fits {
			found[id] = true
		} else {
			r.Orphans++
		}
	}
	return r.askAgain(ctx, db, true, found)
}

// readAtOnce is how many policies are read by one statement; each may have some KiB.
const readAtOnce = 200

// inStep returns the policies whose rules are as wanted (found), and by file the policies that the other rules name (doubtful).
// Nearly all rules are in step. To lock all their policies one by one would take longer than a tick, and would wait for each
// policy whose change is being carried over.
func inStep(
	ctx context.Context, q store.Querier, listed map[string]registry.RuleGroup,
) (found map[string]bool, doubtful map[string]string, err error) {
	found, doubtful = map[string]bool{}, map[string]string{}
	files := map[uuid.UUID][]string{}
	for file, group := range listed {
		id := owner(group)
		if id == "" {
			continue
		}
		doubtful[file] = id
		if known, err := uuid.Parse(id); err == nil {
			files[known] = append(files[known], file)
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(files)), readAtOnce) {
		list, err := many(ctx, q, selectSome, ids)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range list {
			for _, file := range files[p.UUID()] {
				if fits, err := p.has(file, listed[file]); err == nil && fits {
					found[doubtful[file]] = true
					delete(doubtful, file)
				}
			}
		}
	}
	return found, doubtful, nil
}

// has reports whether the rule in the file is, or is about to become, the one that the policy wants.
func (p *Policy) has(file string, group registry.RuleGroup) (bool, error) {
	switch {
	case p.RuleDone < p.RuleWanted: // a change is being carried over right now
		return true, nil
	case !p.Active() || p.RuleFile != file:
		return false, nil
	}
	want, err := p.group()
	return err == nil && alike(want, group), err
}

// owner is the policy that a group names; empty when it names none.
func owner(group registry.RuleGroup) string {
	for _, rule := range group.Rules {
		if id := rule.Annotations[registry.AnnotationID]; id != "" {
			return id
		}
	}
	return ""
}

// checkRule deletes an orphan. fits is true for a rule that is, or is about to become, what its policy wants.
func checkRule(
	ctx context.Context, db *store.DB, rules Rules, id, file string, group registry.RuleGroup,
) (fits bool, err error) {
	known, err := uuid.Parse(id)
	if err != nil {
		return false, rules.Delete(ctx, file)
	}
	var claim *store.Claim
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		fits, claim, err = claimOrphan(ctx, tx, known, file, group)
		return err
	})
	if errors.Is(err, store.ErrClaimed) {
		return true, nil // being changed right now
	}
	if err != nil || fits {
		return fits, err
	}
	return false, db.Release(ctx, claim, claim.Do(ctx, func(ctx context.Context) error { return rules.Delete(ctx, file) }))
}

// claimOrphan claims the rule if its policy wants another one or none, so that nobody puts it meanwhile.
func claimOrphan(
	ctx context.Context, tx *store.Tx, id uuid.UUID, file string, group registry.RuleGroup,
) (fits bool, claim *store.Claim, err error) {
	p, err := lockAny(ctx, tx, id)
	switch {
	case problem.KindOf(err) == problem.NotFound:
	case err != nil:
		return false, nil, err
	default:
		if fits, err = p.has(file, group); fits || err != nil {
			return fits, nil, err
		}
		if p.Active() && p.RuleFile == file {
			return true, nil, p.follow(ctx, tx) // asked for here, once
		}
	}
	claim, err = tx.Claim(ctx, claimOfRule(id), ruleClaim)
	return false, claim, err
}

// alike reports whether two groups fire alike and give their alerts the same labels, however they are written.
func alike(a, b registry.RuleGroup) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(a, b registry.Rule) bool {
		return a.Expr == b.Expr && sameFor(a.For, b.For) && maps.Equal(a.Labels, b.Labels)
	})
}

// sameFor compares durations, which a store may write differently: 1m for 60s, nothing for 0.
func sameFor(a, b string) bool {
	x, _ := template.ParseDuration(a)
	y, _ := template.ParseDuration(b)
	return x == y
}

const selectFollowed = `select id from policies where deleted_at is null and phase in ('enforced', 'violated')
and rule_done >= rule_wanted and (rule_file <> '') = $1 order by id`

// askAgain asks again for the rules that should be in the store and were not found there. put selects rules that were
// stored before; false selects those that never were, since no rules API was set when their turn came.
func (r *Repaired) askAgain(ctx context.Context, db *store.DB, put bool, found map[string]bool) error {
	ids, err := store.Collect(ctx, db, "find policies", pgx.RowTo[uuid.UUID], selectFollowed, put)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if found[id.String()] {
			continue
		}
		r.Missing++
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			p, err := lockAny(ctx, tx, id)
			if problem.KindOf(err) == problem.NotFound {
				return nil
			}
			if err != nil || !p.Active() {
				return err
			}
			return p.follow(ctx, tx)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const selectLate = `select id from policies where rule_done < rule_wanted
and updated_at < now() - $1::interval order by id`

// late is the age at which a change that was not carried over counts as forgotten. The Broker, whose Triggers deliver
// for seven minutes, has given up by then.
const late = 10 * time.Minute

// syncLate carries late changes over itself. Emitting an event for each at every tick would give a dead letter for
// each, as long as the rules API is away.
func syncLate(ctx context.Context, db *store.DB, rules Rules) (int, error) {
	ids, err := store.Collect(ctx, db, "find policies", pgx.RowTo[uuid.UUID], selectLate, late)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, id := range ids {
		if err := Sync(ctx, db, rules, id); !errors.Is(err, store.ErrClaimed) {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return len(ids), errors.Join(failed...)
}
