// Package kube opens the API of a cluster, by a kubeconfig or from within, and gives its errors the meaning that
// orchestrators act on.
//
// It makes the six requests that orchestrators need by itself, with the types and errors of apimachinery: client-go's
// dynamic client brings a function over its image of 6 MB. It reads kubeconfig files itself as well: client-go's loader
// would also run the programs that a file names, which no function should.
package kube

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// InCluster names the cluster that a function itself runs in, in place of a file.
const InCluster = "in-cluster"

// account is where a pod finds who it is.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// Open returns a client of the cluster that where names: InCluster, or the path of a kubeconfig. Nothing is dialled.
func Open(where string) (*Client, error) {
	if where == InCluster {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("this process runs in no cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
		}
		return New(Config{
			Server: "https://" + net.JoinHostPort(host, port), CAFile: filepath.Join(account, "ca.crt"),
			TokenFile: filepath.Join(account, "token"),
		})
	}
	text, err := os.ReadFile(where)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", where, err)
	}
	return New(c)
}

// Config is where an API server is and who asks it.
type Config struct {
	Server     string
	ServerName string // that its certificate is for, where that is not the host of Server
	Insecure   bool
	CA         []byte // PEM; else CAFile; else what the machine trusts
	CAFile     string
	Cert, Key  []byte // PEM of the client
	CertFile   string
	KeyFile    string
	Token      string
	TokenFile  string // read for each request, since it is renewed within the hour
	Username   string
	Password   string
}

// file is the part of a kubeconfig that is read.
type file struct {
	Current  string `json:"current-context"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server     string `json:"server"`
			ServerName string `json:"tls-server-name"`
			Insecure   bool   `json:"insecure-skip-tls-verify"`
			CAFile     string `json:"certificate-authority"`
			CAData     string `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			CertFile  string         `json:"client-certificate"`
			CertData  string         `json:"client-certificate-data"`
			KeyFile   string         `json:"client-key"`
			KeyData   string         `json:"client-key-data"`
			Token     string         `json:"token"`
			TokenFile string         `json:"tokenFile"`
			Username  string         `json:"username"`
			Password  string         `json:"password"`
			Exec      map[string]any `json:"exec"`
			Provider  map[string]any `json:"auth-provider"`
		} `json:"user"`
	} `json:"users"`
}

// Parse reads the current context of a kubeconfig. Credentials that a program would have to fetch are an error: use a
// token or a certificate.
func Parse(text []byte) (Config, error) {
	var f file
	var c Config
	if err := yaml.Unmarshal(text, &f); err != nil {
		return c, err
	}
	var cluster, user string
	for _, entry := range f.Contexts {
		if entry.Name == f.Current || f.Current == "" && len(f.Contexts) == 1 {
			cluster, user = entry.Context.Cluster, entry.Context.User
		}
	}
	var data decoder
	for _, entry := range f.Clusters {
		if entry.Name == cluster {
			c.Server = strings.TrimSuffix(entry.Cluster.Server, "/")
			c.ServerName, c.Insecure = entry.Cluster.ServerName, entry.Cluster.Insecure
			c.CAFile, c.CA = entry.Cluster.CAFile, data.decode(entry.Cluster.CAData)
		}
	}
	if c.Server == "" {
		return c, fmt.Errorf("context %q names no cluster with a server", f.Current)
	}
	for _, entry := range f.Users {
		if entry.Name != user {
			continue
		}
		if entry.User.Exec != nil || entry.User.Provider != nil {
			return c, fmt.Errorf(
				"user %q gets its credentials by a program, which is not run: use a token or a certificate",
				user,
			)
		}
		c.CertFile, c.Cert = entry.User.CertFile, data.decode(entry.User.CertData)
		c.KeyFile, c.Key = entry.User.KeyFile, data.decode(entry.User.KeyData)
		c.Token, c.TokenFile = entry.User.Token, entry.User.TokenFile
		c.Username, c.Password = entry.User.Username, entry.User.Password
	}
	return c, data.err
}

// decoder keeps the first fault.
type decoder struct{ err error }

func (d *decoder) decode(text string) []byte {
	if text == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("data that is not base64: %w", err)
	}
	return raw
}

// Silent reports whether the error means that nobody answers, rather than that somebody says no.
func Silent(err error) bool {
	var network net.Error
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status):
		return false
	}
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		strings.Contains(err.Error(), "connection reset") ||
		strings.Contains(err.Error(), "EOF")
}

// Classify gives an error of an API server about what, the meaning that it has for a job: a Refusal for a no that a
// repeat would not change, else Unavailable.
func Classify(err error, what string) error {
	var refusal *orchestrator.Refusal
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return &orchestrator.Refusal{Reason: "BadCertificate", Message: certificate.Error(), Err: err}
	case err == nil, errors.As(err, &refusal), errors.Is(err, orchestrator.ErrFenced),
		errors.Is(err, orchestrator.ErrLeaving), errors.Is(err, orchestrator.ErrSilent):
		return err
	case Silent(err):
		return fmt.Errorf("%w: %v", orchestrator.ErrSilent, err) //nolint:errorlint // the cause is for people only
	case apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return fmt.Errorf("%w: %v", orchestrator.ErrLeaving, err) //nolint:errorlint // the same
	case apierrors.IsConflict(err) && strings.Contains(err.Error(), "conflict with"):
		return &orchestrator.Refusal{Reason: orchestrator.ReasonApplyConflict, Message: what + ": " + err.Error(), Err: err}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsUnauthorized(err),
		apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err):
		reason := string(apierrors.ReasonForError(err))
		if strings.Contains(err.Error(), "exceeded quota") {
			reason = "QuotaExceeded"
		}
		return &orchestrator.Refusal{Reason: reason, Message: what + ": " + err.Error(), Err: err}
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take %s now; try again", what)
}
