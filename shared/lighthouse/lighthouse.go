// Package lighthouse is the phone book of controllers: who they say they are and where, as long as they say so. It is never
// an authority: what a controller may do, its own tokens say (shared/docs/contracts.md §11).
package lighthouse

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Config is read from the environment by envconfig.
type Config struct {
	Timeout time.Duration `envconfig:"LIGHTHOUSE_CONTROLLER_TIMEOUT" default:"60s"` // a controller that is silent for longer is gone
}

// Path is where controllers register and are listed.
const Path = "/api/v3/controller/"

// Controller is a registration.
type Controller struct {
	Name    string    `db:"name"    json:"name"`
	Address string    `db:"address" json:"address"`
	SeenAt  time.Time `db:"seen_at" json:"seenAt"`

	// What the lighthouse found when it last asked the controller itself, if it has.
	Healthy   *bool      `db:"healthy"    json:"healthy,omitempty"`
	CheckedAt *time.Time `db:"checked_at" json:"checkedAt,omitempty"`
	Trouble   string     `db:"trouble"    json:"trouble,omitempty"`
}

const (
	selectAlive = `select name, address, seen_at, healthy, checked_at, trouble from controllers
where seen_at > now() - make_interval(secs => $1) order by registered_at, address`

	// One that is gone may be registered anew by anybody with the role; one that is there only by its owner.
	upsert = `insert into controllers (address, name, owner) values ($1, $2, $3)
on conflict (address) do update set name = excluded.name, owner = excluded.owner, seen_at = now(),
registered_at = case when controllers.seen_at > now() - make_interval(secs => $4) then controllers.registered_at else now() end
where controllers.owner = excluded.owner or controllers.seen_at <= now() - make_interval(secs => $4)
returning registered_at = now()`

	updateHealth = `update controllers set healthy = $2, trouble = $3, checked_at = now() where address = $1`

	deleteGone = `delete from controllers where seen_at <= now() - make_interval(secs => $1)`
)

// Alive lists the controllers that have not fallen silent, the one registered first first.
func Alive(ctx context.Context, q store.Querier, silence time.Duration) ([]Controller, error) {
	rows, err := q.Query(ctx, selectAlive, silence.Seconds())
	if err != nil {
		return nil, store.Classify(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Controller])
	return found, store.Classify(err)
}

// Register notes that a controller is there, and reports whether it was not known before. The error is Invalid, or Conflict
// when somebody else keeps the address alive.
func Register(ctx context.Context, tx *store.Tx, c Controller, owner string, silence time.Duration) (fresh bool, err error) {
	if err := c.check(); err != nil {
		return false, err
	}
	rows, err := tx.Query(ctx, upsert, strings.TrimRight(c.Address, "/"), c.Name, owner, silence.Seconds())
	if err != nil {
		return false, store.Classify(err)
	}
	answers, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err != nil {
		return false, store.Classify(err)
	}
	if len(answers) == 0 {
		return false, problem.New(problem.Conflict, "another controller is registered at %s", problem.Brief(c.Address, 100))
	}
	return answers[0], nil
}

// Checked notes what the lighthouse found when it asked a controller itself; trouble is "" for one that answered.
func Checked(ctx context.Context, tx *store.Tx, address, trouble string) error {
	_, err := tx.Exec(ctx, updateHealth, address, trouble == "", trouble)
	return store.Classify(err)
}

// Base is the base URL of a controller. ICOS writes an address without a scheme, which is that of plain HTTP.
func (c Controller) Base() string {
	if plain.MatchString(c.Address) {
		return "http://" + c.Address
	}
	return strings.TrimRight(c.Address, "/")
}

// Sweep forgets the controllers that have fallen silent.
func Sweep(ctx context.Context, tx *store.Tx, silence time.Duration) error {
	_, err := tx.Exec(ctx, deleteGone, silence.Seconds())
	return store.Classify(err)
}

const (
	longestName    = 253
	longestAddress = 300
)

// plain is an address without a scheme, as ICOS writes it: a host or an IP address, and perhaps a port.
var plain = regexp.MustCompile(`^[A-Za-z0-9._-]+(:[0-9]{1,5})?$|^\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?$`)

func (c Controller) check() error {
	var faults problem.Faults
	switch {
	case strings.TrimSpace(c.Name) == "":
		faults.Add("name", 0, "is missing")
	case len(c.Name) > longestName || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }):
		faults.Add("name", 0, "has more than %d bytes, or characters that are no letters", longestName)
	}
	u, err := url.Parse(c.Address)
	switch {
	case c.Address == "":
		faults.Add("address", 0, "is missing")
	case len(c.Address) > longestAddress:
		faults.Add("address", 0, "has more than %d bytes", longestAddress)
	case plain.MatchString(c.Address):
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		faults.Add("address", 0, "is neither a host nor the URL of one")
	}
	return faults.Err("the controller is not understood")
}
