package localpg

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the server runs as.
type account struct {
	name     string
	uid, gid int
	drop     bool // we are root and must switch to this account
}

// runAs chooses the account: ours or, if we are root (Postgres refuses to run as root), the owner of an existing data
// directory, else "postgres", else "nobody".
func runAs(dir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "this user", uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	if info, err := os.Stat(dir); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			uid := strconv.Itoa(int(owner.Uid))
			return account{name: "uid " + uid, uid: int(owner.Uid), gid: int(owner.Gid), drop: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return account{}, fmt.Errorf("uid of %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return account{}, fmt.Errorf("gid of %s: %w", name, err)
		}
		return account{name: name, uid: uid, gid: gid, drop: true}, nil
	}
	return account{}, errors.New(`Postgres does not run as root, and there is neither a user "postgres" nor "nobody"; ` +
		`run as another user, or create one: useradd --system postgres`)
}

// outside is where root puts the data if the account cannot reach its directory.
const outside = "/var/lib/littoral"

// createDataDir creates the data directory and returns its real path. Other accounts cannot work below a directory that
// only root may enter (a clone in /root, say). Then the data goes to /var/lib/littoral, and dir becomes a link to it.
func (a account) createDataDir(dir string) (string, error) {
	if target, err := os.Readlink(dir); err == nil {
		if err := os.MkdirAll(target, 0o700); err != nil {
			return "", fmt.Errorf("%s links to %s: %w", dir, target, err)
		}
		return target, a.own(target)
	}
	if !a.drop || a.reaches(filepath.Dir(dir)) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		return dir, a.own(dir)
	}
	if _, err := os.Stat(dir); err == nil {
		return "", fmt.Errorf("%s exists, but %s cannot reach it: make its parent directories executable for others, "+
			"or move it away", dir, a.name)
	}
	if err := os.MkdirAll(outside, 0o755); err != nil {
		return "", err
	}
	target, err := os.MkdirTemp(outside, "postgres-")
	if err != nil {
		return "", err
	}
	if err := os.Symlink(target, dir); err != nil {
		return "", err
	}
	return target, a.own(target)
}

func (a account) own(dir string) error {
	if a.drop {
		return os.Chown(dir, a.uid, a.gid)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != a.uid {
		return fmt.Errorf("%s belongs to uid %d, perhaps from a run as root: run as that user or root again, "+
			"or remove it", dir, owner.Uid)
	}
	return nil
}

// reaches reports whether the account may enter dir and all its parents.
func (a account) reaches(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		bit := os.FileMode(0o001)
		switch {
		case int(owner.Uid) == a.uid:
			bit = 0o100
		case int(owner.Gid) == a.gid:
			bit = 0o010
		}
		if info.Mode().Perm()&bit == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// maxSocketDir keeps the socket's path, with ".s.PGSQL.5432", within the 107 bytes that Linux allows (103 on macOS).
const maxSocketDir = 85

// socketDir returns the data directory, which is private, or a short private one if its path is too long for a socket.
func (a account) socketDir(dir string) (string, error) {
	if len(dir) <= maxSocketDir {
		return dir, nil
	}
	short, err := os.MkdirTemp("/tmp", "littoral-pg-")
	if err != nil {
		return "", err
	}
	return short, a.own(short)
}
