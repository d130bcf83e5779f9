// Issuer serves the OpenID Connect provider of the laptop host on a cluster, for trials: real discovery, keys and
// tokens by client credentials, without people or passwords. Use a Keycloak or any other provider for more than that.
//
// "issuer secret" prints the Secret that it is started with: a new signing key, and for each client the secret that
// follows from the key.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/boot"
	"github.com/littoral-project/littoral/shared/settings"
)

type config struct {
	Port     string `envconfig:"PORT" default:"8080"`
	URL      string `envconfig:"OIDC_ISSUER" required:"true"` // "iss" of the tokens; served at its path
	Audience string `envconfig:"OIDC_AUDIENCE" default:"littoral"`
	Key      string `envconfig:"SIGNING_KEY" required:"true"` // PEM
}

const (
	keyFile = "signing-key.pem" // where package issuer looks for its key
	quiet   = 5 * time.Second
	longest = 20 * time.Second // of a call; with quiet below the 30 seconds that Kubernetes gives a pod to end
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	run := serve
	if len(os.Args) == 2 && os.Args[1] == "secret" {
		run = printSecret
	}
	if err := run(ctx); err != nil {
		slog.Error("issuer stopped", "error", err)
		os.Exit(1)
	}
}

// clients are those of the laptop: one per role, and the one that the policy manager puts its rules with.
func clients() []issuer.Client {
	return append(issuer.People(), issuer.Client{ID: "policymanager", Roles: []auth.Role{auth.Operator}})
}

// inScratch runs do with a directory that package issuer may keep its key in.
func inScratch(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "issuer")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

func serve(ctx context.Context) error {
	var c config
	if err := settings.Read(os.LookupEnv, "", &c); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return inScratch(func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(c.Key), 0o600); err != nil {
			return err
		}
		provider, err := issuer.New(issuer.Options{URL: c.URL, Dir: dir, Audience: c.Audience, Clients: clients()})
		if err != nil {
			return err
		}
		mux := http.NewServeMux()
		mux.Handle("/", provider.Handler())
		mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+c.Port)
		if err != nil {
			return err
		}
		return boot.Serve(ctx, listener, mux, quiet, longest)
	})
}

func printSecret(context.Context) error {
	return inScratch(func(dir string) error {
		provider, err := issuer.New(issuer.Options{URL: "http://issuer.invalid", Dir: dir, Clients: clients()})
		if err != nil {
			return err
		}
		key, err := os.ReadFile(filepath.Join(dir, keyFile))
		if err != nil {
			return err
		}
		data := map[string]string{keyFile: base64.StdEncoding.EncodeToString(key)}
		for _, c := range clients() {
			secret := provider.Credentials(c.ID).ClientSecret
			data[c.ID] = base64.StdEncoding.EncodeToString([]byte(secret))
		}
		text, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": "issuer"}, "data": data,
		})
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	})
}
