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
	"unicode"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// userExcludes returns the path of the user's own exclude file for all repositories. It may not
// exist.
func (s *Store) userExcludes(ctx context.Context, r git.Repository) string {
	path := r.Config["core.excludesfile"]
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
	env = slices.Concat(git.CallersEnvironment(), env, []string{"GIT_DIR=" + filepath.Join(s.state, "none")})
	return git.Run(ctx, s.program, s.state, env, git.Command{Args: args, Record: record})
}

// prepare makes the git directory of the store, with its own configuration, attributes and
// index. If shared is set, git writes objects into the user's repository, and refs and
// packed-refs are symbolic links to those of the user. git writes through such links.
func (s *Store) prepare(shared bool) error {
	name := sha256.Sum256([]byte(s.top + "\x00" + s.repo.Common))
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
		objects = filepath.Join(s.repo.Common, "objects")
		for _, name := range []string{"refs", "packed-refs"} {
			err := os.Symlink(filepath.Join(s.repo.Common, name), filepath.Join(s.dir, name))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	} else if err := errors.Join(os.MkdirAll(objects, 0o700), os.MkdirAll(refs, 0o700)); err != nil {
		return err
	}

	id, err := s.identify()
	s.prefix = "refs/duet/" + id + "/"
	s.env = slices.Concat(git.CallersEnvironment(), git.Isolation(), []string{
		"GIT_DIR=" + s.dir, "GIT_WORK_TREE=" + s.top, "GIT_OBJECT_DIRECTORY=" + objects,
	})
	s.lockedEnv = append(slices.Clone(s.env), "GIT_OPTIONAL_LOCKS=1")
	return errors.Join(err, s.configure(),
		// The bytes on the disk are recorded. This file wins over each .gitattributes.
		git.ReplaceFile(filepath.Join(s.dir, "info", "attributes"),
			"* -text !crlf !eol -ident !filter !working-tree-encoding !diff !merge\n"),
		s.setHead(""))
}

const idLength = 16

// identify returns the id of the store, which its refs have in their names, and makes one if there
// is none or it cannot be read.
func (s *Store) identify() (id string, err error) {
	file := filepath.Join(s.dir, "id")
	id, err = git.ReadSmall(file)
	switch {
	case err == nil && len(id) == idLength && git.IsWord(id):
		return id, nil
	case err == nil:
		s.log.Error("the id of a checkpoint store cannot be read and is set aside: rewind does not find the checkpoints from "+
			"before", "dir", s.top, "id", file+damagedSuffix)
		if err := durable.Rename(file, file+damagedSuffix); err != nil {
			return "", err
		}
	case durable.Unknown(err): // a new id would hide all checkpoints
		return "", err
	}
	id = strings.ToLower(rand.Text()[:idLength])
	return id, durable.Replace(file, []byte(id), 0o600)
}

const damagedSuffix = ".damaged"

// configure writes the store's configuration file.
func (s *Store) configure() error {
	monitor := s.repo.Config["core.fsmonitor"]
	if strings.ContainsFunc(monitor, unicode.IsControl) || !strings.ContainsRune(monitor, '/') ||
		s.trusted == nil || !s.trusted() {
		// Without a path, it is git's own daemon. git would start another one for the store's git
		// directory, and nothing would end that.
		monitor = "false"
	}
	return git.ReplaceFile(filepath.Join(s.dir, "config"), configuration(s.repo.Config, !s.own, monitor))
}

// configuration returns the text of the store's configuration file. It takes over a few of the
// user's settings, if their value is one word.
func configuration(users map[string]string, shared bool, monitor string) string {
	var extra strings.Builder
	version := "0"
	if shared {
		if format := users["extensions.objectformat"]; git.IsWord(format) {
			version = "1"
			fmt.Fprintf(&extra, "[extensions]\n\tobjectFormat = %s\n", format)
		}
		if value := users["core.sharedrepository"]; git.IsWord(value) {
			fmt.Fprintf(&extra, "[core]\n\tsharedRepository = %s\n", value)
		}
	}
	for _, name := range []string{"ignorecase", "precomposeunicode", "symlinks", "filemode"} {
		if value := users["core."+name]; git.IsWord(value) {
			fmt.Fprintf(&extra, "[core]\n\t%s = %s\n", name, value)
		}
	}
	return `[core]
	repositoryFormatVersion = ` + version + `
	bare = false
	hooksPath = /dev/null
	fsmonitor = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(monitor) + `"
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
	fsyncMethod = fsync
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

// setHead makes the store's HEAD a tree, with which git status compares the index; "" means
// none.
func (s *Store) setHead(tree string) error {
	if tree == "" {
		tree = "ref: refs/duet/none"
	}
	return git.ReplaceFile(filepath.Join(s.dir, "HEAD"), tree+"\n")
}

// writeExcludes copies the user's excludes into the store's git directory. Each file is read
// anew, and the copy is replaced only if a text has changed, because git then looks at all
// directories again.
func (s *Store) writeExcludes() error {
	var text bytes.Buffer
	from, _ := git.ReadSmall(s.excludes)
	text.WriteString(from + "\n")
	if s.repo.Common != "" {
		from, _ := git.ReadSmall(filepath.Join(s.repo.Common, "info", "exclude"))
		text.WriteString(from + "\n")
	}
	if below, err := filepath.Rel(s.top, s.state); err == nil && filepath.IsLocal(below) {
		text.WriteString("/" + literalPattern.Replace(filepath.ToSlash(below)) + "/\n")
	}
	return git.ReplaceFile(filepath.Join(s.dir, "info", "exclude"), text.String())
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
