// Command logins makes the Secret with the addresses of the store for functions that have roles of their own. It reads the present
// Secret, or nothing, and writes the next one, both as JSON:
//
//	logins fill ADDRESS NAME...   adds what is missing: to ADDRESS, each with its own user and password
//	logins next ADDRESS NAME...   adds another for each, with another user, beside the present one
//	logins use NAME...            puts those in the place of the present ones
package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
)

// secret is a Secret of Kubernetes, as far as it is of interest here.
type secret struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]any    `json:"metadata"`
	Data       map[string][]byte `json:"data"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "logins:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: logins fill ADDRESS NAME... | next ADDRESS NAME... | use NAME...")
	}
	s := secret{APIVersion: "v1", Kind: "Secret", Metadata: map[string]any{"name": "littoral-roles", "namespace": "littoral"}}
	if err := json.NewDecoder(in).Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	if err := change(s.Data, args[0], args[1:]); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(s)
}

func change(data map[string][]byte, what string, names []string) error {
	if what == "use" {
		for _, name := range names {
			next, there := data[name+roles.Next]
			if !there {
				return fmt.Errorf("%s has no next address", name)
			}
			data[name] = next
			delete(data, name+roles.Next)
		}
		return nil
	}
	to, err := url.Parse(names[0])
	if err != nil {
		return errors.New("the address is none") // it has a password
	}
	for _, name := range names[1:] {
		key, user := name, store.Role(name)+"_1"
		switch what {
		case "fill":
		case "next":
			present, err := url.Parse(string(data[name]))
			if err != nil || present.User == nil {
				return fmt.Errorf("%s has no address", name)
			}
			if present.User.Username() == user {
				user = strings.TrimSuffix(user, "1") + "2"
			}
			key += roles.Next
		default:
			return fmt.Errorf("%q is none of fill, next and use", what)
		}
		if data[key] != nil {
			continue
		}
		address := *to
		address.User = url.UserPassword(user, rand.Text())
		data[key] = []byte(address.String())
	}
	return nil
}
