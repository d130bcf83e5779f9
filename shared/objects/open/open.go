// Package open chooses an object store by URL. Programs that import it contain the S3 client.
package open

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/objects/s3"
)

// Config is read from the environment by envconfig; the credentials have the names that all S3 clients use.
type Config struct {
	// URL is file:///directory or s3://bucket/prefix; "" = no store. For S3, its query may have endpoint=URL for a
	// service other than AWS, region=NAME and path_style=true.
	URL string `envconfig:"OBJECTS_URL"`

	AccessKey    string `envconfig:"AWS_ACCESS_KEY_ID"`
	SecretKey    string `envconfig:"AWS_SECRET_ACCESS_KEY"`
	SessionToken string `envconfig:"AWS_SESSION_TOKEN"`
	Region       string `envconfig:"AWS_REGION"` // if the URL has none
}

// Store returns the store at the URL, nil if none is set. It connects only when it is used.
func Store(c Config, client *http.Client) (objects.Store, error) {
	if c.URL == "" {
		return nil, nil // no store is a choice
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("OBJECTS_URL: %w", err)
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) || u.RawQuery != "" {
			return nil, fmt.Errorf("OBJECTS_URL: %s: want file:/// and an absolute path", c.URL)
		}
		return folder.New(u.Path), nil
	case "s3":
		return bucket(c, u, client)
	}
	return nil, fmt.Errorf("OBJECTS_URL: %q is neither file nor s3", u.Scheme)
}

func bucket(c Config, u *url.URL, client *http.Client) (objects.Store, error) {
	if u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("OBJECTS_URL: want s3://bucket; keys are given by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	if c.AccessKey == "" || c.SecretKey == "" {
		return nil, fmt.Errorf("OBJECTS_URL names a bucket, but AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
	}
	s := s3.Config{
		Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Region: c.Region,
		AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: c.SessionToken,
	}
	if s.Prefix != "" {
		if err := objects.CheckKey(s.Prefix); err != nil {
			return nil, fmt.Errorf("OBJECTS_URL: %w", err)
		}
		s.Prefix += "/"
	}
	for name, values := range u.Query() {
		switch value := values[0]; name {
		case "region":
			s.Region = value
		case "endpoint":
			if e, err := url.Parse(value); err != nil || e.Host == "" || (e.Scheme != "http" && e.Scheme != "https") {
				return nil, fmt.Errorf("OBJECTS_URL: endpoint %q is no http or https address", value)
			}
			s.Endpoint = value
		case "path_style":
			s.PathStyle = value == "true"
		default:
			return nil, fmt.Errorf("OBJECTS_URL: %s is not known; known are endpoint, path_style and region", name)
		}
	}
	return s3.New(s, client), nil
}
