package licences

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Module is one that our programs link.
type Module struct {
	Path, Version string
	Licences      []Licence
}

// programs are what we hand out.
var programs = []string{"./functions/cmd/...", "./scripts/littoral", "./infra/..."}

// Linked lists the modules that our programs link on any of the systems that we release for, sorted by path. The folder is
// the root of the tree.
func Linked(folder string) ([]Module, error) {
	found := map[string]Module{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-json=ImportPath,Module"}, programs...)...) //nolint:noctx // a tool
		cmd.Dir = folder
		cmd.Env = append(cmd.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
		var failure bytes.Buffer
		cmd.Stderr = &failure
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w: %s", err, &failure)
		}
		decoder := json.NewDecoder(bytes.NewReader(out))
		for {
			var p struct {
				Module *struct {
					Path, Version, Dir string
					Main               bool
					Replace            *struct{ Version, Dir string }
				}
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			m := p.Module
			if m == nil || m.Main || found[m.Path].Path != "" {
				continue
			}
			if m.Replace != nil {
				m.Version, m.Dir = m.Replace.Version, m.Replace.Dir
			}
			list, err := Of(m.Dir)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Path, err)
			}
			found[m.Path] = Module{m.Path, m.Version, list}
		}
	}
	all := make([]Module, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(x, y Module) int { return strings.Compare(x.Path, y.Path) })
	return all, nil
}
