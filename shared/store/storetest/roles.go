package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/littoral-project/littoral/shared/store"
)

// EnvRoles names the file with what each function may do (shared/roles/grants.sql); beside it is whose rows those see that ask for
// one tenant. With it, each statement of a function is run in
// the function's role, and is refused if the role lacks a right.
const EnvRoles = "LITTORAL_TEST_ROLES"

// roles is the text of these files, "" if there is none.
var roles = readRoles(os.Getenv(EnvRoles))

func readRoles(file string) string {
	if file == "" {
		return ""
	}
	text := ""
	for _, name := range []string{file, filepath.Join(filepath.Dir(file), "tenants.sql")} {
		sql, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		text += string(sql)
	}
	return text
}

// rolesMark tells a template whose database has the roles from one that has others, or none.
func rolesMark() string {
	if roles == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(roles))
	return "_" + hex.EncodeToString(sum[:4])
}

const assumed = "littoral.role" // what the connection was told last

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (t tracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd implements pgxpool.AcquireTracer. Functions of tests have no role, nor have tests.
func (t tracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, d pgxpool.TraceAcquireEndData) {
	if roles == "" || d.Err != nil || !strings.HasPrefix(d.Conn.Config().Database, made) {
		return // other databases have no roles
	}
	role := "none"
	if function := functionOf(ctx); function != "" {
		if name := store.Role(function); strings.Contains(roles, "'"+name+"'") {
			role = pgx.Identifier{name}.Sanitize()
		}
	}
	data := d.Conn.PgConn().CustomData()
	if data[assumed] == role {
		return
	}
	if _, err := d.Conn.PgConn().Exec(ctx, "set role "+role).ReadAll(); err != nil {
		if ctx.Err() != nil {
			return // the connection is closed, and the caller will see it
		}
		panic(fmt.Sprintf("storetest: set role %s: %v", role, err)) // it would be allowed everything
	}
	data[assumed] = role
}
