package handlers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// fakeWorktrees are directories without git.
type fakeWorktrees struct {
	parent  string
	has     string // a file in each
	list    []worktree.Worktree
	refused error // what Land and Discard without Force return
	landed  worktree.LandOptions
	bases   []string // from which Create started
	saved   []any    // the arguments of Save
}

func (f *fakeWorktrees) Create(_ context.Context, name, base string, taken ...string) (worktree.Worktree, error) {
	f.bases = append(f.bases, base)
	name = strings.ReplaceAll(name, " ", "-")
	for slices.Contains(taken, name) || slices.ContainsFunc(f.list, func(w worktree.Worktree) bool { return w.Name == name }) {
		name += "-2"
	}
	w := worktree.Worktree{Name: name, Top: filepath.Join(f.parent, name), Dir: filepath.Join(f.parent, name), Branch: "duet/" + name, Base: "base", Into: "main"}
	f.list = append(f.list, w)
	return w, errors.Join(os.MkdirAll(w.Dir, 0o700), os.WriteFile(filepath.Join(w.Dir, cmp.Or(f.has, "f")), nil, 0o600))
}

func (f *fakeWorktrees) List(context.Context) ([]worktree.Worktree, error) { return f.list, nil }

func (f *fakeWorktrees) Prepare(context.Context, worktree.Worktree, []string, func(context.Context) error) (worktree.Copies, error) {
	return worktree.Copies{}, nil
}

func (f *fakeWorktrees) Renew(context.Context, worktree.Worktree) (bool, error) { return false, nil }

func (f *fakeWorktrees) Changes(_ context.Context, w worktree.Worktree, patch int) (c worktree.Changes, err error) {
	c.Files = []worktree.FileChange{{Path: "a.txt", Added: 3, Removed: 1}, {Path: "b.bin", IsBinary: true}}
	if patch > 0 {
		c.Patch = "patch of " + w.Name
	}
	return c, nil
}

func (f *fakeWorktrees) Land(_ context.Context, w worktree.Worktree, opts worktree.LandOptions) (worktree.Landed, error) {
	f.landed = opts
	return worktree.Landed{Into: w.Into, Commits: []string{"c1"}, Files: []string{"a.txt"}, Unfiltered: worktree.Listing{Count: 1, First: []string{"a.txt"}}}, f.refused
}

func (f *fakeWorktrees) Save(_ context.Context, w worktree.Worktree, id string, by worktree.Author, landed string) (worktree.Saved, error) {
	f.saved = []any{w.Name, id, by, landed}
	return worktree.Saved{Commit: "c1", Nested: []string{"n/"}}, f.refused
}

func (f *fakeWorktrees) Losses(context.Context, worktree.Worktree) (l worktree.Losses, err error) {
	if loss, is := f.refused.(*worktree.LossError); is {
		l = loss.Losses
	}
	return l, nil
}

func (f *fakeWorktrees) Discard(_ context.Context, w worktree.Worktree, opts worktree.DiscardOptions) (worktree.Discarded, error) {
	if f.refused != nil && !opts.Force {
		return worktree.Discarded{}, f.refused
	}
	f.list = slices.DeleteFunc(f.list, func(one worktree.Worktree) bool { return one == w })
	return worktree.Discarded{Ref: "refs/duet/discarded/" + w.Name}, os.RemoveAll(w.Top)
}

func withWorktrees(t *testing.T) (*fakeWorktrees, func(*hub.Options)) {
	parent := must(filepath.EvalSymlinks(t.TempDir()))(t)
	f := &fakeWorktrees{parent: parent}
	return f, func(o *hub.Options) {
		o.Root = must(filepath.EvalSymlinks(o.Root))(t)
		o.WorktreesDir = parent
		fakeOf(o).openWorktrees = func(context.Context, bool) (hub.Worktrees, error) { return f, nil }
	}
}

