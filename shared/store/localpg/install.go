package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
	"github.com/littoral-project/littoral/shared/loopback"
)

// noMainCluster prevents Debian's packages from creating and starting their own server while we install them.
const noMainCluster = "/etc/postgresql-common/createcluster.d/littoral.conf"

// installPackage installs Debian's Postgres. If we are not root or not on Debian, it only explains what to do.
func installPackage(ctx context.Context, notice func(string)) error {
	if os.Geteuid() != 0 {
		return errors.New("not root, so Debian's package was not installed")
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("no apt-get here, so no package was installed")
	}
	notice("installing Postgres with apt-get (once)")
	install := func(pkg string) ([]byte, error) {
		return aptGet(ctx, apt, "install", "-y", "--no-install-recommends", pkg)
	}
	out, err := install("postgresql-common")
	if err != nil { // probably because package lists are missing or outdated
		if out, err = aptGet(ctx, apt, "update"); err == nil {
			out, err = install("postgresql-common")
		}
	}
	if err != nil {
		return fmt.Errorf("apt-get: %w\n%s", err, lastLines(out))
	}
	if err := os.MkdirAll(filepath.Dir(noMainCluster), 0o755); err == nil {
		if err := os.WriteFile(noMainCluster, []byte("create_main_cluster = false\n"), 0o644); err == nil {
			defer func() { _ = os.Remove(noMainCluster) }()
		}
	}
	if out, err := install("postgresql"); err != nil {
		return fmt.Errorf("apt-get install postgresql: %w\n%s", err, lastLines(out))
	}
	return nil
}

func aptGet(ctx context.Context, apt string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, apt, append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	return cmd.CombinedOutput()
}

// lastLines keeps the end of a program's output, which has the error.
func lastLines(out []byte) []byte {
	const most = 1500
	return out[max(0, len(out)-most):]
}

// downloaded is the version that is downloaded if the machine has none.
const downloaded = embedded.V16

// repository is the source of downloads, in Maven's layout.
const repository = "https://repo1.maven.org/maven2"

// downloadDir is where a downloaded Postgres is kept; root's is outside its home, which other accounts cannot read.
func downloadDir() string {
	base := "/var/cache"
	if os.Geteuid() != 0 {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		base = cache
	}
	return filepath.Join(base, "littoral", "postgres-"+string(downloaded))
}

// download fetches the programs. The library can only do so while starting a server, so it starts a temporary one. As
// root that start fails, but only after the programs are in place, which is enough.
func download(ctx context.Context, notice func(string)) error {
	notice("downloading Postgres " + string(downloaded) + " (once)")
	return downloadFrom(ctx, repository, downloadDir())
}

func downloadFrom(ctx context.Context, repository, into string) error {
	address, err := loopback.Free(ctx)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "littoral-pg-download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	server := embedded.NewDatabase(embedded.DefaultConfig().Version(downloaded).Port(uint32(address.Port())).Logger(io.Discard).
		BinaryRepositoryURL(repository).BinariesPath(into).CachePath(filepath.Join(scratch, "cache")).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")))
	err = server.Start()
	if err == nil {
		err = server.Stop()
	}
	if complete(filepath.Join(into, "bin")) {
		return nil
	}
	return fmt.Errorf("download Postgres: %w", err)
}

// lockInstall lets one process at a time install; tests of several packages start together.
func lockInstall() (unlock func(), err error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("littoral-postgres-%d.lock", os.Geteuid()))
	deadline := time.Now().Add(10 * time.Minute)
	for {
		f, err := Lock(path)
		if err == nil {
			return func() { _ = Unlock(f) }, nil
		}
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
