package history

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"

	"github.com/google/uuid"
)

// The most that is taken of texts, in bytes.
const (
	titleMost      = 4 << 10
	textMost       = 8 << 20
	nameMost       = 200
	fileMost       = 16 << 20
	attachmentMost = 16 << 20
)

// values mends what a column may hold in a database that is anybody's.
type values struct {
	now    time.Time
	mended *int
}

// text is a text that is valid UTF-8 and not too long.
func (v values) text(was string, most int) string {
	is := strings.ToValidUTF8(was, "\uFFFD")
	if len(is) > most {
		is = strings.ToValidUTF8(is[:most], "")
	}
	if is != was {
		*v.mended++
	}
	return is
}

// json is JSON, or nothing.
func (v values) json(was json.RawMessage) json.RawMessage {
	if was == nil || len(was) <= textMost && json.Valid(was) && utf8.Valid(was) {
		return was
	}
	*v.mended++
	return nil
}

// data is what an item of its kind alone has, or nothing.
func (v values) data(was domain.ItemData) domain.ItemData {
	if was == nil || was.Size() <= textMost {
		return was
	}
	*v.mended++
	return nil
}

// moment is a time that is neither before there were computers nor to come.
func (v values) moment(was time.Time) time.Time {
	if was.IsZero() || was.Unix() >= 0 && was.Before(v.now.Add(24*time.Hour)) {
		return was
	}
	*v.mended++
	return v.now
}

var (
	plainName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._ -]{0,63}$`)
	plainCode = lazyregexp.New(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// name is a name as configuration and protocols have them, or nothing.
func (v values) name(was string) string { return v.like(plainName(), was) }

func (v values) code(was string) string { return v.like(plainCode(), was) }

func (v values) like(form *regexp.Regexp, was string) string {
	if was == "" || form.MatchString(was) {
		return was
	}
	*v.mended++
	return ""
}

func (v values) oneOf(was, otherwise string, known ...string) string {
	if slices.Contains(known, was) {
		return was
	}
	*v.mended++
	return otherwise
}

// source is who asked for a run. A decision asks for nothing any more.
func (v values) source(was string) string {
	return v.oneOf(was, "task", "task", "session", "chat", "execute", "prompt", "decision")
}

// content is what a file held.
func (v values) content(was *string) *string {
	if was == nil {
		return nil
	}
	is := v.text(*was, fileMost)
	return &is
}

// item is an entry of a conversation, unless it is of no known kind.
func (v values) item(was domain.Item) (is domain.Item, ok bool) {
	if !slices.Contains([]string{"message", "thinking", "tool_call", "system", "plan", "diff", "approval"}, was.Kind) {
		return domain.Item{}, false
	}
	is = domain.Item{
		Kind: was.Kind, Key: v.text(was.Key, nameMost), Role: v.oneOf(was.Role, "assistant", "", "user", "assistant"), Content: v.text(was.Content, textMost),
		Tool: v.text(was.Tool, nameMost), Title: v.text(was.Title, titleMost), ToolKind: v.text(was.ToolKind, nameMost), Input: v.json(was.Input),
		Result: v.text(was.Result, textMost), ParentID: v.text(was.ParentID, nameMost), Data: v.data(was.Data),
		Created: v.moment(was.Created), Updated: v.moment(was.Updated),
	}
	if was.Kind == "tool_call" {
		is.Status = v.oneOf(was.Status, "failed", "completed", "failed") // nothing is under way any more
	}
	return is, true
}

func isUUID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// places are the directories that a history may be about.
type places struct {
	root string // resolved
	was  string // the root that it was written for
}

func (p *places) roots(o Options) {
	p.root, p.was = filepath.Clean(o.Root), o.Was
	if resolved, err := filepath.EvalSymlinks(p.root); err == nil {
		p.root = resolved
	}
}

// directory is a directory in the project: the one that is meant, or else the
// root. A link does not lead out.
func (p places) directory(was string) string {
	dir, ok := p.rebased(was)
	if !ok {
		return p.root
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil || !within(p.root, resolved) {
		return p.root
	}
	return resolved
}

// file is the path of a file that was changed, absolute and in the project, or
// relative.
func (p places) file(was string) (path string, ok bool) {
	if was == "" || len(was) > titleMost || !utf8.ValidString(was) || strings.ContainsRune(was, 0) {
		return "", false
	}
	if !filepath.IsAbs(was) {
		return was, filepath.IsLocal(was)
	}
	return p.rebased(was)
}

// rebased is an absolute path as it is in the project, if it was in the one of
// before.
func (p places) rebased(was string) (path string, ok bool) {
	if !filepath.IsAbs(was) || strings.ContainsRune(was, 0) {
		return "", false
	}
	path = filepath.Clean(was)
	if p.was != "" && within(p.was, path) {
		rest, err := filepath.Rel(p.was, path)
		return filepath.Join(p.root, rest), err == nil
	}
	return path, within(p.root, path)
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
