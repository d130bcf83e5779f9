package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/test/images"
)

// image is the compressed size of a function's image in the registry, including the base.
type image struct {
	Function string `json:"function"`
	Bytes    int64  `json:"bytes"`
	Binary   int64  `json:"binary_bytes"` // its largest layer
}

type imagesResult struct {
	Images []image `json:"images"` // largest first
	Over   int     `json:"over"`
}

// runImages asks the registry about the deployed images. It supports only registries without credentials.
func runImages(ctx context.Context, b *bench) (result, error) {
	text, err := b.Kubectl("get", "ksvc", "-l", "app.kubernetes.io/part-of=littoral", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.template.spec.containers[0].image}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	r := &imagesResult{}
	for line := range strings.Lines(text) {
		name, reference, _ := strings.Cut(strings.TrimSpace(line), " ")
		one, err := weigh(ctx, reference)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		one.Function = name
		if float64(one.Bytes) > images.Limits(name).Image*1e6 {
			r.Over++
		}
		r.Images = append(r.Images, one)
	}
	slices.SortFunc(r.Images, func(a, b image) int { return int(b.Bytes - a.Bytes) })
	return r, nil
}

func weigh(ctx context.Context, reference string) (one image, err error) {
	host, rest, _ := strings.Cut(reference, "/")
	repository, digest, ok := strings.Cut(rest, "@")
	if !ok {
		return one, fmt.Errorf("%s is not a digest", reference)
	}
	scheme := "https://"
	if strings.HasPrefix(host, "localhost") {
		scheme = "http://"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+host+"/v2/"+repository+"/manifests/"+digest, http.NoBody)
	if err != nil {
		return one, err
	}
	r.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return one, err
	}
	defer func() { _ = resp.Body.Close() }()
	var manifest struct {
		Layers []struct {
			Size int64 `json:"size"`
		} `json:"layers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&manifest); err != nil || len(manifest.Layers) == 0 {
		return one, fmt.Errorf("%s: %s: no layers: %w", reference, resp.Status, err)
	}
	for _, l := range manifest.Layers {
		one.Bytes += l.Size
		one.Binary = max(one.Binary, l.Size)
	}
	return one, nil
}

func (r *imagesResult) rows() [][]string {
	all := [][]string{{"heaviest images", "MB", "of it the binary"}}
	mb := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1e6) }
	for _, i := range r.Images[:min(5, len(r.Images))] {
		all = append(all, []string{i.Function, mb(i.Bytes), mb(i.Binary)})
	}
	if n := len(r.Images); n > 5 {
		all = append(all, []string{"lightest: " + r.Images[n-1].Function, mb(r.Images[n-1].Bytes), mb(r.Images[n-1].Binary)})
	}
	return all
}

func (r *imagesResult) notes() []string {
	return []string{fmt.Sprintf("%d of %d images are above what their class may weigh, base included.", r.Over, len(r.Images))}
}
