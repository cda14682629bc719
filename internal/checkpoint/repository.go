package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	leastGit = 2<<16 | 39 // 2.39
	// mostConfig is the size in bytes above which a file that configures git is not read.
	mostConfig = 1 << 20
)

// A repository is the user's repository around a directory. The zero value is no repository.
type repository struct {
	top    string // of the working tree
	dir    string // the git directory; that of a linked worktree is its own
	common string // the git directory that has the objects and refs
	config map[string]string
}

// findRepository looks for the repository of dir in dir and the directories above it, as git
// does, but without git.
func findRepository(dir string) (repository, bool) {
	for top := dir; ; top = filepath.Dir(top) {
		if r, found := repositoryAt(top); found {
			return r, true
		}
		if top == filepath.Dir(top) {
			return repository{}, false
		}
	}
}

func repositoryAt(top string) (repository, bool) {
	r := repository{top: top, dir: filepath.Join(top, ".git")}
	info, err := os.Stat(r.dir)
	if err != nil {
		return r, false
	}
	if !info.IsDir() {
		text, _ := readSmall(r.dir)
		to, found := strings.CutPrefix(text, "gitdir:")
		if !found {
			return r, false
		}
		r.dir = absolute(top, strings.TrimSpace(to))
	}
	r.common = r.dir
	if text, err := readSmall(filepath.Join(r.dir, "commondir")); err == nil {
		r.common = absolute(r.dir, strings.TrimSpace(text))
	}
	for _, path := range []string{filepath.Join(r.dir, "HEAD"), filepath.Join(r.common, "objects"), filepath.Join(r.common, "refs")} {
		if _, err := os.Stat(path); err != nil {
			return r, false
		}
	}
	return r, true
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readSmall reads a regular file of at most mostConfig bytes. A missing file is an error.
func readSmall(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > mostConfig {
		return "", fmt.Errorf("%s is not a file of at most %d bytes", path, mostConfig)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// unusable returns why no objects and refs may be written into the repository, or nil.
func (r repository) unusable() error {
	for _, path := range []string{r.dir, r.common, filepath.Join(r.common, "objects"), filepath.Join(r.common, "refs")} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if project.IsForeign(info) {
			return fmt.Errorf("%s belongs to another user", path)
		}
		if !writable(path) {
			return fmt.Errorf("%s is read-only", path)
		}
	}
	for key, value := range r.config {
		extension, found := strings.CutPrefix(key, "extensions.")
		if !found {
			continue
		}
		known := slices.Contains([]string{"objectformat", "partialclone", "worktreeconfig", "noop", "relativeworktrees", "preciousobjects"}, extension) ||
			extension == "refstorage" && value == "files"
		if !known {
			return fmt.Errorf("the repository has the unknown extension %s = %s", extension, value)
		}
	}
	return nil
}

// readConfig reads a repository's configuration file and no other file. git config runs no
// program.
func (s *Store) readConfig(ctx context.Context, path string) (map[string]string, error) {
	if _, err := readSmall(path); err != nil {
		return nil, err
	}
	config := make(map[string]string)
	_, err := s.outside(ctx, isolation, func(record []byte) error {
		key, value, found := strings.Cut(string(record), "\n")
		if !found {
			value = "true"
		}
		config[key] = value
		return nil
	}, "config", "--file", path, "--no-includes", "--null", "--list")
	return config, err
}

// userExcludes returns the path of the user's own exclude file for all repositories. It may not
// exist.
func (s *Store) userExcludes(ctx context.Context, r repository) string {
	path := r.config["core.excludesfile"]
	if path == "" {
		out, _ := s.outside(ctx, nil, nil, "config", "--type=path", "--get", "core.excludesFile")
		path = strings.TrimSuffix(string(out), "\n")
	}
	home, _ := os.UserHomeDir()
	if below, found := strings.CutPrefix(path, "~/"); found {
		path = filepath.Join(home, below)
	}
	if filepath.IsAbs(path) {
		return path
	}
	if config := os.Getenv("XDG_CONFIG_HOME"); config != "" {
		return filepath.Join(config, "git", "ignore")
	}
	return filepath.Join(home, ".config", "git", "ignore")
}

// outside runs git in no repository.
func (s *Store) outside(ctx context.Context, env []string, record func([]byte) error, args ...string) ([]byte, error) {
	env = slices.Concat(callersEnvironment(), env, []string{"GIT_DIR=" + filepath.Join(s.state, "none")})
	return runGit(ctx, s.program, s.state, env, command{args: args, record: record})
}

var versionNumber = lazyregexp.New(`^git version (\d+)\.(\d+)`)

func (s *Store) checkVersion(ctx context.Context) error {
	out, err := s.outside(ctx, isolation, nil, "version")
	if err != nil {
		return fmt.Errorf("cannot run git: %w", err)
	}
	var major, minor int
	if n := versionNumber().FindSubmatch(out); n != nil {
		fmt.Sscan(string(n[1]), &major)
		fmt.Sscan(string(n[2]), &minor)
	}
	if major<<16|minor < leastGit {
		return fmt.Errorf("git %d.%d is too old for checkpoints: install git 2.39 or later", major, minor)
	}
	return nil
}

// prepare makes the git directory of the store, with its own configuration, attributes and
// index. If shared is set, git writes objects into the user's repository, and refs and
// packed-refs are symbolic links to those of the user. git writes through such links.
func (s *Store) prepare(shared bool) error {
	name := sha256.Sum256([]byte(s.top + "\x00" + s.repo.common))
	kind := "own-"
	if shared {
		kind = "shared-"
	}
	s.dir = filepath.Join(s.state, kind+hex.EncodeToString(name[:6]))
	objects, refs := filepath.Join(s.dir, "objects"), filepath.Join(s.dir, "refs")
	if err := os.MkdirAll(filepath.Join(s.dir, "info"), 0o700); err != nil {
		return err
	}
	if shared {
		objects = filepath.Join(s.repo.common, "objects")
		for _, name := range []string{"refs", "packed-refs"} {
			err := os.Symlink(filepath.Join(s.repo.common, name), filepath.Join(s.dir, name))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	} else if err := errors.Join(os.MkdirAll(objects, 0o700), os.MkdirAll(refs, 0o700)); err != nil {
		return err
	}

	id, err := readSmall(filepath.Join(s.dir, "id"))
	if err != nil {
		id = strings.ToLower(rand.Text()[:16])
		err = replaceFile(filepath.Join(s.dir, "id"), id)
	}
	s.prefix = "refs/duet/" + id + "/"
	s.env = slices.Concat(callersEnvironment(), isolation, []string{
		"GIT_DIR=" + s.dir, "GIT_WORK_TREE=" + s.top, "GIT_OBJECT_DIRECTORY=" + objects,
	})
	s.lockedEnv = append(slices.Clone(s.env), "GIT_OPTIONAL_LOCKS=1")
	return errors.Join(err,
		replaceFile(filepath.Join(s.dir, "config"), configuration(s.repo.config, shared)),
		// The bytes on the disk are recorded. This file wins over each .gitattributes.
		replaceFile(filepath.Join(s.dir, "info", "attributes"), "* -text !crlf !eol -ident !filter !working-tree-encoding !diff !merge\n"),
		s.setHead(""))
}

// configuration returns the text of the store's configuration file. It takes over a few of the
// user's settings, if their value is one word.
func configuration(users map[string]string, shared bool) string {
	var extra strings.Builder
	version := "0"
	if shared {
		if format := users["extensions.objectformat"]; isWord(format) {
			version = "1"
			fmt.Fprintf(&extra, "[extensions]\n\tobjectFormat = %s\n", format)
		}
		if value := users["core.sharedrepository"]; isWord(value) {
			fmt.Fprintf(&extra, "[core]\n\tsharedRepository = %s\n", value)
		}
	}
	for _, name := range []string{"ignorecase", "precomposeunicode", "symlinks", "filemode"} {
		if value := users["core."+name]; isWord(value) {
			fmt.Fprintf(&extra, "[core]\n\t%s = %s\n", name, value)
		}
	}
	return `[core]
	repositoryFormatVersion = ` + version + `
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	excludesFile = /dev/null
	attributesFile = /dev/null
	autocrlf = false
	safecrlf = false
	protectNTFS = false
	protectHFS = false
	logAllRefUpdates = false
	untrackedCache = true
	splitIndex = false
	preloadIndex = true
	commitGraph = false
	compression = 1
	fsyncMethod = batch
	fsync = objects,reference
[index]
	version = 4
	threads = true
	sparse = false
	skipHash = true
[status]
	showUntrackedFiles = all
	renames = false
[gc]
	auto = 0
[maintenance]
	auto = false
` + extra.String()
}

func isWord(value string) bool {
	for _, c := range value {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return value != "" && len(value) < 20
}

// setHead makes the store's HEAD a tree, with which git status compares the index; "" means
// none.
func (s *Store) setHead(tree string) error {
	if tree == "" {
		tree = "ref: refs/duet/none"
	}
	return replaceFile(filepath.Join(s.dir, "HEAD"), tree+"\n")
}

// replaceFile writes a file as a whole, unless it has the text already.
func replaceFile(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil
	}
	next := path + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// writeExcludes copies the user's excludes into the store's git directory. Each file is read
// anew, and the copy is replaced only if a text has changed, because git then looks at all
// directories again.
func (s *Store) writeExcludes() error {
	var text bytes.Buffer
	from, _ := readSmall(s.excludes)
	text.WriteString(from + "\n")
	if s.repo.common != "" {
		from, _ := readSmall(filepath.Join(s.repo.common, "info", "exclude"))
		text.WriteString(from + "\n")
	}
	if below, err := filepath.Rel(s.top, s.state); err == nil && filepath.IsLocal(below) {
		text.WriteString("/" + literalPattern.Replace(filepath.ToSlash(below)) + "/\n")
	}
	return replaceFile(filepath.Join(s.dir, "info", "exclude"), text.String())
}

// literalPattern escapes a path for a file of ignore patterns.
var literalPattern = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)

// indexEntries returns the number of entries of an index file, 0 if there is none.
func indexEntries(path string) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var head [12]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:4]) != "DIRC" {
		return 0
	}
	return int(head[8])<<24 | int(head[9])<<16 | int(head[10])<<8 | int(head[11])
}
