// Package history takes what was said and done out of a database that may be
// anybody's into one of the user's own: conversations with their runs, their
// messages and tool calls, and the files that they changed.
//
// What acts stays behind: runs that wait, rules, answers that are open or carry
// over, permission modes, settings with their MCP servers, the agents' own
// sessions, tokens and processes. What is taken is looked at value by value.
package history

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Options say how a history fits into a project.
type Options struct {
	Root string // of the project: conversations are in it, and nowhere else
	Was  string // of the project that the history comes from; "" if that is not known
}

// A Result tells what was taken over.
type Result struct {
	Conversations int `json:"conversations"`
	Runs          int `json:"sessions"`
	Items         int `json:"items"`   // messages, thoughts and tool calls
	Changes       int `json:"changes"` // of files
	Here          int `json:"already_here"`
	Mended        int `json:"mended"`   // values that were cut, or replaced because they could not be as they were
	LeftOut       int `json:"left_out"` // rows that made no sense
	Waiting       int `json:"not_started"`
}

// itemsTogether is after how many rows a transaction ends, so that others can
// write between two.
const itemsTogether = 500

// A Source is a database of which the history is read.
type Source interface {
	// Threads lists conversations by their rows from after one on, at most limit.
	Threads(ctx context.Context, after int64, limit int) ([]domain.Thread, error)
	// NewestThreads lists the conversations in which something happened last.
	NewestThreads(ctx context.Context, limit int) ([]domain.Thread, error)
	// RunsOfThread lists the runs of a thread up to one, or all if that is 0.
	RunsOfThread(ctx context.Context, thread, upTo int64) ([]domain.Run, error)
	// ItemsAfter lists what a run added to its conversation from after an item on.
	ItemsAfter(ctx context.Context, run, after int64, limit int) ([]domain.Item, error)
	// AttachmentPart is at most limit bytes of an attachment.
	AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error)
	// Changes lists the files that a run changed.
	Changes(ctx context.Context, run int64) ([]domain.Change, error)
	// Tally counts what there is.
	Tally(ctx context.Context) (domain.Tally, error)
}

// TakeOver takes the history of a database into another one. A conversation is
// taken whole or not at all; one that is there already is left as it is, so
// that what was begun can be gone on with.
func TakeOver(ctx context.Context, from Source, into store.Store, opts Options) (Result, error) {
	t := taking{ctx: ctx, from: from, opts: opts, threads: map[int64]int64{}, runs: map[int64]int64{}}
	t.where.roots(opts)
	for more := true; more; {
		before := t // should the transaction fail
		if err := ctx.Err(); err != nil {
			return t.Result, err
		}
		// It is waited for in any case: it reads what the caller closes. Where ctx
		// ends it soon fails.
		err := into.Write(context.WithoutCancel(ctx), func(tx store.Tx) (err error) {
			t = before
			more, err = t.some(tx)
			return err
		})
		if err != nil {
			return before.Result, fmt.Errorf("taking over the history: %w", err)
		}
	}
	return t.Result, nil
}

// A taking is the work that is under way.
type taking struct {
	Result
	ctx   context.Context
	from  Source
	opts  Options
	where places

	last    int64           // the thread that was looked at last
	threads map[int64]int64 // what has become of them, by their rows
	runs    map[int64]int64
}

// some takes threads until that is enough for a transaction, and reports
// whether there may be more.
func (t *taking) some(tx store.Tx) (more bool, err error) {
	const threadsTogether = 50
	list, err := t.from.Threads(t.ctx, t.last, threadsTogether)
	if err != nil {
		return false, err
	}
	taken := t.Items
	for _, thread := range list {
		if thread.ID <= t.last {
			return false, nil // a damaged index
		}
		if err := t.thread(tx, thread); err != nil {
			return false, err
		}
		t.last = thread.ID
		if t.Items-taken > itemsTogether {
			return true, nil
		}
	}
	return len(list) == threadsTogether, nil
}

func (t *taking) thread(tx store.Tx, was domain.Thread) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if !isUUID(was.UUID) {
		was.UUID = uuid.Must(uuid.NewV7()).String()
		t.Mended++
	}
	switch taken, err := tx.IsTaken(was.UUID); {
	case err != nil:
		return err
	case taken:
		t.Here++
		return nil
	}
	runs, err := t.from.RunsOfThread(t.ctx, was.ID, 0)
	if err != nil {
		t.LeftOut++
		return nil // what cannot be read is not taken
	}
	var ended []domain.Run
	for _, run := range runs {
		if run.State == domain.Queued || run.State == domain.Draft {
			t.Waiting++
			continue
		}
		ended = append(ended, run)
	}
	if len(ended) == 0 {
		return nil
	}
	v := values{now: tx.Now(), mended: &t.Mended}
	thread := domain.Thread{
		UUID: was.UUID, Title: v.text(was.Title, titleMost), CWD: t.where.directory(was.CWD), Mode: "default",
		Parent: t.threads[was.Parent], ForkRun: t.runs[was.ForkRun], Archived: was.Archived,
		Created: v.moment(was.Created), Active: v.moment(was.Active),
		// No agent: the one that is the default when somebody goes on with it.
	}
	if thread.Parent == 0 || thread.ForkRun == 0 { // one is nothing without the other
		thread.Parent, thread.ForkRun = 0, 0
	}
	if err := tx.InsertThread(&thread); err != nil {
		return err
	}
	if err := tx.SetAlias(thread.UUID, 0, thread.ID); err != nil {
		return err
	}
	for _, run := range ended {
		if err := t.run(tx, v, run, thread); err != nil {
			return err
		}
	}
	t.threads[was.ID] = thread.ID
	t.Conversations++
	return nil
}

