package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/littoral-project/littoral/shared/durable"
)

// contexts are the controllers that a user works with, by name, in a file beside that of the logins. It holds no secret: tokens
// are kept by server, in the file of the logins.
type contexts struct {
	path string

	Current string        `json:"current,omitempty"`
	List    []contextItem `json:"contexts"`
}

// contextItem is one of them.
type contextItem struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`
	TokenFile string `json:"tokenFile,omitempty"`
	Home      string `json:"home,omitempty"` // of a laptop's host, which keeps its address and token there
	Current   bool   `json:"current"`        // in "context list -o json"; not stored with the others
}

// address is where its server is.
func (i *contextItem) address() string {
	if i.Home == "" {
		return i.Server
	}
	return cmp.Or(addressIn(i.Home), DefaultServer)
}

// tokens is the file with its token; "" when that is to be found by the rule of all commands.
func (i *contextItem) tokens() string {
	if i.Home == "" {
		return i.TokenFile
	}
	return filepath.Join(i.Home, "token-admin")
}

// contexts reads the file; without one there are none.
func (s *session) contexts() (*contexts, error) {
	c := &contexts{List: []contextItem{}}
	logins := s.logins().Path
	if logins == "" {
		return c, nil
	}
	c.path = filepath.Join(filepath.Dir(logins), "contexts.json")
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, fmt.Errorf("contexts: %w", err)
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("contexts: %s cannot be read: %w", c.path, err)
	}
	return c, nil
}

func (c *contexts) save() error {
	if c.path == "" {
		return errors.New("contexts: there is no directory for them: set XDG_CONFIG_HOME or HOME")
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	return durable.WriteFile(c.path, append(text, '\n'), 0o600)
}

func (c *contexts) find(name string) (*contextItem, error) {
	at := slices.IndexFunc(c.List, func(i contextItem) bool { return i.Name == name })
	if at < 0 {
		return nil, advise(fmt.Errorf("there is no context %q", name), "See: littoral context list")
	}
	return &c.List[at], nil
}

// set adds a context, or replaces that of the name.
func (c *contexts) set(i contextItem) {
	if at := slices.IndexFunc(c.List, func(o contextItem) bool { return o.Name == i.Name }); at >= 0 {
		c.List[at] = i
		return
	}
	c.List = append(c.List, i)
}

// context is the one by which the server is found: that of --context, else of LITTORAL_CONTEXT, else the one in use; nil where a
// server is named otherwise, or when there is none.
func (s *session) context(server, name string) (*contextItem, error) {
	asked := name
	if asked == "" && server == "" && s.getenv("LITTORAL_SERVER") == "" {
		asked = s.getenv("LITTORAL_CONTEXT")
	}
	if server != "" && name != "" {
		return nil, usagef("--server and --context both say which server is meant")
	}
	if asked == "" && (server != "" || s.getenv("LITTORAL_SERVER") != "") {
		return nil, nil //nolint:nilnil // none is an answer
	}
	all, err := s.contexts()
	if err != nil {
		return nil, err
	}
	if asked == "" {
		asked = all.Current
	}
	if asked == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return all.find(asked)
}