func TestWorktreeOfASession(t *testing.T) {
	f, worktrees := withWorktrees(t)
	var at []string // of each prompt
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		at = append(at, x.CWD)
		assert.Equal(t, x.CWD, x.Launch.Root, "the agent is limited to the worktree")
		return quick(ctx, x)
	}, worktrees)
	root := must(filepath.EvalSymlinks(w.dir))(t)
	c := w.connect(frame.LSP)
	id := w.finished(c.launch(`{"query":"one","title":"fix","worktree":true}`))
	var started protocol.Started
	require.NoError(t, json.Unmarshal(c.ask("session.start", `{"prompt":"two","title":"based","worktree":true,"worktree_base":"abc"}`), &started))
	w.finished(started.ID)
	assert.Equal(t, []string{"", "abc"}, f.bases)
	assert.Equal(t, "worktree", c.fail("session.start", `{"prompt":"two","worktree_base":"abc"}`).Data["param"])
	f.list, at = f.list[:1], at[:1]
	dir := filepath.Join(f.parent, "fix")
	assert.Equal(t, []string{dir}, at)
	worktreeOf := func(id string) (state protocol.WorktreeState) {
		require.NoError(t, json.Unmarshal(testkit.JSONMember(t, c.ask("getSessionState", `{"session_id":"`+id+`"}`), "session.worktree"), &state))
		return state
	}
	assert.Equal(t, protocol.WorktreeState{Branch: "duet/fix", Dir: dir}, worktreeOf(id))
	var set protocol.SetSessionResult
	require.NoError(t, json.Unmarshal(c.ask("session.set", `{"session":"`+id+`","mode":"plan"}`), &set))
	assert.Equal(t, &protocol.WorktreeState{Branch: "duet/fix", Dir: dir}, set.Turn.Worktree)
	named, hl := `{"session":"`+id+`"`, `{"session_id":"`+id+`"`

	assert.JSONEq(t, `{"branch":"main","commits":["c1"],"files":["a.txt"],"unfiltered":{"count":1,"first":["a.txt"]}}`, string(c.ask("session.land", named+`,"method":"squash","into":"next","message":"Fix it"}`)))
	assert.Equal(t, worktree.LandOptions{Method: worktree.Squash, Into: "next", Message: "Fix it", Session: f.landed.Session}, f.landed)
	assert.Contains(t, string(c.ask("getConversation", hl+`}`)), "Landed duet/fix on main: 1 commit, 1 file.")
	assert.Equal(t, -32602, c.fail("session.land", named+`,"method":"other"}`).Code)
	assert.JSONEq(t, `{"commit":"c1","name":"fix","nested":["n/"]}`, string(c.ask("session.save", named+`,"name":"A","email":"a@b","landed":"c0"}`)))
	uuid := testkit.JSONAs[string](t, c.ask("session.get", named+`}`), "session.session_uuid")
	assert.Equal(t, uuid, f.landed.Session)
	assert.Equal(t, []any{"fix", uuid, worktree.Author{Name: "A", Email: "a@b"}, "c0"}, f.saved)
	f.list[0].Into = "" // HEAD was detached
	assert.Equal(t, "into", c.fail("session.land", named+`}`).Data["param"])
	c.ask("session.land", named+`,"method":"patch"}`)
	f.list[0].Into = "main"

	f.refused = &worktree.ConflictError{Into: "main", Conflicts: []worktree.Conflict{{Path: "a.txt", Kind: "contents"}}}
	assert.Equal(t, map[string]any{"kind": "conflict", "paths": []any{"a.txt"}}, c.fail("session.land", named+`}`).Data)
	assert.Equal(t, worktree.Merge, f.landed.Method)
	f.refused = &worktree.OverlapError{Dir: "d", Paths: []string{"b.txt"}}
	assert.Equal(t, map[string]any{"kind": "overlap", "paths": []any{"b.txt"}}, c.fail("session.land", named+`}`).Data)
	f.refused = &worktree.BusyError{Dir: "d", Operation: "merge"}
	assert.Equal(t, "bad_state", c.fail("session.land", named+`}`).Data["kind"])
	assert.Equal(t, "bad_state", c.fail("session.save", named+`}`).Data["kind"])

	f.refused = &worktree.LossError{Losses: worktree.Losses{Untracked: worktree.Listing{Count: 2, First: []string{"b.txt"}}}}
	lost := map[string]any{"kind": "would_lose_work", "losses": map[string]any{"untracked": map[string]any{"count": 2.0, "first": []any{"b.txt"}}}}
	assert.Equal(t, lost, c.fail("session.discard", named+`}`).Data)
	assert.Equal(t, lost, c.fail("session.delete", named+`}`).Data)
	assert.DirExists(t, dir)
	assert.JSONEq(t, `{"ref":"refs/duet/discarded/fix"}`, string(c.ask("session.discard", named+`,"force":true}`)))
	assert.Equal(t, protocol.WorktreeState{Branch: "duet/fix", Dir: dir, Gone: true}, worktreeOf(id))

	e := c.fail("continueSession", hl+`,"query":"two"}`)
	assert.Equal(t, "no_worktree", e.Data["kind"])
	assert.Contains(t, e.Message, "`duet-rpc prompt --fork task-0001 TEXT` continues it in the project's directory")
	assert.Equal(t, "no_worktree", c.fail("session.land", named+`}`).Data["kind"])
	fork := testkit.JSONAs[string](t, c.ask("continueSession", hl+`,"query":"two","fork":true}`), "session_id")
	w.ended(fork)
	assert.Equal(t, root, at[1])
	assert.Equal(t, "no_worktree", c.fail("session.discard", `{"session":"`+fork+`"}`).Data["kind"])
}

