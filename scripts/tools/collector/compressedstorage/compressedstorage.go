// Package compressedstorage is an extension of the OpenTelemetry Collector: a storage that keeps what it is given compressed in
// another one. Requests that wait in a queue on disk are full of the same labels; an hour of a site fits onto a small disk only so.
package compressedstorage

import (
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Config names the storage behind.
type Config struct {
	Storage component.ID `mapstructure:"storage"`
}

// Validate refuses a storage behind that is not named.
func (c *Config) Validate() error {
	if c.Storage == (component.ID{}) {
		return errors.New("storage: the name of another storage is needed")
	}
	return nil
}

// NewFactory is what the collector's builder asks for.
func NewFactory() extension.Factory {
	return extension.NewFactory(component.MustNewType("compressed_storage"), func() component.Config { return &Config{} },
		func(_ context.Context, _ extension.Settings, c component.Config) (extension.Extension, error) {
			return newExtension(c.(*Config))
		}, component.StabilityLevelDevelopment)
}

type compressed struct {
	config *Config
	behind storage.Extension
	writer *zstd.Encoder
	reader *zstd.Decoder
}

var (
	_ storage.Extension               = (*compressed)(nil)
	_ extensioncapabilities.Dependent = (*compressed)(nil)
)

func newExtension(c *Config) (*compressed, error) {
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	return &compressed{config: c, writer: writer, reader: reader}, err
}

// Dependencies are started first.
func (c *compressed) Dependencies() []component.ID { return []component.ID{c.config.Storage} }

func (c *compressed) Start(_ context.Context, host component.Host) error {
	behind, ok := host.GetExtensions()[c.config.Storage].(storage.Extension)
	if !ok {
		return fmt.Errorf("storage: %s is no storage", c.config.Storage)
	}
	c.behind = behind
	return nil
}

func (c *compressed) Shutdown(context.Context) error { return nil }

func (c *compressed) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	behind, err := c.behind.GetClient(ctx, kind, id, name)
	return &client{c, behind}, err
}

type client struct {
	*compressed
	behind storage.Client
}

// The first byte of a value says what follows.
const (
	plain  = 0
	packed = 1

	little = 512 // bytes: less is not worth it
)

func (c *client) pack(value []byte) []byte {
	if value == nil {
		return nil
	}
	if len(value) < little {
		return append([]byte{plain}, value...)
	}
	return c.writer.EncodeAll(value, []byte{packed})
}

func (c *client) unpack(value []byte) ([]byte, error) {
	switch {
	case value == nil:
		return nil, nil
	case len(value) > 0 && value[0] == plain:
		return value[1:], nil
	case len(value) > 0 && value[0] == packed:
		return c.reader.DecodeAll(value[1:], nil)
	}
	return nil, errors.New("what is stored was not written by a compressed storage")
}

func (c *client) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := c.behind.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.unpack(value)
}

func (c *client) Set(ctx context.Context, key string, value []byte) error {
	return c.behind.Set(ctx, key, c.pack(value))
}

func (c *client) Delete(ctx context.Context, key string) error { return c.behind.Delete(ctx, key) }

// Batch leaves the caller's values as they are.
func (c *client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	behind := make([]*storage.Operation, len(operations))
	for i, o := range operations {
		one := *o
		if one.Type == storage.Set {
			one.Value = c.pack(o.Value)
		}
		behind[i] = &one
	}
	if err := c.behind.Batch(ctx, behind...); err != nil {
		return err
	}
	for i, o := range operations {
		if o.Type != storage.Get {
			continue
		}
		value, err := c.unpack(behind[i].Value)
		if err != nil {
			return err
		}
		o.Value = value
	}
	return nil
}

func (c *client) Close(ctx context.Context) error { return c.behind.Close(ctx) }
