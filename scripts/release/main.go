// Command release writes what users install into a folder: archives of the programs for each system, an SBOM of each program,
// manifests of the overlays with images by digest, manifests of krew and kn, the provenance, checksums and, with a key,
// signatures. "make release" runs it in the root of the tree.
//
// The same commit gives the same bytes: no time but the commit's and no path of this machine gets in, and signatures are
// deterministic. It needs nothing from the network but Go modules.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The parts of a release.
const (
	partPrograms = "programs"
	partAgents   = "agents"
	partImages   = "images"
)

// release is what is being made.
type release struct {
	version string
	commit  string
	made    time.Time // of the commit
	out     string    // folder
	at      string    // base URL that the files are downloaded from
	images  string    // repository of the images
	ko      string    // the program that builds them
	push    bool

	systems  []string // os/arch that are built; empty = all
	overlays []string
}

// semantic are the versions that Go, krew and Helm take alike.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := &release{}
	flags.StringVar(&r.version, "version", "", "of the release, such as v1.2.3")
	flags.StringVar(&r.out, "out", "", "folder (default dist/VERSION)")
	flags.StringVar(&r.at, "at", "https://github.com/littoral-project/littoral/releases/download", "where users will find the folders of releases")
	flags.StringVar(&r.images, "images", "ghcr.io/littoral-project/littoral", "repository that the images will be pushed to")
	parts := flags.String("parts", strings.Join([]string{partPrograms, partAgents, partImages}, ","), "what is built; an agent alone by its name")
	systems := flags.String("systems", "", "os/arch of programs and agents (default: all)")
	overlays := flags.String("overlays", "edge,cloud,lighthouse", "whose manifests are made")
	flags.StringVar(&r.ko, "ko", "bin/tools/ko", "what builds images")
	key := flags.String("key", "", "file with an ECDSA key on P-256 in PEM, as openssl ecparam -genkey makes it")
	flags.BoolVar(&r.push, "push", false, "push the images, with the credentials of docker login")
	dirty := flags.Bool("dirty", false, "take a tree that differs from its commit, for trials")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("the version %q is not like v1.2.3", r.version)
	}
	if *systems != "" {
		r.systems = strings.Split(*systems, ",")
	}
	r.overlays = strings.Split(*overlays, ",")
	if r.out == "" {
		r.out = filepath.Join("dist", r.version)
	}
	if err := r.source(ctx, *dirty); err != nil {
		return err
	}
	sign, err := signer(*key)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // for everyone to read
		return err
	}
	for _, part := range strings.Split(*parts, ",") {
		make, known := map[string]func(context.Context) error{
			partPrograms: r.programs, partAgents: r.agents, partImages: r.manifests,
		}[part]
		if i := slices.IndexFunc(alone, func(p program) bool { return p.name == part }); i >= 0 {
			make, known = func(ctx context.Context) error { return r.separate(ctx, alone[i]) }, true
		}
		if !known {
			return fmt.Errorf("there is no part %q", part)
		}
		if err := make(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return r.seal(sign)
}

// source reads which commit the tree is.
func (r *release) source(ctx context.Context, dirty bool) error {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		return strings.TrimSpace(string(out)), err
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if changes != "" && !dirty {
		return errors.New("the tree differs from its commit: commit first, or try with -dirty")
	}
	about, err := git("log", "-1", "--format=%H %ct")
	if err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	commit, at, _ := strings.Cut(about, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	r.commit, r.made = commit, time.Unix(seconds, 0).UTC()
	return err
}

// program is one that is built.
type program struct {
	name, from string
	systems    []string
}

var (
	everywhere = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	unix       = everywhere[:4]
	devices    = []string{"linux/amd64", "linux/arm64", "linux/arm"}

	// together are in one archive.
	together = []program{
		{"littoral", "./scripts/littoral", everywhere},
		{"littoral-backup", "./infra/backup", everywhere},
	}
	// host is what "littoral up" becomes: it has Prometheus in it, and few who use the command line need it.
	host = program{"littoral-up", "./infra/runner/littoral-up", unix} // it runs Postgres, whose sockets are those of Unix
	// alone are programs with an archive of their own.
	alone = []program{
		{"littoral-bgp", "./infra/agents/bgp", devices},
		{"littoral-edge", "./infra/agents/edge", devices},
		{"littoral-leaf", "./infra/agents/leaf", devices},
		{"littoral-probe", "./infra/agents/probe", devices},
		{"littoral-sidecar", "./infra/agents/sidecar", devices},
	}
)

func (r *release) wanted(system string) bool {
	return len(r.systems) == 0 || slices.Contains(r.systems, system)
}

// programs builds the command line and what goes with it.
func (r *release) programs(ctx context.Context) error {
	archives := map[string]string{} // os/arch -> SHA-256
	for _, system := range everywhere {
		if !r.wanted(system) {
			continue
		}
		var these []program
		for _, p := range together {
			if slices.Contains(p.systems, system) {
				these = append(these, p)
			}
		}
		sum, err := r.archive(ctx, "littoral", system, these)
		if err != nil {
			return err
		}
		archives[system] = sum
	}
	if err := r.separate(ctx, host); err != nil {
		return err
	}
	return r.plugins(archives)
}

// agents builds what runs on devices and nodes, with the files that start it there.
func (r *release) agents(ctx context.Context) error {
	return r.separate(ctx, alone...)
}

func (r *release) separate(ctx context.Context, programs ...program) error {
	for _, p := range programs {
		for _, system := range p.systems {
			if !r.wanted(system) {
				continue
			}
			if _, err := r.archive(ctx, p.name, system, []program{p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds the program for the system.
func (r *release) build(ctx context.Context, p program, system, to string) error {
	os_, arch, _ := strings.Cut(system, "/")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", to,
		"-ldflags", "-s -w -buildid= -X github.com/littoral-project/littoral/shared/cli.release="+r.version+
			" -X github.com/littoral-project/littoral/shared/cli.commit="+r.commit, p.from)
	cmd.Env = append(cmd.Environ(), "GOOS="+os_, "GOARCH="+arch, "GOARM=7", "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w: %s", p.name, system, err, out)
	}
	return nil
}
