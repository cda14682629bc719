package preview

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const indexName = "index.html"

// usual are the common output directories of tools, in the order of search when none is configured.
var usual = []string{"dist", "build", "out", "_site", "public"}

// site is the shown directory, opened for one request: a build may replace it at any time.
type site struct {
	root     *os.Root
	name     string // display name of the directory
	fallback bool
}

// open opens the configured directory, or else the first usual one with an index.html, or else the project's
// root if it has one. A usual name that links to the root does not count: the root comes last.
func open(project string, c config.Preview) (*site, error) {
	s := &site{fallback: c.Fallback == nil || *c.Fallback}
	if c.Directory != nil {
		s.name = *c.Directory
		return s, s.openNamed(project, *c.Directory)
	}
	within, err := os.OpenRoot(project)
	if err != nil {
		return nil, loadFailed(err, "the project's directory cannot be opened")
	}
	defer within.Close()
	for _, name := range usual {
		at, err := reach(within, name, hiddenAlways)
		if err != nil || at.name != "" || len(at.dirs) == 1 {
			at.close()
			continue
		}
		s.root, s.name = at.take(), name
		if s.look(indexName) == file {
			return s, nil
		}
		s.close()
	}
	if s.root, err = os.OpenRoot(project); err != nil {
		return nil, loadFailed(err, "the project's directory cannot be opened")
	}
	if s.name = "."; s.look(indexName) == file {
		return s, nil
	}
	s.close()
	return nil, loadFailed(nil, "there is nothing to show: neither the project's directory nor %s has an index.html; build the project, or "+
		"name its directory in [preview] of .duet.toml", strings.Join(usual, ", "))
}

// openNamed opens a configured directory. A name inside the project must resolve inside it, so that
// the project's symbolic links cannot choose another directory.
func (s *site) openNamed(project, name string) error {
	if !filepath.IsAbs(name) {
		name = filepath.Join(project, name)
	}
	inside, err := filepath.Rel(project, name)
	if err != nil || !filepath.IsLocal(inside) {
		s.root, err = os.OpenRoot(name)
	} else {
		s.root, err = openInside(project, inside)
	}
	switch {
	case errors.Is(err, errHidden):
		return loadFailed(err, "the directory %s of [preview] is not shown: it is for Git or Duet, or a symbolic link leads to a hidden "+
			"directory; name another one", s.name)
	case errors.Is(err, fs.ErrNotExist):
		return loadFailed(err, "the directory %s of [preview] is not there; build the project", s.name)
	case err != nil:
		return loadFailed(err, "the directory %s of [preview] cannot be opened; if it is a symbolic link that leads out of the project, name "+
			"the place that it leads to", s.name)
	}
	return nil
}

// openInside opens a directory of the project. The configuration may name a hidden
// directory; a link may not lead to one.
func openInside(project, name string) (*os.Root, error) {
	within, err := os.OpenRoot(project)
	if err != nil {
		return nil, err
	}
	defer within.Close()
	at, err := reach(within, filepath.ToSlash(name), func(part string, linked bool) bool {
		return linked && hidden(part) || strings.EqualFold(part, ".git") || strings.EqualFold(part, ".duet")
	})
	switch {
	case err != nil:
		return nil, err
	case at.name != "":
		at.close()
		return nil, syscall.ENOTDIR
	case len(at.dirs) == 1:
		return os.OpenRoot(project)
	}
	return at.take(), nil
}

func (s *site) close() { s.root.Close() }

// found is what a name refers to in a site.
type found int

const (
	nothing found = iota
	file
	directory
)

// look returns what a name refers to. A name that leads outside the site, a hidden one, or one that
// is neither file nor directory counts as missing.
func (s *site) look(name string) found {
	at, err := reach(s.root, name, hiddenAlways)
	defer at.close()
	switch {
	case err != nil:
		return nothing
	case at.name == "":
		return directory
	case at.info.Mode().IsRegular():
		return file
	}
	return nothing
}

// read reads a file of at most most bytes. A pipe in its place does not block it.
func (s *site) read(name string, most int) ([]byte, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, loadFailed(err, "%s cannot be read", s.path(name))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, loadFailed(err, "%s cannot be read: it is no file", s.path(name))
	}
	if info.Size() > int64(most) {
		return nil, s.tooLong(name, info.Size(), most)
	}
	body, err := io.ReadAll(io.LimitReader(f, int64(most)+1)) // it may grow meanwhile
	switch {
	case err != nil:
		return nil, loadFailed(err, "%s cannot be read", s.path(name))
	case len(body) > most:
		return nil, s.tooLong(name, int64(len(body)), most)
	}
	return body, nil
}

// open opens a file for reading.
func (s *site) open(name string) (*os.File, error) {
	at, err := reach(s.root, name, hiddenAlways)
	defer at.close()
	if err != nil {
		return nil, err
	}
	return at.open()
}

func (s *site) tooLong(name string, size int64, most int) error {
	return loadFailed(
		nil, "%s is too long for a preview: it has %d KiB, and %d fit into a message on this connection", s.path(name), (size+1023)>>10, most>>10,
	)
}

func (s *site) path(name string) string { return path.Join(filepath.ToSlash(s.name), name) }

func loadFailed(cause error, format string, args ...any) error {
	e := domain.Errorf(domain.KindPreviewLoad, format, args...)
	e.Err = cause
	return e
}
