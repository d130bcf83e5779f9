// Package s3 stores objects in a bucket of any S3 service.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/littoral-project/littoral/shared/objects"
)

// Config is a bucket and the credentials.
type Config struct {
	Bucket    string
	Prefix    string // of all keys, "" or ending in a slash
	Region    string // "" = us-east-1, which most other services accept
	Endpoint  string // "" = AWS
	PathStyle bool   // the bucket is part of the path instead of the host

	AccessKey, SecretKey, SessionToken string
}

// Store is a bucket.
type Store struct {
	client *s3.Client
	config Config
}

// New returns the store. It connects only when it is used.
func New(c Config, client *http.Client) *Store {
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	options := s3.Options{
		Region: c.Region, UsePathStyle: c.PathStyle, HTTPClient: client,
		Credentials: aws.NewCredentialsCache(aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{
					AccessKeyID: c.AccessKey, SecretAccessKey: c.SecretKey, SessionToken: c.SessionToken, Source: "settings",
				}, nil
			})),
		// Other services support checksums only in part. Callers that need certainty read the object back and compare.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if c.Endpoint != "" {
		options.BaseEndpoint = &c.Endpoint
	}
	return &Store{client: s3.New(options), config: c}
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body []byte) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.config.Bucket, Key: s.key(key), Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.config.Bucket, Key: s.key(key)})
	var none *types.NoSuchKey
	if errors.As(err, &none) {
		return nil, objects.NotFound(key)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	all, err := s.Describe(ctx, prefix)
	return objects.Keys(all), err
}

// Describe implements objects.Store.
func (s *Store) Describe(ctx context.Context, prefix string) ([]objects.Info, error) {
	var all []objects.Info
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: &s.config.Bucket, Prefix: s.key(prefix),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, o := range page.Contents {
			if key := strings.TrimPrefix(aws.ToString(o.Key), s.config.Prefix); objects.CheckKey(key) == nil {
				all = append(all, objects.Info{Key: key, Size: aws.ToInt64(o.Size), ModifiedAt: aws.ToTime(o.LastModified)})
			}
		}
	}
	return all, nil
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.config.Bucket, Key: s.key(key)})
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func (s *Store) key(key string) *string { return aws.String(s.config.Prefix + key) }
