package prometheusrule

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Server is the API server of a cluster.
type Server struct {
	URL       string // without a slash at the end
	HTTP      *http.Client
	TokenFile string // read for each request, since it is renewed within the hour; empty: no token
}

// account is where a pod finds who it is.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster returns the API server of the cluster that the process runs in, as its service account.
func InCluster() (Server, error) { return inCluster(account, os.Getenv) }

func inCluster(account string, getenv func(string) string) (Server, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return Server{}, errors.New("this process runs in no cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
	}
	roots, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return Server{}, fmt.Errorf("read the cluster's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return Server{}, fmt.Errorf("%s holds no certificate", filepath.Join(account, "ca.crt"))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	transport.Proxy = nil // the address is one of the cluster's own
	return Server{
		URL: "https://" + net.JoinHostPort(host, port), HTTP: &http.Client{Transport: transport},
		TokenFile: filepath.Join(account, "token"),
	}, nil
}

func (s Server) authorize(r *http.Request) error {
	if s.TokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return fmt.Errorf("read the service account's token: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}
