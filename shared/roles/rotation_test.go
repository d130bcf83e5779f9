package roles_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
)

// TestAPasswordIsChangedWhileItIsUsed, at a Postgres that asks for passwords, and with LITTORAL_PGBOUNCER (the program) at a PgBouncer with
// the configuration of infra/pgbouncer in front of it: the present address is taken until all have the next one.
func TestAPasswordIsChangedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		require.NoError(t, os.Chmod(d, 0o755)) // the servers may run as others
	}
	hba := filepath.Join(dir, "hba.conf")
	require.NoError(t, os.WriteFile(hba, []byte("local all littoral trust\nlocal all all scram-sha-256\n"), 0o644))
	pg, err := localpg.Start(t.Context(), localpg.Options{Dir: filepath.Join(dir, "pg"), Settings: map[string]string{"hba_file": hba}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop()) })
	require.NoError(t, pg.EnsureDatabase(t.Context(), "littoral"))
	require.NoError(t, migrate.Up(t.Context(), pg.URL("littoral")))
	owner, err := pgx.Connect(t.Context(), pg.URL("littoral"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = owner.Close(context.Background()) })
	require.NoError(t, roles.Grant(t.Context(), owner, false))

	server, err := url.Parse(pg.URL("littoral"))
	require.NoError(t, err)
	as := func(name, password string) string {
		address := *server
		address.User = url.UserPassword(name, password)
		return address.String()
	}
	const first, second = "littoral_bus_get_1", "littoral_bus_get_2"
	pooler := as("littoral_pgbouncer_1", "pooler")
	admit := func(l roles.Logins) {
		t.Helper()
		l["pgbouncer"] = pooler
		require.NoError(t, roles.Admit(t.Context(), owner, l))
	}
	admit(roles.Logins{"bus-get": as(first, "a")})
	if program := os.Getenv("LITTORAL_PGBOUNCER"); program != "" {
		server = pgbouncer(t, program, dir, server)
	}
	// Each use is a new connection, as that of a function that starts.
	use := func(user, password string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		config, err := pgx.ParseConfig(as(user, password))
		require.NoError(t, err)
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // PgBouncer has other connections for other transactions
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, `select key from bus_values where number > $1`, 1)
		return err
	}
	require.NoError(t, use(first, "a"))
	require.Error(t, use(first, "b"))
	require.Error(t, use(second, "b"))

	_, err = owner.Exec(t.Context(), `insert into bus_values select key, number, now(), false, '', '' from (values ('a/x', 1), ('b/x', 2)) as v (key, number)`)
	require.NoError(t, err)
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: as(first, "a") + "&default_query_exec_mode=cache_describe"}, nil, nil)
	require.NoError(t, err)
	defer db.Close()
	for _, c := range []struct {
		q    store.Querier
		want []string
	}{{db, nil}, {db.As(store.Application("a")), []string{"a/x"}}, {db, nil}, {db.As(store.Everybody), []string{"a/x", "b/x"}}, {db, nil}} {
		keys, err := store.Collect(t.Context(), c.q, "read keys", pgx.RowTo[string], `select key from bus_values order by key`)
		require.NoError(t, err)
		require.ElementsMatch(t, c.want, keys, "a function that asks for tenants sees rows of whom it asks for")
	}

	admit(roles.Logins{"bus-get": as(first, "a"), "bus-get" + roles.Next: as(second, "b")})
	require.NoError(t, use(first, "a"))
	require.NoError(t, use(second, "b"))
	admit(roles.Logins{"bus-get": as(second, "b")})
	require.NoError(t, use(second, "b"))
	require.Error(t, use(first, "a"))

	admit(roles.Logins{"bus-get": as(second, "b"), "bus-get" + roles.Next: as(first, "c")})
	require.NoError(t, use(second, "b"))
	require.NoError(t, use(first, "c"))
	require.Error(t, use(first, "a"))
}

// pgbouncer starts one before the server, and returns its address.
func pgbouncer(t *testing.T, program, dir string, server *url.URL) *url.URL {
	t.Helper()
	text, err := os.ReadFile("../../infra/pgbouncer/pgbouncer.ini")
	require.NoError(t, err)
	mine := filepath.Join(dir, "pgbouncer")
	require.NoError(t, os.Mkdir(mine, 0o777))
	require.NoError(t, os.Chmod(mine, 0o777)) // whatever the umask is
	config := strings.NewReplacer(
		"host=postgres ", "host="+server.Query().Get("host")+" ", "listen_addr = *", "listen_addr =", "unix_socket_dir =", "unix_socket_dir = "+mine,
		"/etc/pgbouncer/userlist.txt", mine+"/userlist.txt",
	).Replace(string(text))
	if os.Getuid() == 0 { // it may run as the server does, whose socket is private
		socket, err := os.Stat(server.Query().Get("host"))
		require.NoError(t, err)
		account, err := user.LookupId(strconv.Itoa(int(socket.Sys().(*syscall.Stat_t).Uid)))
		require.NoError(t, err)
		config += "user = " + account.Username + "\n"
	}
	for name, content := range map[string]string{"pgbouncer.ini": config, "userlist.txt": `"littoral_pgbouncer_1" "pooler"` + "\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(mine, name), []byte(content), 0o644))
	}
	var log strings.Builder
	cmd := exec.Command(program, filepath.Join(mine, "pgbouncer.ini"))
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			fmt.Println(log.String())
		}
	})
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(mine, ".s.PGSQL.5432"))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	through := *server
	through.RawQuery = url.Values{"host": {mine}, "sslmode": {"disable"}}.Encode()
	return &through
}
