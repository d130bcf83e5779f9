package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/littoral-project/littoral/shared/store/localpg"
)

// database is the only database; it contains everything.
const database = "littoral"

// postgres is the server in the home; it is restarted if it dies.
type postgres struct {
	server   *localpg.Server
	url      string
	log      *os.File
	stopping atomic.Bool
}

// maxLog is the size in bytes from which a log is rotated at the start.
const maxLog = 16 << 20

// OpenLog opens a log for appending. If it has grown large it is renamed first, and the former one is kept.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func startPostgres(
	ctx context.Context, h *home, notice func(string), log *slog.Logger, fail func(error),
) (*postgres, error) {
	file, err := OpenLog(filepath.Join(h.dir, "postgres.log"))
	if err != nil {
		return nil, err
	}
	p := &postgres{log: file}
	p.server, err = localpg.Start(ctx, localpg.Options{
		Dir: filepath.Join(h.dir, "postgres"), Durable: true, Log: file, Notice: notice,
	})
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if err := p.server.EnsureDatabase(ctx, database); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.url = p.server.URL(database)
	go p.keepAlive(context.WithoutCancel(ctx), log, fail)
	return p, nil
}

// attempts to start a server again before the host gives up.
const attempts = 5

func (p *postgres) keepAlive(ctx context.Context, log *slog.Logger, fail func(error)) {
	for {
		<-p.server.Done()
		if p.stopping.Load() {
			return
		}
		log.Error("Postgres has ended and is started again", "log", p.log.Name())
		var err error
		for pause := 100 * time.Millisecond; pause < 100*time.Millisecond<<attempts; pause *= 2 {
			if err = p.server.Restart(ctx); err == nil || p.stopping.Load() {
				break
			}
			time.Sleep(pause)
		}
		if err != nil {
			fail(err)
			return
		}
	}
}

func (p *postgres) stop() error {
	p.stopping.Store(true)
	defer func() { _ = p.log.Close() }()
	return p.server.Stop()
}
