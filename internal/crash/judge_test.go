//go:build linux && soak

package crash

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A world is what a new daemon and git find on a disk after a power cut, as text: "session ID" is the
// prompt, "session ID title", "approval ID" the decision, "rule ID", "change ID FILE", "file NAME",
// "ref NAME", where HEAD and index count as references, "trust PROJECT". What is not there is "".
type world map[string]string

// A reader reads a world, and the log.
type reader struct {
	c      *client.Client
	world  world
	events map[int64]eventstream.Event
	next   int64 // the number of a new event
}

type shownSession struct {
	ID       string `json:"id"`
	Query    string `json:"query"`
	Title    string `json:"conversation_title"`
	State    string `json:"state"`
	Archived bool   `json:"archived"`
}

type shownApproval struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Comment string `json:"comment"`
}

// read reads all.
func (w *reader) read(ctx context.Context) error {
	var sessions struct{ Sessions []shownSession }
	if err := w.c.Call(ctx, "listSessions", object{"limit": 1000}, &sessions); err != nil {
		return fmt.Errorf("listSessions: %w", err)
	}
	queries := make(map[string]string)
	for _, s := range sessions.Sessions {
		w.world["session "+s.ID], w.world["session "+s.ID+" title"], w.world["session "+s.ID+" archived"] = s.Query, s.Title, fmt.Sprint(s.Archived)
		if other := queries[s.Query]; other != "" {
			return fmt.Errorf("the session %q is there twice: %s and %s", s.Query, s.ID, other)
		}
		queries[s.Query] = s.ID
		var files struct {
			Snapshots []struct {
				Path  string `json:"file_path"`
				State string `json:"state"`
			}
		}
		if err := w.c.Call(ctx, "getSessionSnapshots", object{"session_id": s.ID}, &files); err != nil {
			return fmt.Errorf("getSessionSnapshots: %w", err)
		}
		for _, f := range files.Snapshots {
			w.world["change "+s.ID+" "+filepath.Base(f.Path)] = f.State
		}
	}
	texts := make(map[string]int64)
	var rules shownRules
	if err := w.c.Call(ctx, "rule.list", nil, &rules); err != nil {
		return fmt.Errorf("rule.list: %w", err)
	}
	for _, rule := range rules.Rules {
		w.world[fmt.Sprintf("rule %d", rule.ID)] = rule.text()
		if other := texts[rule.text()]; other != 0 {
			return fmt.Errorf("the rule %q is there twice: %d and %d", rule.text(), other, rule.ID)
		}
		texts[rule.text()] = rule.ID
	}
	return w.readEvents(ctx)
}

type shownRules struct{ Rules []shownRule }

type shownRule struct {
	ID      int64  `json:"rule_id"`
	Effect  string `json:"effect"`
	Tool    string `json:"tool_name"`
	Command string `json:"command"`
	Path    string `json:"path"`
	Scope   string `json:"scope"`
	Session string `json:"session_uuid"`
}

// text says what a rule does. No two rules do the same.
func (r shownRule) text() string {
	return strings.Join([]string{r.Effect, r.Tool, r.Command, r.Path, r.Scope, r.Session}, " ")
}

