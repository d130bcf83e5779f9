// Package ipam gives out the addresses that Ipams ask for. Each gets the smallest prefix of the site's ranges that holds as many as it
// wants, and has it until it is deleted or wants another number. What finds no room waits, and is tried again whenever something has
// changed.
package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// Most is how many addresses can be asked for: as many as IPv4 has.
const Most = 1 << 32

// Codes of an Ipam.
const (
	Requested     = "REQUESTED" // the site has no ranges
	Reserved      = "RESERVED"
	Unfulfillable = "UNFULFILLABLE" // they have no room
)

// Status is the status of an Ipam. Nothing is left out, since where it is merged with an earlier one that would stay.
type Status struct {
	Code     string `json:"code"`
	IPv4CIDR string `json:"ipv4Cidr"`
	Error    string `json:"error"`
}

// ask is a row of ipams.
type ask struct {
	Namespace string       `db:"namespace"`
	Name      string       `db:"name"`
	Addresses int64        `db:"addresses"`
	Code      string       `db:"code"`
	CIDR      netip.Prefix `db:"cidr"` // the zero Prefix: none
	Error     string       `db:"error"`
}

const (
	columns = `select namespace, name, addresses, code, cidr, error from ipams`

	selectOne = columns + ` where namespace = $1 and name = $2`

	// The one that has changed comes first, since it may give back what others wait for.
	selectAll = columns + ` order by (namespace, name) <> ($1, $2), requested_at, namespace, name`

	upsert = `insert into ipams (namespace, name, addresses) values ($1, $2, $3)
on conflict (namespace, name) do update set addresses = excluded.addresses`

	update = `update ipams set code = $3, cidr = $4, error = $5 where namespace = $1 and name = $2`

	remove = `delete from ipams where namespace = $1 and name = $2`
)

// Of returns the status of an Ipam.
func Of(ctx context.Context, q store.Querier, namespace, name string) (Status, error) {
	a, err := store.One(ctx, q, "read the addresses", pgx.RowToStructByName[ask], selectOne, namespace, name)
	if errors.Is(err, pgx.ErrNoRows) { // stored by a version that gave out none: it asks when it is handed in again
		return Status{Code: Requested}, nil
	}
	if err != nil {
		return Status{}, err
	}
	s := Status{Code: a.Code, Error: a.Error}
	if a.CIDR.IsValid() {
		s.IPv4CIDR = a.CIDR.String()
	}
	return s, nil
}

// Reserve has an Ipam ask for so many addresses. What it has it keeps, as far as it still wants it.
func Reserve(ctx context.Context, tx *store.Tx, r Ranges, namespace, name string, addresses int64) error {
	if err := tx.Lock(ctx, store.LockAddresses); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsert, namespace, name, addresses); err != nil {
		return fmt.Errorf("ask for addresses: %w", err)
	}
	return allocate(ctx, tx, r, namespace, name)
}

// Release gives back the addresses of an Ipam. Those that wait get them.
func Release(ctx context.Context, tx *store.Tx, r Ranges, namespace, name string) error {
	if err := tx.Lock(ctx, store.LockAddresses); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, remove, namespace, name); err != nil {
		return fmt.Errorf("give back addresses: %w", err)
	}
	return allocate(ctx, tx, r, namespace, name)
}

// allocate gives everyone what can be given.
func allocate(ctx context.Context, tx *store.Tx, r Ranges, namespace, name string) error {
	all, err := store.Collect(ctx, tx, "read the addresses", pgx.RowToStructByName[ask], selectAll, namespace, name)
	if err != nil {
		return err
	}
	for i := range all {
		a := all[i]
		if a.Code == Reserved && a.CIDR.Bits() == length(a.Addresses) {
			continue
		}
		a.allocate(r, taken(all))
		if a == all[i] {
			continue
		}
		all[i] = a
		if _, err := tx.Exec(ctx, update, a.Namespace, a.Name, a.Code, a.CIDR, a.Error); err != nil {
			return fmt.Errorf("reserve addresses: %w", err)
		}
	}
	return nil
}

func taken(all []ask) (out []netip.Prefix) {
	for i := range all {
		if all[i].CIDR.IsValid() {
			out = append(out, all[i].CIDR)
		}
	}
	return out
}

// allocate gives it what it wants, or says why not. What it has meanwhile it keeps: it may be in use.
func (a *ask) allocate(r Ranges, taken []netip.Prefix) {
	wanted := length(a.Addresses)
	found := r.place(taken, a.CIDR, wanted)
	switch {
	case found.IsValid():
		a.Code, a.CIDR, a.Error = Reserved, found, ""
		return
	case len(r) == 0:
		a.Code, a.Error = Requested, "the site has set no ranges to take addresses from (IPAM_RANGES)"
	default:
		a.Code, a.Error = Unfulfillable, r.left(taken, wanted)
	}
	if a.CIDR.IsValid() {
		a.Error += "; it keeps what it has"
	}
}
