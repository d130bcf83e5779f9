// Package paging says which part of a long listing is asked for, by the last row of the part before.
package paging

import (
	"time"

	"github.com/google/uuid"
)

// Page is the part of a listing that was asked for.
type Page struct {
	Limit int
	After Cursor
}

// Cursor names the last row of the page before; the zero Cursor means the beginning.
type Cursor struct {
	At time.Time `json:"at"`
	ID uuid.UUID `json:"id"`
}

// Bounds of a page's length.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
)
