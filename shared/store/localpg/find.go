package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// debianBin is where Debian installs the server's programs of each major version, outside the PATH.
const debianBin = "/usr/lib/postgresql"

// binaries returns the directory of initdb and postgres: from the machine, else from Debian's packages if we are root,
// else downloaded. major, if not "", is the version that a data directory requires.
func binaries(ctx context.Context, major string, notice func(string)) (string, error) {
	if dir, ok := find(major); ok {
		return dir, nil
	}
	unlock, err := lockInstall()
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, ok := find(major); ok { // another process installed it while we waited
		return dir, nil
	}
	var failures []error
	for _, way := range []func(context.Context, func(string)) error{installPackage, download} {
		if err := way(ctx, notice); err != nil {
			failures = append(failures, err)
			continue
		}
		if dir, ok := find(major); ok {
			return dir, nil
		}
	}
	return "", missing(major, errors.Join(failures...))
}

func missing(major string, cause error) error {
	say := "Postgres 14 or newer is needed and is not on this machine; install it " +
		"(Debian, Ubuntu: sudo apt-get install postgresql; Fedora: sudo dnf install postgresql-server; " +
		"macOS: brew install postgresql) or put its bin directory into PATH"
	if major != "" {
		say = fmt.Sprintf("the data directory was written by Postgres %[1]s, which is not on this machine; install it "+
			"(apt-get install postgresql-%[1]s), or move the directory away to start afresh", major)
	}
	if cause == nil {
		return errors.New(say)
	}
	return fmt.Errorf("%s\n%w", say, cause)
}

// find searches the PATH, then Debian's directories, newest first, then earlier downloads.
func find(major string) (string, bool) {
	var dirs []string
	if program, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	dirs = append(dirs, debianDirs()...)
	dirs = append(dirs, filepath.Join(downloadDir(), "bin"))
	for _, dir := range dirs {
		if complete(dir) && (major == "" || versionOf(dir) == major) {
			return dir, true
		}
	}
	return "", false
}

func debianDirs() []string {
	entries, err := os.ReadDir(debianBin)
	if err != nil {
		return nil
	}
	var versions []int
	for _, e := range entries {
		if v, err := strconv.Atoi(e.Name()); err == nil && v >= 14 {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	dirs := make([]string, len(versions))
	for i, v := range versions {
		dirs[i] = filepath.Join(debianBin, strconv.Itoa(v), "bin")
	}
	return dirs
}

func complete(dir string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}

// versionOf returns the major version of the programs in dir, "" if it is unknown.
func versionOf(dir string) string {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output() // "postgres (PostgreSQL) 15.14 ..."
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 3 {
		return ""
	}
	major, _, _ := strings.Cut(fields[2], ".")
	return major
}

// majorOf returns the version that wrote the data directory, "" if it is still empty.
func majorOf(dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