// readEvents reads the whole log, and the questions in it. It adds an event: the last number may be
// that of an event that a power cut has taken.
func (w *reader) readEvents(ctx context.Context) error {
	w.events = make(map[int64]eventstream.Event)
	read, since := make(chan eventstream.Event, 10000), int64(0)
	sub, err := eventstream.Subscribe(ctx, w.c, eventstream.Options{Since: &since}, func(e eventstream.Event) { read <- e })
	if err != nil {
		return fmt.Errorf("event.subscribe: %w", err)
	}
	defer sub.Close()
	var draft struct {
		ID string `json:"session_id"`
	}
	if err := w.c.Call(ctx, "launchSession", object{"query": "after the power cut", "draft": true}, &draft); err != nil {
		return fmt.Errorf("launchSession: %w", err)
	}
	if err := w.c.Call(ctx, "updateSessionTitle", object{"session_id": draft.ID, "title": "after the power cut"}, nil); err != nil {
		return fmt.Errorf("updateSessionTitle: %w", err)
	}
	for seq := int64(0); w.next == 0; {
		select {
		case e := <-read:
			if e.Seq == 0 {
				continue
			}
			if _, twice := w.events[e.Seq]; twice || e.Seq < seq {
				return fmt.Errorf("event %d comes after %d", e.Seq, seq)
			}
			w.events[e.Seq], seq = e, e.Seq
			if e.TurnUUID == draft.ID {
				w.next = seq
			}
		case <-ctx.Done():
			return fmt.Errorf("event %d is the last that arrives", seq)
		}
	}
	for _, e := range w.events {
		var data struct {
			ID string `json:"approval"`
		}
		if e.Kind != "approval.opened" || json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		var shown struct{ Approval shownApproval }
		if err := w.c.Call(ctx, "getApproval", object{"approval_id": data.ID}, &shown); err != nil {
			if client.KindOf(err) == "approval_not_found" { // its session is deleted
				continue
			}
			return fmt.Errorf("getApproval: %w", err)
		}
		w.world["approval "+data.ID] = shown.Approval.Status + " " + shown.Approval.Comment
	}
	return nil
}

// judge opens the files of a state with a new daemon and returns the broken promises. line is that of
// the power cut.
func (r *recording) judge(files map[string]file, line int) (found []string) {
	m := r.m
	bad := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if err := m.restore(files); err != nil {
		bad("the state cannot be written: %v", err)
		return found
	}
	m.configure("sleep", "1000") // no session that goes on does anything
	if r.Moves {
		if err := m.locate(); err != nil {
			bad("%v", err)
			return found
		}
	}
	w := &reader{world: make(world)}
	if err := m.open(w); err != nil {
		bad("%v", err)
		return found
	}
	if err := m.requireUsable(); err != nil {
		bad("%v", err)
		return found
	}
	user := m.look()
	maps.Copy(w.world, user)
	for _, name := range []string{"project", "second"} {
		w.world["trust "+name] = m.isTrusted(name)
	}
	for _, p := range r.Promises {
		if now := w.world[p.Key]; p.From < line && line <= p.Until && now != p.Want && !slices.Contains(p.Or, now) {
			bad("%s was %.80q at the response, and is %.80q", p.Key, append([]string{p.Want}, p.Or...), now)
		}
	}
	r.judgeEvents(w, line, bad)
	r.judgeView(user, line, bad)
	return found
}

