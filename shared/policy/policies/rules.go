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

// Rules is where alert rules live.
type Rules interface {
	// Put makes or replaces the rule group of a policy and returns what the store calls it.
	Put(ctx context.Context, group registry.RuleGroup) (file string, err error)
	// Delete takes a rule group away; one that is not there is no error.
	Delete(ctx context.Context, file string) error
	// List returns every rule group by its file.
	List(ctx context.Context) (map[string]registry.RuleGroup, error)
	// URL is where the rules are, for people to read.
	URL() string
}

// Sync makes the rule store follow the policy, as it is now and not as it was when someone asked. The row is held
// meanwhile, so an older state never overwrites a newer one; a crash after the effect repeats it.
func Sync(ctx context.Context, tx *store.Tx, rules Rules, id uuid.UUID) error {
	p, err := lockAny(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || p.RuleDone >= p.RuleWanted {
		return err
	}
	former := p.RuleFile
	p.RuleURL, p.RuleFile = "", ""
	if p.Active() && p.watched() {
		if err := p.put(ctx, tx, rules); err != nil {
			return err
		}
	}
	if former != "" && former != p.RuleFile {
		if err := rules.Delete(ctx, former); err != nil {
			return err
		}
	}
	return p.synced(ctx, tx)
}

// put makes the rule. One that the store refuses now it would refuse again, so the policy says that nothing watches it
// until it is activated anew.
func (p *Policy) put(ctx context.Context, tx *store.Tx, rules Rules) error {
	group, err := p.group()
	if err != nil {
		return err
	}
	file, err := rules.Put(ctx, group)
	if problem.KindOf(err) == problem.Invalid {
		return p.refused(ctx, tx, err)
	}
	if err == nil {
		p.RuleFile, p.RuleURL = file, rules.URL()
	}
	return err
}

// group is the rule group of the policy. A rules API knows a group by its name, and Prometheus an alert by its labels,
// of which the expression may leave none but the alert's name. A name is taken once per application only: where it does
// not say which that is, the policy's id tells alike names apart.
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

// instanceIn is the instance of which the name speaks, as the names from descriptors do; empty where that may be several. Of
// other texts than ids one may hold another.
func instanceIn(name string) string {
	if found := instanceForm.FindAllString(name, 2); len(found) == 1 {
		return found[0]
	}
	return ""
}

// synced notes how far the rule store has followed, and forgets a policy of which nothing is left. One that a person
// took out of an application stays as a mark, or the next look at the descriptor would bring it back.
func (p *Policy) synced(ctx context.Context, tx *store.Tx) error {
	if p.DeletedAt != nil && p.OriginVersion == 0 {
		return p.forget(ctx, tx)
	}
	_, err := tx.Exec(ctx, `update policies set rule_done = $2, rule_file = $3, rule_url = $4 where id = $1`,
		p.UUID(), p.RuleWanted, p.RuleFile, p.RuleURL)
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

// Reconcile compares the rule store with the policies: a rule that is missing or differs is asked for again, one that
// belongs to no active policy is taken away. Rules that name no policy are somebody else's.
//
// What our own rows tell is seen to whatever the store answers: the rules API of ICOS has no list.
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

// compare lists the rules before the policies are read. A rule is made only after its policy was stored, so one whose
// policy is not there then is an orphan for good.
func (r *Repaired) compare(ctx context.Context, db *store.DB, rules Rules) error {
	listed, err := rules.List(ctx)
	if err != nil {
		return err
	}
	found := map[string]bool{} // by policy
	for file, group := range listed {
		id := owner(group)
		if id == "" {
			continue
		}
		fits, err := checkRule(ctx, db, rules, id, file, group)
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

// owner is the policy that a group names; empty when it names none.
func owner(group registry.RuleGroup) string {
	for _, rule := range group.Rules {
		if id := rule.Annotations[registry.AnnotationID]; id != "" {
			return id
		}
	}
	return ""
}

// checkRule takes an orphan away. fits is true for a rule that is, or is about to become, what its policy wants.
func checkRule(
	ctx context.Context, db *store.DB, rules Rules, id, file string, group registry.RuleGroup,
) (fits bool, err error) {
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		known, err := uuid.Parse(id)
		if err != nil {
			return rules.Delete(ctx, file)
		}
		p, err := lockAny(ctx, tx, known)
		if problem.KindOf(err) == problem.NotFound {
			return rules.Delete(ctx, file)
		}
		if err != nil {
			return err
		}
		switch {
		case p.RuleDone < p.RuleWanted: // it is being followed right now
			fits = true
		case p.Active() && p.RuleFile == file:
			want, err := p.group()
			if fits = err != nil || alike(want, group); fits {
				return err
			}
			fits = true // asked for below, once
			return p.follow(ctx, tx)
		default:
			return rules.Delete(ctx, file)
		}
		return nil
	})
	return fits, err
}

// alike compares what makes a rule fire and what its alerts are known by, not how it is written down.
func alike(a, b registry.RuleGroup) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(a, b registry.Rule) bool {
		return a.Expr == b.Expr && sameFor(a.For, b.For) && maps.Equal(a.Labels, b.Labels)
	})
}

// sameFor compares waiting times, which a store may write otherwise than they were put: 1m for 60s, nothing for 0.
func sameFor(a, b string) bool {
	x, _ := template.ParseDuration(a)
	y, _ := template.ParseDuration(b)
	return x == y
}

const selectFollowed = `select id from policies where deleted_at is null and phase in ('enforced', 'violated')
and rule_done >= rule_wanted and (rule_file <> '') = $1 order by id`

// askAgain asks for every rule that should be in the store and was not found there: of those that were put, or of those
// that never were, since no rules API was set when it was their turn.
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

// late is when a change that the rule store has not followed counts as forgotten: the Broker, whose Triggers deliver for
// seven minutes, has given up by then.
const late = 10 * time.Minute

// syncLate carries over what is late itself. An event more for each policy at each tick would become a dead letter more,
// for as long as the rules API does not work.
func syncLate(ctx context.Context, db *store.DB, rules Rules) (int, error) {
	ids, err := store.Collect(ctx, db, "find policies", pgx.RowTo[uuid.UUID], selectLate, late)
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, id := range ids {
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return Sync(ctx, tx, rules, id) })
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return len(ids), errors.Join(failed...)
}
