package hub

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// This file finds the place in a worktree that belongs to a path of the project.

// projectIn returns the project's directory in the worktree that a directory is in, or "".
func (h *Hub) projectIn(dir string) string {
	top, found := h.Worktree(dir)
	if !found {
		return ""
	}
	if repository, found := git.Find(h.opts.Root); found {
		if below, err := filepath.Rel(repository.Top, h.opts.Root); err == nil && filepath.IsLocal(below) {
			return filepath.Join(top, below)
		}
	}
	return top
}

// linkIntoWorktree makes links to files of the project links to the same files in the worktree that a
// directory is in. Without it an agent edits the user's files that a prompt mentions.
func (h *Hub) linkIntoWorktree(dir string, blocks []catalog.ContentBlock) {
	project := h.projectIn(dir)
	if project == "" {
		return
	}
	follow := func(link *string) {
		uri, err := url.Parse(*link)
		if err != nil || uri.Scheme != "file" {
			return
		}
		path := uri.Path
		if filepath.Separator == '\\' {
			path = strings.TrimPrefix(path, "/") // of /C:/
		}
		below, err := filepath.Rel(h.opts.Root, filepath.FromSlash(path))
		if err != nil || !filepath.IsLocal(below) {
			return
		}
		there := filepath.Join(project, below)
		if _, err := os.Lstat(there); err != nil {
			return // git does not track it
		}
		uri.Path, uri.RawPath = filepath.ToSlash(there), ""
		if !strings.HasPrefix(uri.Path, "/") {
			uri.Path = "/" + uri.Path
		}
		*link = uri.String()
	}
	for i := range blocks {
		follow(&blocks[i].URI)
		if blocks[i].Resource != nil {
			follow(&blocks[i].Resource.URI)
		}
	}
}
