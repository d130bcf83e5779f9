package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// file is one of an archive.
type file struct {
	name string
	mode int64
	body []byte
}

// archive builds the programs for the system, and writes an archive with them and an SBOM of each. It returns the archive's
// checksum.
func (r *release) archive(ctx context.Context, name, system string, programs []program) (sum string, err error) {
	dir, err := os.MkdirTemp("", "littoral-release-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	windows := strings.HasPrefix(system, "windows/")
	var files []file
	add := func(name, from string, mode int64) error {
		body, err := os.ReadFile(from)
		files = append(files, file{name, mode, body})
		return err
	}
	if err := add("LICENSE", "LICENSE", 0o644); err != nil {
		return "", err
	}
	for _, p := range programs {
		built := p.name
		if windows {
			built += ".exe"
		}
		to := filepath.Join(dir, built)
		if err := r.build(ctx, p, system, to); err != nil {
			return "", err
		}
		if err := add(built, to, 0o755); err != nil {
			return "", err
		}
		if err := r.sbom(to, p.name, system); err != nil {
			return "", err
		}
		for _, pattern := range []string{"*.service", "compose.yaml", "README.md"} {
			found, err := filepath.Glob(filepath.Join(p.from, pattern))
			if err != nil {
				return "", err
			}
			for _, from := range found {
				if err := add(path.Base(from), from, 0o644); err != nil {
					return "", err
				}
			}
		}
	}
	body, ending, err := r.pack(files, windows)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:]), r.write(r.archiveName(name, system)+ending, body)
}

func (r *release) archiveName(name, system string) string {
	return name + "_" + r.version + "_" + strings.ReplaceAll(system, "/", "_")
}

// pack makes a zip file for Windows and a tar file for others.
func (r *release) pack(files []file, windows bool) (body []byte, ending string, err error) {
	var b bytes.Buffer
	if windows {
		z := zip.NewWriter(&b)
		for _, f := range files {
			w, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.made})
			if err != nil {
				return nil, "", err
			}
			if _, err := w.Write(f.body); err != nil {
				return nil, "", err
			}
		}
		err := z.Close()
		return b.Bytes(), ".zip", err
	}
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: r.made, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, "", err
		}
		if _, err := t.Write(f.body); err != nil {
			return nil, "", err
		}
	}
	if err := t.Close(); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return b.Bytes(), ".tar.gz", nil
}

func (r *release) write(name string, body []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), body, 0o644) //nolint:gosec // for everyone to read
}
