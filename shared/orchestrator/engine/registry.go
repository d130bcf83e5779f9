package engine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

// hub is what the file of "docker login" calls Docker's own registry.
const hub = "https://index.docker.io/v1/"

// credentials returns what an image is fetched with, in the form of the engine's API: of a file as "docker login" and
// "podman login" write it, which is read anew each time. "" = without.
func credentials(file, image string) (string, error) {
	if file == "" {
		return "", nil
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image, err)
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // nobody has signed in yet
	} else if err != nil {
		return "", err
	}
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	host := reference.Domain(named)
	keys := []string{host, "https://" + host}
	if host == "docker.io" {
		keys = append(keys, hub)
	}
	for _, key := range keys {
		one, ok := config.Auths[key]
		if !ok {
			continue
		}
		plain, err := base64.StdEncoding.DecodeString(one.Auth)
		user, password, both := strings.Cut(string(plain), ":")
		if err != nil || !both {
			return "", fmt.Errorf("%s: what it has of %s is no name and password", file, key)
		}
		return authconfig.Encode(registry.AuthConfig{
			Username: user, Password: strings.TrimRight(password, "\x00"), IdentityToken: one.IdentityToken, ServerAddress: key,
		})
	}
	return "", nil
}