func (t *taking) run(tx store.Tx, v values, was domain.Run, thread domain.Thread) error {
	run := domain.Run{
		Thread: thread.ID, Parent: t.runs[was.Parent], Prompt: v.text(was.Prompt, textMost), Title: v.text(was.Title, titleMost), Agent: v.name(was.Agent),
		Source: v.source(was.Source), Created: v.moment(was.Created), Started: v.moment(was.Started), Ended: v.moment(was.Ended), Active: v.moment(was.Active),
		Error: v.text(was.Error, textMost), ErrorCode: v.code(was.ErrorCode), Stop: v.name(was.Stop), Result: v.text(was.Result, textMost),
		Messages: max(0, was.Messages), Tokens: was.Tokens, Progress: v.json(was.Progress), Metadata: v.json(was.Metadata), Restricted: was.Restricted,
	}
	run.State = was.State
	if !run.State.Ended() {
		run.State, run.Ended = domain.Interrupted, run.Active
		run.Error, run.ErrorCode = "it had not ended in the database that it was taken over from; continue it to go on where it was", "ORPHANED"
	}
	for _, id := range []struct {
		was  string
		into *string
	}{{was.UUID, &run.UUID}, {was.SessionID, &run.SessionID}, {was.RunID, &run.RunID}} {
		var err error
		if *id.into, err = t.id(tx, id.was); err != nil {
			return err
		}
	}
	if err := tx.InsertRun(&run); err != nil {
		return err
	}
	t.runs[was.ID] = run.ID
	t.Runs++
	if err := t.items(tx, v, was.ID, run); err != nil {
		return err
	}
	return t.changes(tx, v, was.ID, run)
}

// id is an id if it is of the form of ours and names nothing yet, else a new
// one.
func (t *taking) id(tx store.Tx, was string) (string, error) {
	if isUUID(was) {
		taken, err := tx.IsTaken(was)
		if err != nil || !taken {
			return was, err
		}
	}
	t.Mended++
	return uuid.NewString(), nil
}

func (t *taking) items(tx store.Tx, v values, from int64, run domain.Run) error {
	const together = 200
	for last := int64(0); ; {
		list, err := t.from.ItemsAfter(t.ctx, from, last, together)
		if err != nil {
			t.LeftOut++
			return t.ctx.Err() // what cannot be read is not taken
		}
		for _, was := range list {
			if was.ID <= last {
				return nil // a damaged index
			}
			last = was.ID
			item, ok := v.item(was)
			if !ok {
				t.LeftOut++
				continue
			}
			item.Thread, item.Run, item.Seq = run.Thread, run.ID, tx.Seq()
			if err := t.attachments(tx, v, item.Data); err != nil {
				return err
			}
			if err := tx.InsertItem(&item); err != nil {
				return err
			}
			t.Items++
		}
		if len(list) < together {
			return nil
		}
	}
}

// attachments takes the bytes that belong to an item. What is not there, or not
// what its id says, is left out: the item says what it was.
func (t *taking) attachments(tx store.Tx, v values, data domain.ItemData) error {
	var blocks []domain.Block
	switch d := data.(type) {
	case domain.MessageContent:
		blocks = d.Blocks
	case domain.ToolDetails:
		blocks = d.Blocks
	}
	for _, b := range blocks {
		if b.Attachment == "" {
			continue
		}
		info, bytes, err := t.from.AttachmentPart(t.ctx, b.Attachment, 0, attachmentMost)
		if err != nil || info.Size > attachmentMost || domain.AttachmentID(bytes) != b.Attachment {
			t.LeftOut++
			if t.ctx.Err() != nil {
				return t.ctx.Err()
			}
			continue
		}
		if err := tx.PutAttachment(domain.Attachment{ID: b.Attachment, MIMEType: v.text(info.MIMEType, nameMost), Data: bytes}); err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) changes(tx store.Tx, v values, from int64, run domain.Run) error {
	list, err := t.from.Changes(t.ctx, from)
	if err != nil {
		t.LeftOut++
		return t.ctx.Err() // what cannot be read is not taken
	}
	for _, was := range list {
		path, ok := t.where.file(was.Path)
		if !ok {
			t.LeftOut++
			continue
		}
		change := domain.Change{
			Run: run.ID, Path: path, Before: v.content(was.Before), After: v.content(was.After), Binary: was.Binary, Seq: tx.Seq(), Updated: v.moment(was.Updated),
		}
		if err := tx.PutChange(change); err != nil {
			return err
		}
		t.Changes++
	}
	return nil
}
