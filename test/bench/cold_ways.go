package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/test/images"
)

// The ways from a function to Postgres. The first two are used in deployments; the third is a reference.
const (
	bySocket    = "socket"    // on the same machine, as on the laptop host
	byPgBouncer = "PgBouncer" // which keeps backends warm, as on a cluster
	byTCP       = "TCP"       // with a new backend for each process
)

// way is one of them, with its DATABASE_URL.
type way struct{ name, address string }

// ways returns the ways that are possible on this machine.
func (w *world) ways(ctx context.Context, database string, socket, tcp string) ([]way, error) {
	all := []way{{bySocket, socket}}
	pooled, err := w.pooler(ctx, database)
	switch {
	case errors.Is(err, exec.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		all = append(all, way{byPgBouncer, pooled})
	}
	return append(all, way{byTCP, tcp}), nil
}

// pooler starts a PgBouncer in front of the database with the settings of infra/pgbouncer, and returns the address that
// scripts/deploy configures in functions. The error is exec.ErrNotFound if the machine has no PgBouncer.
func (w *world) pooler(ctx context.Context, database string) (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return "", exec.ErrNotFound
		}
	}
	settings, err := images.ProjectFile(ctx, "infra/pgbouncer/pgbouncer.ini")
	if err != nil {
		return "", err
	}
	address, err := loopback.Free(ctx)
	if err != nil {
		return "", err
	}
	users := filepath.Join(w.dir, "userlist.txt")
	config := filepath.Join(w.dir, "pgbouncer.ini")
	// Later settings override earlier ones: the address of Postgres, where to listen, the users.
	settings = fmt.Appendf(settings, "\nlisten_addr = 127.0.0.1\nlisten_port = %d\nauth_file = %s\n"+
		"[databases]\nlittoral = host=127.0.0.1 port=%s dbname=%s\n", address.Port(), users, w.port, database)
	for file, text := range map[string][]byte{
		config: settings, users: fmt.Appendf(nil, "%q %q\n", localpg.User, w.verifier),
	} {
		if err := os.WriteFile(file, text, 0o644); err != nil { // read by the user it runs as
			return "", err
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(program, config)
	cmd.Stdout, cmd.Stderr = &log, &log
	if owner, ok := ownerOf(filepath.Join(w.dir, "pg")); ok && os.Geteuid() == 0 { // like Postgres, not as root
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	w.undo = append(w.undo, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(localpg.User, dbPassword),
		Host: address.String(), Path: "/littoral", RawQuery: "default_query_exec_mode=cache_describe",
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := pgx.Connect(ctx, u.String())
		if err == nil {
			return u.String(), conn.Close(ctx)
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return "", fmt.Errorf("PgBouncer: %w\n%s", err, log.Bytes())
		}
	}
}

func ownerOf(dir string) (*syscall.Credential, bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, false
	}
	return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}, true
}
