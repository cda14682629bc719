package registry

import (
	"archive/tar"
	"archive/zip"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of an archive's content.
const (
	maxUnpacked = 2 << 30 // bytes
	maxFiles    = 50_000  // and directories, including those that only a path names
	maxDepth    = 64      // nested directories
)

// archiveKind returns .tar.gz, .tar.bz2 or .zip, or "" for an unsupported archive.
func archiveKind(archive string) string {
	u, err := url.Parse(archive)
	if err != nil {
		return ""
	}
	for suffix, kind := range map[string]string{
		".tar.gz": ".tar.gz", ".tgz": ".tar.gz", ".tar.bz2": ".tar.bz2", ".tbz2": ".tar.bz2", ".zip": ".zip",
	} {
		if strings.HasSuffix(strings.ToLower(u.Path), suffix) {
			return kind
		}
	}
	return ""
}

// unpack extracts an archive to a directory. It creates only files and directories: no links, no
// devices, and no permissions except read, write and execute.
func unpack(ctx context.Context, archive, kind, directory string) error {
	if err := os.Mkdir(directory, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(directory) // nothing is written outside of it
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacking{ctx: ctx, root: root, bytes: maxUnpacked, files: maxFiles, made: map[string]bool{".": true}}
	if kind == ".zip" {
		return u.zip(archive)
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	var plain io.Reader = bzip2.NewReader(f)
	if kind == ".tar.gz" {
		if plain, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	return u.tar(plain)
}

// An unpacking is the state of an extraction, with the remaining limits.
type unpacking struct {
	ctx   context.Context
	root  *os.Root
	bytes int64
	files int             // and directories
	made  map[string]bool // created directories, by their clean paths with slashes
}

func (u *unpacking) tar(in io.Reader) error {
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
			return fmt.Errorf("%q is neither a file nor a directory", short(h.Name))
		}
		if err := u.take(h.Name, h.FileInfo().Mode(), r); err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(archive string) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, f := range r.File {
		if !f.Mode().IsRegular() && !f.Mode().IsDir() {
			return fmt.Errorf("%q is neither a file nor a directory", short(f.Name))
		}
		if err := u.takeZipped(f); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) takeZipped(f *zip.File) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return u.take(f.Name, f.Mode(), in)
}

// take writes a file, or makes a directory.
func (u *unpacking) take(name string, mode fs.FileMode, in io.Reader) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if err := u.count(); err != nil {
		return err
	}
	clean := path.Clean(name)
	if !isText(name) || strings.Contains(name, `\`) || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(clean)) {
		return fmt.Errorf("%q would be outside of its directory", short(name))
	}
	if mode.IsDir() {
		return u.makeDirectory(clean)
	}
	if err := u.makeDirectory(path.Dir(clean)); err != nil {
		return err
	}
	clean = filepath.FromSlash(clean)
	rights := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		rights = 0o755
	}
	out, err := u.root.OpenFile(clean, os.O_CREATE|os.O_EXCL|os.O_WRONLY, rights)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(whileWanted{u.ctx, in}, u.bytes+1))
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if u.bytes -= n; u.bytes < 0 {
		return fmt.Errorf("it has more than %d bytes in it", int64(maxUnpacked))
	}
	return nil
}

// count deducts a file or a directory from the limit.
func (u *unpacking) count() error {
	if u.files--; u.files < 0 {
		return fmt.Errorf("it has more than %d files and directories", maxFiles)
	}
	return nil
}

// makeDirectory makes a directory and its parents. Each counts once, because a short archive may
// name very many.
func (u *unpacking) makeDirectory(clean string) error {
	if strings.Count(clean, "/") >= maxDepth {
		return fmt.Errorf("%q is more than %d directories deep", short(clean), maxDepth)
	}
	for dir := clean; !u.made[dir]; dir = path.Dir(dir) {
		if err := u.count(); err != nil {
			return err
		}
		u.made[dir] = true
	}
	return u.root.MkdirAll(filepath.FromSlash(clean), 0o755)
}

// whileWanted reads until its context ends.
type whileWanted struct {
	ctx context.Context
	in  io.Reader
}

func (r whileWanted) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(b)
}
