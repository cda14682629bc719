package hub

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A file is one that a question touches, by the names that rules may know it
// by: what it was called, and where the links of that lead.
type file struct{ given, real []string }

// files finds the names of paths. Relative ones are cwd's.
func (h *Hub) files(cwd string, paths []string) []file {
	if len(paths) == 0 {
		return nil
	}
	root := followLinks(h.opts.Root)
	list := make([]file, 0, len(paths))
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = cwd + string(filepath.Separator) + p // not joined: link/.. is not here
		}
		f := file{given: h.names(h.opts.Root, filepath.Clean(p))} // src/../../etc is not below src
		f.real = h.names(root, followLinks(p))
		list = append(list, f)
	}
	return list
}

// names are those of a file: its path, and where it is in the project the one
// there, in the project's own spelling too.
func (h *Hub) names(root, p string) []string {
	names := []string{filepath.ToSlash(p)}
	if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
		names = append(names, filepath.ToSlash(rel), filepath.ToSlash(filepath.Join(h.opts.Root, rel)))
	}
	return names
}

// touches reports whether the files of a question fit: for a deny rule one of
// them by any of its names, for an allow rule all, both as they are called and
// as what they are.
func (q question) touches(effect string, fits func(name string) bool) bool {
	fit := func(f file) bool {
		given, real := slices.ContainsFunc(f.given, fits), slices.ContainsFunc(f.real, fits)
		if effect == config.EffectDeny {
			return given || real
		}
		return given && real
	}
	if effect == config.EffectDeny {
		return slices.ContainsFunc(q.files, fit) || slices.ContainsFunc(q.others.files, fit)
	}
	return !q.oddFile && len(q.files) > 0 && !slices.ContainsFunc(q.files, func(f file) bool { return !fit(f) })
}

// maxLinks is how many links are followed for one path, as Linux does.
const maxLinks = 40

// followLinks is where an absolute path leads, as far as it exists; what does
// not exist yet stays as it is.
func followLinks(p string) string {
	const slash = string(filepath.Separator)
	volume := filepath.VolumeName(p)
	at, left := volume+slash, strings.Split(filepath.FromSlash(p[len(volume):]), slash)
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(at, name) // .. of where a link led, not of the link
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 || links == maxLinks {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			volume = filepath.VolumeName(target)
			at, target = volume+slash, target[len(volume):]
		}
		left = append(strings.Split(filepath.FromSlash(target), slash), left...)
	}
	return at
}
