// Package images builds the programs of the functions exactly as their images contain them, so that what is measured
// and tested is what a cluster starts.
package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
)

// Module is the project's import path.
const Module = "github.com/littoral-project/littoral"

// Build makes the chosen functions, and further packages by their import paths, as .ko.yaml says. It returns
// their files by the function's name or the last element of the path. They lie in the directory.
func Build(ctx context.Context, dir string, chosen func(function string) bool, more ...string) (map[string]string, error) {
	ko, err := readKo(ctx)
	if err != nil {
		return nil, err
	}
	mains := map[string][]string{} // by the environment that they are built in
	programs := map[string]string{}
	add := func(name, main string) {
		env := strings.Join(ko.environment(main), "\n")
		mains[env] = append(mains[env], main)
		programs[name] = filepath.Join(dir, path.Base(main))
	}
	for _, pkg := range more {
		add(path.Base(pkg), pkg)
	}
	for main, entry := range functions.Registry {
		if chosen(entry.Name) {
			add(entry.Name, main)
		}
	}
	for env, some := range mains {
		args := append([]string{"build", "-ldflags=" + strings.Join(ko.Ldflags, " "), "-o", dir + "/"}, ko.Flags...)
		cmd := exec.CommandContext(ctx, "go", append(args, some...)...)
		cmd.Env = append(os.Environ(), strings.Split(env, "\n")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	return programs, nil
}

// ko is what .ko.yaml says of builds.
type ko struct {
	Flags   []string `json:"defaultFlags"`
	Ldflags []string `json:"defaultLdflags"`
	Env     []string `json:"defaultEnv"`
	Builds  []struct {
		Main string   `json:"main"`
		Env  []string `json:"env"`
	} `json:"builds"`
}

func readKo(ctx context.Context) (k ko, err error) {
	text, err := ProjectFile(ctx, ".ko.yaml")
	if err != nil {
		return k, err
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		return k, fmt.Errorf(".ko.yaml: %w", err)
	}
	return k, nil
}

// environment is that of the build of a package.
func (k ko) environment(pkg string) []string {
	for _, b := range k.Builds {
		if path.Join(Module, b.Main) == pkg {
			return b.Env
		}
	}
	return k.Env
}

// Root returns the project's folder, wherever within it the caller was started.
func Root(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", Module).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// ProjectFile reads a file of the project.
func ProjectFile(ctx context.Context, name string) ([]byte, error) {
	root, err := Root(ctx)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(root, name))
}

// Base is what all images stand on, at most, compressed, in MB: see scripts/deploy/base. What an image may weigh with it
// says the function's class.
const Base = 0.15

// Limits are what the function may have; those of a small one for a program that is no function.
func Limits(name string) function.Limits {
	for _, entry := range functions.Registry {
		if entry.Name == name {
			return entry.Spec.Limits()
		}
	}
	return function.Spec{}.Limits()
}

// Weigh returns the size of a program in MB, as it is and by gzip at its usual level, as in a registry (scripts/tools/ko).
func Weigh(program string) (plain, zipped float64, err error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return 0, 0, err
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(text); err != nil {
		return 0, 0, err
	}
	if err := z.Close(); err != nil {
		return 0, 0, err
	}
	return float64(len(text)) / 1e6, float64(out.Len()) / 1e6, nil
}

// Resident returns the memory of a process in MiB, pages of its binary included; 0 when it has ended.
func Resident(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0
	}
	return kib / 1024
}
