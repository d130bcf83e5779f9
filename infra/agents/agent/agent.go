// Package agent is what the programs on nodes have in common: settings by flag or environment, and pushing by OTLP.
package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/otlp"
)

// FromEnv gives flags the values of the environment: of PREFIX_NAME, where the flag is called name. A value that the flag does not
// take leaves the default.
func FromEnv(f *flag.FlagSet, prefix string, getenv func(string) string) {
	f.VisitAll(func(one *flag.Flag) {
		if v := getenv(prefix + "_" + strings.ToUpper(strings.ReplaceAll(one.Name, "-", "_"))); v != "" {
			if err := one.Value.Set(v); err == nil {
				one.DefValue = v
			}
		}
	})
}

// Receiver is where samples are pushed.
type Receiver struct {
	URL       string // such as http://gateway:4318/v1/metrics
	TokenFile string // bearer token; "" = none
	Client    *http.Client
}

// Push sends samples as those of an instance of a service.
func (r Receiver) Push(ctx context.Context, service, instance string, samples []otlp.Sample) error {
	body, err := otlp.Encode(map[string]string{"service.name": service, "service.instance.id": instance}, samples, time.Now())
	if err != nil {
		return err
	}
	header := http.Header{}
	if r.TokenFile != "" {
		token, err := os.ReadFile(r.TokenFile)
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
		header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	var packed bytes.Buffer // the same labels come with every sample: a tenth is left, and the uplink may be thin
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(body); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	header.Set("Content-Encoding", "gzip")
	return otlp.Push(ctx, r.Client, r.URL, header, packed.Bytes())
}