// In a worktree, a link to a file of the project refers to the worktree's copy, if there is one.
func TestMentionedFilesAreThoseOfTheWorktree(t *testing.T) {
	f, worktrees := withWorktrees(t)
	var sent []string
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		for _, block := range x.Content {
			sent = append(sent, block.URI)
		}
		return quick(ctx, x)
	}, worktrees)
	root := must(filepath.EvalSymlinks(w.dir))(t)
	uri := func(path string) string { return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String() }
	dir := filepath.Join(f.parent, "fix")
	f.has = "a b.txt"
	links := []string{uri(filepath.Join(root, "a b.txt")), uri(filepath.Join(root, "untracked.txt")), uri("/elsewhere/a b.txt"), "https://localhost/a"}
	var content []string
	for _, link := range links {
		content = append(content, `{"type":"resource_link","name":"n","uri":"`+link+`"}`)
	}
	c := w.connect(frame.LSP)
	w.ended(testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"fix","worktree":true,"content":[`+strings.Join(content, ",")+`]}`), "session_id"))
	assert.Equal(t, append([]string{uri(filepath.Join(dir, "a b.txt"))}, links[1:]...), sent)
}

// A fork works in the same worktree. The deletion of the last session in it deletes the worktree.
func TestWorktreeIsDeletedWithItsLastSession(t *testing.T) {
	f, worktrees := withWorktrees(t)
	w := newWorld(t, quick, worktrees)
	c := w.connect(frame.LSP)
	one := w.finished(c.launch(`{"query":"fix","worktree":true}`))
	two := w.finished(c.sessionID("continueSession", `{"session_id":"`+one+`","query":"p","fork":true}`))
	dir := filepath.Join(f.parent, "fix")
	assert.Equal(t, dir, testkit.JSONAs[string](t, c.ask("session.delete", `{"session":"`+two+`"}`), "worktree"))
	assert.DirExists(t, dir)
	c.ask("session.delete", `{"session":"`+one+`"}`)
	assert.NoDirExists(t, dir)
}

// A draft has no turn that could note what became of its worktree.
func TestWorktreeOfADraftIsDiscarded(t *testing.T) {
	f, worktrees := withWorktrees(t)
	c := newWorld(t, quick, worktrees).connect(frame.LSP)
	draft := answer[protocol.Started](c, "session.start", `{"prompt":"fix","worktree":true,"draft":true}`)
	dir := filepath.Join(f.parent, "fix")
	assert.DirExists(t, dir)
	c.ask("session.discard", `{"session":"`+draft.SessionUUID+`"}`)
	assert.NoDirExists(t, dir)
}

func TestWorktreeIsInUse(t *testing.T) {
	_, worktrees := withWorktrees(t)
	running := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, _ *turn) catalog.ExecutePromptResult {
		close(running)
		<-ctx.Done()
		return done
	}, worktrees)
	c := w.connect(frame.LSP)
	id := c.launch(`{"query":"fix","worktree":true}`)
	<-running
	for _, method := range []string{"session.land", "session.discard", "session.delete"} {
		assert.Equal(t, "bad_state", c.fail(method, `{"session":"`+id+`"}`).Data["kind"], method)
	}
}

func TestRefusedLaunchLeavesNoWorktree(t *testing.T) {
	f, worktrees := withWorktrees(t)
	w := newWorld(t, quick, worktrees)
	c := w.connect(frame.LSP)
	known := "01890a5d-ac96-774b-bcce-b302099a8057"
	w.ended(c.launch(`{"query":"one","conversation_id":"` + known + `"}`))
	for params, param := range map[string]string{
		`{"query":"fix","worktree":true,"conversation_id":"` + known + `"}`: "worktree",
		`{"query":"fix","worktree":true,"working_dir":"/"}`:                 "working_dir",
		`{"query":"fix","worktree":true,"agent":"nope"}`:                    "agent",
	} {
		assert.Equal(t, param, c.fail("launchSession", params).Data["param"], params)
		assert.Empty(t, f.list)
		assert.NoDirExists(t, filepath.Join(f.parent, "fix"))
	}
	w = newWorld(t, quick) // a hub without worktrees
	assert.Equal(t, "worktree_failed", w.connect(frame.LSP).fail("launchSession", `{"query":"fix","worktree":true}`).Data["kind"])
}

// Rules for files of the project apply to the files of a worktree.
func TestRulesCountInAWorktree(t *testing.T) {
	_, worktrees := withWorktrees(t)
	var asked catalog.RequestPermissionResult
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		input, err := json.Marshal(map[string]string{"file_path": filepath.Join(x.CWD, "secret", "a")})
		assert.NoError(t, err)
		asked, err = x.daemon.RequestPermission(ctx, catalog.RequestPermissionParams{
			SessionToken: x.SessionToken, TaskID: x.TaskID, ToolName: "Edit", ToolUseID: "1", ToolKind: "edit",
			ToolInput: input,
		})
		assert.NoError(t, err)
		return quick(ctx, x)
	}, worktrees, func(o *hub.Options) {
		fakeOf(o).rules = func() []config.Rule {
			return []config.Rule{{Effect: config.EffectDeny, Tool: "Edit", Path: "secret/**", Source: "user"}}
		}
	})
	w.ended(testkit.JSONAs[string](t, w.connect(frame.LSP).ask("launchSession", `{"query":"fix","worktree":true}`), "session_id"))
	assert.Equal(t, "rule=user", asked.Reason)
}

func TestAttemptsAtOnePrompt(t *testing.T) {
	f, worktrees := withWorktrees(t)
	began := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if strings.HasSuffix(x.CWD, "-2") {
			close(began)
			<-ctx.Done()
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		return quick(ctx, x)
	}, worktrees)
	c := w.connect(frame.LSP)
	assert.Equal(t, "agents", c.fail("attempt.start", `{"prompt":"fix","agents":[{}]}`).Data["param"])
	assert.Equal(t, -32602, c.fail("attempt.start", `{"prompt":"","agents":[{},{}]}`).Code)
	assert.Equal(t, "agent", c.fail("attempt.start", `{"prompt":"fix","agents":[{},{"agent":"none"}]}`).Data["param"])
	assert.Empty(t, f.list, "a refused launch creates no worktree")

	launched := answer[protocol.StartAttemptsResult](c, "attempt.start", `{"prompt":"fix","agents":[{},{"mode":"plan"}],"metadata":{"a":1}}`)
	require.Len(t, launched.Turns, 2)
	assert.Equal(t, []string{"1.1", "2.1"}, []string{launched.Turns[0].Name, launched.Turns[1].Name})
	first, second := launched.Turns[0].ID, launched.Turns[1].ID
	w.ended(first)
	<-began
	assert.Equal(t, []string{"", "base"}, f.bases, "they start from the same commit")
	shown := answer[humanlayer.SessionStateResult](c, "getSessionState", `{"session_id":"`+second+`"}`)
	assert.NotEmpty(t, shown.Session.Attempts)
	assert.Equal(t, "plan", shown.Session.PermissionMode)

	compared := answer[protocol.AttemptsResult](c, "attempt.list", `{"session":"`+second+`","patch":true}`)
	assert.Equal(t, "fix", compared.Prompt)
	require.Len(t, compared.Attempts, 2)
	one := compared.Attempts[0]
	assert.Equal(t, []any{first, domain.Completed, 1}, []any{one.ID, one.State, one.Usage.Turns})
	assert.Equal(t, []protocol.FileChange{{Path: "a.txt", Added: 3, Removed: 1}, {Path: "b.bin", Binary: true}}, one.Files)
	assert.Equal(t, [2]int{3, 1}, [2]int{one.Added, one.Removed})
	assert.Equal(t, "patch of "+filepath.Base(one.Worktree.Dir), one.Patch)
	assert.Equal(t, domain.Running, compared.Attempts[1].State)

	chosen := `{"session":"` + first + `"`
	e := c.fail("attempt.choose", chosen+`}`)
	assert.Equal(t, "bad_state", e.Data["kind"])
	assert.Contains(t, e.Message, "other attempts still work (2.1)")
	f.refused = &worktree.ConflictError{Into: "main", Conflicts: []worktree.Conflict{{Path: "a.txt", Kind: "contents"}}}
	assert.Equal(t, "conflict", c.fail("attempt.choose", chosen+`,"interrupt":true}`).Data["kind"])
	assert.Len(t, f.list, 2, "a conflict discards no worktree")
	f.refused = nil
	done := answer[protocol.ChooseAttemptResult](c, "attempt.choose", chosen+`,"interrupt":true,"method":"squash"}`)
	assert.Equal(t, worktree.Squash, f.landed.Method)
	assert.Equal(t, "main", done.Branch)
	require.Len(t, done.Discarded, 1)
	assert.Equal(t, second, done.Discarded[0].TurnUUID)
	assert.NotEmpty(t, done.Discarded[0].Ref)
	assert.Empty(t, done.Discarded[0].Error)
	require.Len(t, f.list, 1)
	assert.Contains(t, string(c.ask("attempt.list", chosen+`}`)), "the worktree was discarded")
	assert.JSONEq(t, `[]`, string(testkit.JSONMember(t, c.ask("attempt.choose", chosen+`}`), "discarded")))

	alone := c.launch(`{"query":"alone"}`)
	assert.Equal(t, "no_attempts", c.fail("attempt.list", `{"session":"`+alone+`"}`).Data["kind"])

	// A client may also start them one by one, with an id that it chooses.
	const chosenID = "7a1c7a2f-3a51-4d0f-9a8e-0b1f5f7d3c11"
	assert.Equal(t, "worktree", c.fail("session.start", `{"prompt":"x","attempts":"`+chosenID+`"}`).Data["param"])
	assert.Equal(t, "attempts", c.fail("session.start", `{"prompt":"x","worktree":true,"attempts":"x"}`).Data["param"])
	assert.Equal(t, "no_attempts", c.fail("attempt.list", `{"attempts":"`+chosenID+`"}`).Data["kind"])
	mine := answer[protocol.Started](c, "session.start", `{"prompt":"x","worktree":true,"draft":true,"attempts":"`+chosenID+`"}`)
	listed := answer[protocol.AttemptsResult](c, "attempt.list", `{"attempts":"`+chosenID+`"}`)
	require.Len(t, listed.Attempts, 1)
	assert.Equal(t, mine.SessionUUID, listed.Attempts[0].SessionUUID)
	assert.Equal(t, domain.Draft, listed.Attempts[0].State)
}