// open lets a new daemon open the files, reads what it has, and kills it.
func (m *machine) open(w *reader) (err error) {
	defer func() {
		m.killAll()
		if err != nil {
			err = fmt.Errorf("%w; the daemon's log: %s", err, m.said)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if _, w.c, err = m.start(ctx, nil); err != nil {
		return err
	}
	defer w.c.Close()
	for worktree.IsUnfinished(project.WorktreesDir(m.state)) { // the daemon finishes that in the background
		if ctx.Err() != nil {
			return errors.New("the daemon does not finish the work on a worktree")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return w.read(ctx)
}

// restore replaces the files of the machine.
func (m *machine) restore(files map[string]file) error {
	list, err := os.ReadDir(m.top)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.RemoveAll(filepath.Join(m.top, e.Name())); err != nil {
			return err
		}
	}
	if err := write(files, m.top); err != nil {
		return err
	}
	return m.adopt()
}

// adopt writes into the records of projects which inode the project has here.
func (m *machine) adopt() error {
	var now unix.Statx_t
	for _, name := range []string{"project", "moved"} {
		err := unix.Statx(unix.AT_FDCWD, filepath.Join(m.top, name), 0, unix.STATX_INO|unix.STATX_BTIME, &now)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	records, err := filepath.Glob(filepath.Join(m.home, "state", "duet", "projects", "*", "project.json"))
	for _, record := range records {
		text, err := os.ReadFile(record)
		if err != nil {
			return err
		}
		for name, value := range map[string]int64{"device": int64(unix.Mkdev(now.Dev_major, now.Dev_minor)), "inode": int64(now.Ino), "born": now.Btime.Sec*1e9 + int64(now.Btime.Nsec)} {
			text = regexp.MustCompile(`"`+name+`": \d+`).ReplaceAll(text, fmt.Appendf(nil, `"%s": %d`, name, value))
		}
		if err := os.WriteFile(record, text, 0o600); err != nil {
			return err
		}
	}
	return err
}

// kept are the kinds of events that are on the disk before a client gets them.
var kept = []string{"turn.state", "approval.opened", "approval.closed", "queue.changed", "change.decided", "session.deleted"}

// judgeEvents requires the events of those kinds that a client has received before a line, and that no
// number that it has seen is given to another event.
func (r *recording) judgeEvents(w *reader, line int, bad func(string, ...any)) {
	for _, e := range r.events() {
		if e.line >= line || w.world["session "+e.session] == "" { // deleted
			continue
		}
		switch now, there := w.events[e.seq]; {
		case e.seq >= w.next:
			bad("event %d, which a client has received, has a number that is given again: the next is %d", e.seq, w.next)
		case !there && slices.Contains(kept, e.kind):
			bad("event %d (%s), which a client has received, is lost", e.seq, e.kind)
		case there && e.kind != "running" && now.Kind != e.kind:
			bad("event %d was %s, and is %s", e.seq, e.kind, now.Kind)
		}
	}
}

// A received event is one that a daemon has sent to a client.
type received struct {
	line    int
	seq     int64
	kind    string
	session string
}

// events returns the events that the recorded daemon has sent.
func (r *recording) events() []received {
	if r.sentEvents != nil {
		return r.sentEvents
	}
	r.sentEvents = []received{}
	for _, m := range r.disk.sent {
		for part := range bytes.SplitSeq(m.data, []byte("Content-Length: ")) {
			_, body, _ := bytes.Cut(part, []byte("\r\n\r\n"))
			var e struct {
				Method string
				Params struct {
					Seq  int64
					Kind string
					Turn string `json:"turn_uuid"`
					Data struct{ State string }
				}
			}
			if json.Unmarshal(body, &e) == nil && e.Method == "event" && e.Params.Seq > 0 {
				if e.Params.Data.State == "running" {
					e.Params.Kind = "running" // that it was to start is on the disk
				}
				r.sentEvents = append(r.sentEvents, received{m.began, e.Params.Seq, e.Params.Kind, e.Params.Turn})
			}
		}
	}
	return r.sentEvents
}

// judgeView requires that each of the user's files, references and the index is as before the step of
// the power cut or as after it. An agent's own unfinished work is not judged.
func (r *recording) judgeView(now world, line int, bad func(string, ...any)) {
	i := 0
	for i+1 < len(r.Views) && r.Views[i+1].Line < line {
		i++
	}
	before, after := r.Views[i].World, r.Views[min(i+1, len(r.Views)-1)].World
	keys := make(map[string]bool)
	for _, w := range []world{before, after, now} {
		for key := range w {
			keys[key] = true
		}
	}
	for key := range keys {
		if strings.HasPrefix(key, "file ") && i < len(r.Steps) && r.Steps[i].Agent {
			continue
		}
		if now[key] != before[key] && now[key] != after[key] {
			bad("%s is %.80q, neither %.80q as before nor %.80q as after the step", key, now[key], before[key], after[key])
		}
	}
}

// requireUsable requires that git and SQLite find no damage, and that git is not blocked.
func (m *machine) requireUsable() error {
	for _, args := range [][]string{
		{"worktree", "prune"}, // which git's own worktree remove needs after a kill
		{"fsck", "--no-progress", "--no-dangling"}, {"status", "--porcelain"}, {"stash", "list"}, {"show", "--stat", "stash@{0}"}, {"show", "--stat", "HEAD"}, {"worktree", "list"},
	} {
		if out, err := m.command("git", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
	}
	for _, name := range []string{"index.lock", "HEAD.lock", "config.lock"} {
		if _, err := os.Lstat(filepath.Join(m.project, ".git", name)); err == nil {
			return fmt.Errorf("git is blocked by .git/%s", name)
		}
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(m.state, "duet.db")+"?mode=ro")
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query("PRAGMA integrity_check")
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	defer rows.Close()
	var problems []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		problems = append(problems, text)
	}
	if !slices.Equal(problems, []string{"ok"}) {
		return fmt.Errorf("the database is damaged: %q", problems)
	}
	return nil
}
