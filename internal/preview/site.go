package preview

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/duet-rpc/duet-rpc/internal/config/previewconfig"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

const indexName = "index.html"

// usual are the directories in which tools put what they have made, in the order in which
// they are looked at where none is configured.
var usual = []string{"dist", "build", "out", "_site", "public"}

// A site is the directory that is shown, opened for one request: a build may put another in
// its place at any time.
type site struct {
	root     *os.Root // nothing outside of it is reached, by symbolic links neither
	name     string   // of the directory, as people know it
	fallback bool
}

// open opens the directory that is configured, or else the first of the usual ones that has
// an index.html.
func open(project string, c previewconfig.Preview) (*site, error) {
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
		if info, err := within.Stat(filepath.Join(name, indexName)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s.root, err = within.OpenRoot(name); err == nil {
			s.name = name
			return s, nil
		}
	}
	return nil, loadFailed(nil, "there is nothing to show: none of %s has an index.html; build the project, or name its directory in [preview] of .duet.toml", strings.Join(usual, ", "))
}

// openNamed opens a directory that is configured. One that lies in the project by its name
// has to lie there: the project's symbolic links do not choose what the user has not.
func (s *site) openNamed(project, name string) (err error) {
	inside := name
	if filepath.IsAbs(name) {
		if inside, err = filepath.Rel(project, name); err != nil {
			inside = name
		}
	}
	if !filepath.IsLocal(inside) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(project, name)
		}
		s.root, err = os.OpenRoot(name)
	} else {
		var within *os.Root
		if within, err = os.OpenRoot(project); err == nil {
			s.root, err = within.OpenRoot(inside)
			within.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return loadFailed(err, "the directory %s of [preview] is not there; build the project", s.name)
	case err != nil:
		return loadFailed(err, "the directory %s of [preview] cannot be opened; if it is a symbolic link that leads out of the project, name the place that it leads to", s.name)
	}
	return nil
}

func (s *site) close() { s.root.Close() }

// A found is what an address has in a site.
type found int

const (
	nothing found = iota
	file
	directory
)

// look tells what a name has. What cannot be reached without leaving the site, and what is
// neither a file nor a directory, is not there.
func (s *site) look(name string) found {
	info, err := s.root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nothing
	case info.IsDir():
		return directory
	case info.Mode().IsRegular():
		return file
	}
	return nothing
}

// read reads a file of at most most bytes. A pipe that has come into its place since does not keep it waiting.
func (s *site) read(name string, most int) ([]byte, error) {
	f, err := s.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
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

func (s *site) tooLong(name string, size int64, most int) error {
	return loadFailed(nil, "%s is too long for a preview: it has %d KiB, and %d fit into a message on this connection", s.path(name), (size+1023)>>10, most>>10)
}

func (s *site) path(name string) string { return filepath.ToSlash(s.name) + "/" + name }

func loadFailed(cause error, format string, args ...any) error {
	e := domain.Errorf(domain.KindPreviewLoad, format, args...)
	e.Err = cause
	return e
}
