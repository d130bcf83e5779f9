package roles_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// database is one, and the statements that somebody may run in it.
type database struct {
	*testing.T

	url   string
	owner *pgx.Conn
}

func begin(t *testing.T) database {
	t.Helper()
	url := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return database{t, url, conn}
}

// may reports whether the role may run the statement.
func (w database) may(role, sql string) bool {
	w.Helper()
	allowed := false
	_ = pgx.BeginFunc(w.Context(), w.owner, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.Context(), "set local role "+role)
		require.NoError(w, err)
		_, err = tx.Exec(w.Context(), sql)
		allowed = err == nil
		return pgx.ErrTxCommitRollback // undo
	})
	return allowed
}

const apps = "littoral_jobmanager_group_list"

// TestAFunctionMayDoWhatItNeeds and nothing else, and what it had too much stays until it is to have exactly that.
func TestAFunctionMayDoWhatItNeeds(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	grant := func(exactly bool) { require.NoError(t, roles.Grant(t.Context(), w.owner, exactly)) }
	grant(false)
	require.True(t, w.may(apps, "select id from applications"))
	require.False(t, w.may(apps, "delete from applications"))
	require.False(t, w.may(apps, "select keys from pdlc_agents"))

	_, err := w.owner.Exec(t.Context(), "grant delete on applications to "+apps)
	require.NoError(t, err)
	grant(false)
	require.True(t, w.may(apps, "delete from applications where false"))
	grant(true)
	require.False(t, w.may(apps, "delete from applications where false"))
	require.True(t, w.may(apps, "select id from applications"))
}

// TestAFunctionChangesItsPassword: both users are members of its role until the former one is refused.
func TestAFunctionChangesItsPassword(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	require.NoError(t, roles.Grant(t.Context(), w.owner, false))
	const first, second = "littoral_bus_get_1", "littoral_bus_get_2"
	t.Cleanup(func() {
		_, err := w.owner.Exec(context.Background(), "drop role if exists "+first+", "+second)
		require.NoError(t, err)
	})
	may := func(user string) (login bool) {
		const asked = `select rolcanlogin and pg_has_role(oid, 'littoral_bus_get', 'usage') from pg_roles where rolname = $1`
		require.NoError(t, w.owner.QueryRow(t.Context(), asked, user).Scan(&login))
		return login
	}
	admit := func(l roles.Logins) { require.NoError(t, roles.Admit(t.Context(), w.owner, l)) }
	address := func(user string) string {
		return (&url.URL{Scheme: "postgres", Host: "pgbouncer:5432", Path: "/littoral", User: url.UserPassword(user, "secret")}).String()
	}
	admit(roles.Logins{"bus-get": address(first)})
	admit(roles.Logins{"bus-get": address(first), "bus-get" + roles.Next: address(second)})
	require.True(t, may(first))
	require.True(t, may(second))
	admit(roles.Logins{"bus-get": address(second)})
	require.False(t, may(first))
	require.True(t, may(second))
	admit(roles.Logins{"bus-get": address(second), "bus-get" + roles.Next: address(first)})
	require.True(t, may(first))

	require.ErrorContains(t, roles.Admit(t.Context(), w.owner, roles.Logins{"bus-get": address("littoral")}), "address of bus-get")
}

func TestReadLogins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := roles.ReadLogins(dir)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bus-get"), []byte("postgres://a"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..data"), 0o700)) // as Kubernetes mounts a Secret
	logins, err := roles.ReadLogins(dir)
	require.NoError(t, err)
	require.Equal(t, roles.Logins{"bus-get": "postgres://a"}, logins)
}
