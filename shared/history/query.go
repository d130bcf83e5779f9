package history

import "github.com/google/uuid"

// Query selects entries.
type Query struct {
	Application *uuid.UUID // nil = all
	After       int64      // entries with a higher id, oldest first; negative = the newest ones
	Before      int64      // the newest ones with a lower id
	Limit       int
	Events      []string // of these kinds; none = all
	Light       bool     // without their data
}
