package cypher

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Bounds says what a query may take.
type Bounds struct {
	Time time.Duration // 0 = DefaultTime
	Role string        // of the database, which the query has; "" = that of the connection
}

// DefaultTime is how long a query may take.
const DefaultTime = 5 * time.Second

// Answer is what a query found.
type Answer struct {
	Rows      []json.RawMessage // each an object of the columns, in their order
	Truncated bool              // there are more rows than an answer takes
}

// readOnly makes the transaction one in which nothing can be written, whatever the statement is. The compiler of expressions
// costs more than these queries take.
const readOnly = `select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', $1, true), set_config('jit', 'off', true)`

const actAs = `select set_config('role', $1, true)`

// Run answers a query.
func Run(ctx context.Context, db *store.DB, text string, parameters map[string]json.RawMessage, b Bounds) (*Answer, error) {
	statement, err := Compile(text, parameters)
	if err != nil {
		return nil, err
	}
	if b.Time == 0 {
		b.Time = DefaultTime
	}
	var answer *Answer
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, readOnly, strconv.FormatInt(b.Time.Milliseconds(), 10)); err != nil {
			return err
		}
		if b.Role != "" {
			if _, err := tx.Exec(ctx, actAs, b.Role); err != nil {
				return err
			}
		}
		answer, err = statement.run(ctx, tx)
		return err
	})
	return answer, explain(err, b)
}

// run reads the rows. The statement is not prepared: there is another one for each query, and a connection keeps few. Postgres says
// of what type its parameters are, since in an image nobody else knows it of a list (.ko.yaml).
func (s *Statement) run(ctx context.Context, tx *store.Tx) (*Answer, error) {
	rows, err := tx.Query(ctx, s.SQL, append([]any{pgx.QueryExecModeDescribeExec}, s.Args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	answer := &Answer{Rows: []json.RawMessage{}}
	values := make([]*string, len(s.Columns))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	keys := make([]string, len(s.Columns))
	for i, name := range s.Columns {
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		keys[i] = string(key)
	}
	for size := 0; rows.Next(); {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := object(keys, values)
		if size += len(row); len(answer.Rows) == MaxRows || size > store.PageBytes && len(answer.Rows) > 0 {
			answer.Truncated = true
			break
		}
		answer.Rows = append(answer.Rows, row)
	}
	rows.Close()
	return answer, rows.Err()
}

func object(keys []string, values []*string) json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key + ":")
		if values[i] == nil {
			b.WriteString("null")
		} else {
			b.WriteString(*values[i])
		}
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// explain says what the caller can do about a query that failed.
func explain(err error, b Bounds) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "57014":
		return problem.Wrap(problem.Invalid, err, "the query took more than %s: ask for less, for example by types, properties or shorter paths", b.Time)
	case "22012":
		return problem.Wrap(problem.Invalid, err, "the query divides by zero")
	case "2201B":
		return problem.Wrap(problem.Invalid, err, "what stands after =~ is no regular expression")
	case "22003", "22P02", "22023", "54000", "54001":
		return problem.Wrap(problem.Invalid, err, "the query computes something that is too large, or no number: %s", problem.Brief(pg.Message, 200))
	}
	return err
}
