package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A file is one that a call touches, by the names that rules may know it by:
// what it was called, and where the links of that lead.
type file struct{ called, target []string }

// filesOf finds the names of paths, relative ones of which are cwd's, in a
// project with a root.
func filesOf(root, cwd string, paths []string) []file {
	if len(paths) == 0 {
		return nil
	}
	target := followLinks(root)
	list := make([]file, 0, len(paths))
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = cwd + string(filepath.Separator) + p // not joined: link/.. is not here
		}
		list = append(list, file{
			called: namesOf(root, root, filepath.Clean(p)), // src/../../etc is not below src
			target: namesOf(root, target, followLinks(p)),
		})
	}
	return list
}

// namesOf are those of a file: its path, and where it is below base, which is the
// project's root or where that leads, the one there, in the root's own spelling
// too.
func namesOf(root, base, p string) []string {
	names := []string{filepath.ToSlash(p)}
	if rel, err := filepath.Rel(base, p); err == nil && filepath.IsLocal(rel) {
		names = append(names, filepath.ToSlash(rel), filepath.ToSlash(filepath.Join(root, rel)))
	}
	return names
}

// insideOf reports of a directory whether it is in the project, or in the
// session's own, both as it is called and where its links lead.
func insideOf(root, cwd string) func(dir string) bool {
	return func(dir string) bool {
		if !filepath.IsAbs(dir) {
			if cwd == "" {
				return false
			}
			dir = cwd + string(filepath.Separator) + dir
		}
		for _, base := range []string{root, cwd} {
			if base != "" && isBelow(base, filepath.Clean(dir)) && isBelow(followLinks(base), followLinks(dir)) {
				return true
			}
		}
		return false
	}
}

func isBelow(base, p string) bool {
	rel, err := filepath.Rel(base, p)
	return err == nil && filepath.IsLocal(rel)
}

// touches reports whether the files of a call fit: for a deny rule one of
// them by any of its names, for an allow rule all, both as they are called and
// as what they are.
func (c call) touches(effect string, fits func(name string) bool) bool {
	fit := func(f file) bool {
		called, target := slices.ContainsFunc(f.called, fits), slices.ContainsFunc(f.target, fits)
		if effect == config.EffectDeny {
			return called || target
		}
		return called && target
	}
	if effect == config.EffectDeny {
		return slices.ContainsFunc(c.files, fit) || slices.ContainsFunc(c.alternatives.files, fit)
	}
	return !c.pathNotText && len(c.files) > 0 && !slices.ContainsFunc(c.files, func(f file) bool { return !fit(f) })
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
