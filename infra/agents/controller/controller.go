// Package controller is how agents reach the API of their controller: where it is, who vouches for it, and the token that they show
// there.
package controller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Options are those of the command line.
type Options struct {
	URL, CA                        string
	TokenFile                      string
	TokenURL, Client, ClientSecret string
}

// Flags adds the options.
func (o *Options) Flags(f *flag.FlagSet) {
	f.StringVar(&o.URL, "controller", "", "base URL of the controller's API")
	f.StringVar(&o.CA, "ca-file", "", "certificate authority of the controller (default: those of the machine)")
	f.StringVar(&o.TokenFile, "token-file", "", "access token; it is read anew for each call")
	f.StringVar(&o.TokenURL, "token-url", "", "token endpoint of the issuer, for a token by client credentials")
	f.StringVar(&o.Client, "client-id", "", "client of the issuer")
	f.StringVar(&o.ClientSecret, "client-secret-file", "", "file with its secret")
}

// HTTP returns the client of the API.
func (o *Options) HTTP() (*http.Client, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport was replaced")
	}
	transport = transport.Clone()
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("ca-file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca-file: %s has no certificate", o.CA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	plain := &http.Client{Transport: transport}
	switch {
	case o.TokenURL != "":
		secret, err := os.ReadFile(o.ClientSecret)
		if err != nil {
			return nil, fmt.Errorf("client-secret-file: %w", err)
		}
		config := clientcredentials.Config{
			ClientID: o.Client, ClientSecret: strings.TrimSpace(string(secret)), TokenURL: o.TokenURL,
		}
		return config.Client(context.WithValue(context.Background(), oauth2.HTTPClient, plain)), nil
	case o.TokenFile != "":
		return &http.Client{Transport: bearer{o.TokenFile, transport}}, nil
	}
	return plain, nil
}

// bearer adds the token of a file.
type bearer struct {
	file string
	next http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(b.file)
	if err != nil {
		return nil, fmt.Errorf("token-file: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(r)
}
