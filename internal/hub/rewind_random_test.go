package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Two sessions and a user edit the files of a directory, and the user accepts, reverts, reopens,
// rewinds and undoes at random. The files and the decisions are always as a simple model has them.
func TestRandomEditsAndRewinds(t *testing.T) {
	seeds := uint64(2)
	if testkit.Soak {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRewindWorld(t, seed)
			for step := range 60 {
				what := w.step()
				require.Equal(t, w.model, w.files(), "after step %d: %s", step, what)
				w.requireDecisions(what)
			}
		})
	}
}

// A disk has the texts of files, each of one line. A missing file has no entry.
type disk map[string]string

type modelTurn struct {
	domain.TurnInSession
	session int
	at      disk               // before the turn
	after   map[string]*string // of the files that it has changed; nil: deleted
	states  map[string]string
}

func (r *modelTurn) expected(file string) *string {
	if r.states[file] == domain.ChangeReverted {
		return r.at.text(file)
	}
	return r.after[file]
}

func (d disk) text(file string) *string {
	if text, found := d[file]; found {
		return &text
	}
	return nil
}

func (d disk) set(file string, text *string) {
	if delete(d, file); text != nil {
		d[file] = *text
	}
}

type modelRewind struct {
	from  disk // before it
	files []string
}

type rewindWorld struct {
	t       *testing.T
	h       *Hub
	random  *rand.Rand
	dir     string
	model   disk
	texts   int
	turns   []*modelTurn
	last    [2]string                    // turn of each session
	rewinds map[*modelTurn][]modelRewind // that are not undone
	work    func(x *fakeTurn)            // of the next turn
}

func newRewindWorld(t *testing.T, seed uint64) *rewindWorld {
	testkit.NeedTool(t, "git")
	w := &rewindWorld{t: t, random: rand.New(rand.NewPCG(seed, 33)), dir: t.TempDir(), model: disk{}, rewinds: make(map[*modelTurn][]modelRewind)}
	w.h = openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		w.work(x)
		return completed
	}, func(o *Options) {
		o.Root = w.dir
		state := t.TempDir()
		fakeOf(o).checkpoints = func(of string) (checkpoint.Options, bool) { return checkpoint.Options{Dir: of, State: state}, true }
	})
	return w
}

func (w *rewindWorld) files() disk {
	all := disk{}
	list := must(os.ReadDir(w.dir))(w.t)
	for _, e := range list {
		all[e.Name()] = string(must(os.ReadFile(filepath.Join(w.dir, e.Name())))(w.t))
	}
	return all
}

// edit changes a file, on the disk and in the model. nil is no file.
func (w *rewindWorld) edit(file string) *string {
	var text *string
	if _, exists := w.model[file]; !exists || w.random.IntN(4) > 0 {
		w.texts++
		new := fmt.Sprintf("text %d\n", w.texts)
		text = &new
	}
	w.put(file, text)
	w.model.set(file, text)
	return text
}

func (w *rewindWorld) put(file string, text *string) {
	path := filepath.Join(w.dir, file)
	if text == nil {
		err := os.Remove(path)
		require.True(w.t, err == nil || errors.Is(err, fs.ErrNotExist), err)
		return
	}
	require.NoError(w.t, os.WriteFile(path, []byte(*text), 0o600))
}

func (w *rewindWorld) file() string { return fmt.Sprintf("file%d", w.random.IntN(4)) }

func (w *rewindWorld) step() string {
	if len(w.turns) == 0 {
		return w.agent()
	}
	turn := w.turns[w.random.IntN(len(w.turns))]
	switch w.random.IntN(10) {
	case 0, 1, 2:
		return w.agent()
	case 3, 4:
		file := w.file()
		w.edit(file)
		return "the user edits " + file
	case 5, 6:
		return w.decide(turn)
	case 7, 8:
		return w.rewind(turn)
	}
	return w.undo(turn)
}

// agent runs a turn that changes one or two files, with an editing tool or a command.
func (w *rewindWorld) agent() string {
	turn := &modelTurn{session: w.random.IntN(2), at: maps.Clone(w.model), after: make(map[string]*string), states: make(map[string]string)}
	byCommand := w.random.IntN(2) == 0
	w.work = func(x *fakeTurn) {
		if byCommand {
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Kind: "execute", Status: "in_progress"})
			defer x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed"})
		}
		for range 1 + w.random.IntN(2) {
			file := w.file()
			if _, again := turn.after[file]; again {
				continue
			}
			turn.after[file], turn.states[file] = w.edit(file), domain.ChangeOpen
			if !byCommand {
				x.report(catalog.EventFileChange, catalog.FileChange{Path: filepath.Join(w.dir, file), Before: turn.at.text(file), After: turn.after[file]})
			}
		}
	}
	if from := w.last[turn.session]; from == "" {
		turn.TurnInSession = launch(w.t, w.h, "p")
	} else {
		turn.TurnInSession = must(w.h.Continue(context.Background(), ContinueSpec{From: from, Prompt: "p"}))(w.t)
	}
	turn.TurnInSession = await(w.t, w.h, turn.TurnInSession)
	w.last[turn.session] = turn.UUID
	w.turns = append(w.turns, turn)
	return fmt.Sprintf("session %d changes %v, by a command: %t", turn.session, slices.Sorted(maps.Keys(turn.after)), byCommand)
}

func (w *rewindWorld) decide(turn *modelTurn) string {
	file := slices.Sorted(maps.Keys(turn.after))[w.random.IntN(len(turn.after))]
	decision := []string{changereview.Accept, changereview.Revert, changereview.Reopen}[w.random.IntN(3)]
	what := fmt.Sprintf("%s %s of %s", decision, file, domain.TaskName(turn.Task))
	is, to := turn.states[file], map[string]string{changereview.Accept: domain.ChangeAccepted, changereview.Revert: domain.ChangeReverted, changereview.Reopen: domain.ChangeOpen}[decision]
	if is == domain.ChangeReverted && decision == changereview.Accept {
		to = is
	}
	refused := false
	if (is == domain.ChangeReverted) != (to == domain.ChangeReverted) {
		from, result := turn.expected(file), turn.at.text(file)
		if is == domain.ChangeReverted {
			result = turn.after[file]
		}
		now := w.model.text(file)
		if refused = !same(now, from) && !same(now, result); !refused {
			w.model.set(file, result)
		}
	}
	_, err := w.h.Review().Decide(context.Background(), turn.TurnInSession, changereview.Decision{Path: filepath.Join(w.dir, file), Decision: decision})
	if refused {
		require.Equal(w.t, domain.KindChangedSince, kindOf(w.t, err), what)
		return what + ", refused"
	}
	require.NoError(w.t, err, what)
	turn.states[file] = to
	return what
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// later returns the turns of a turn's session from it on.
func (w *rewindWorld) later(turn *modelTurn) (list []*modelTurn) {
	for _, other := range w.turns[slices.Index(w.turns, turn):] {
		if other.session == turn.session {
			list = append(list, other)
		}
	}
	return list
}

func (w *rewindWorld) all() []string { return []string{"file0", "file1", "file2", "file3"} }

func (w *rewindWorld) rewind(turn *modelTurn) string {
	all := w.random.IntN(4) == 0
	rewind := modelRewind{from: maps.Clone(w.model)}
	left := make(map[string]string)
	for _, file := range w.all() {
		if same(w.model.text(file), turn.at.text(file)) {
			continue
		}
		var last *modelTurn
		for _, other := range w.later(turn) {
			if _, changed := other.after[file]; changed {
				last = other
			}
		}
		switch {
		case all:
		case last == nil:
			left[file] = LeftOther
			continue
		case !same(last.expected(file), w.model.text(file)):
			left[file] = LeftEdited
			continue
		}
		left[file] = ""
		rewind.files = append(rewind.files, file)
		w.model.set(file, turn.at.text(file))
		w.decided(turn, file, domain.ChangeReverted)
	}
	if len(rewind.files) > 0 {
		w.rewinds[turn] = append(w.rewinds[turn], rewind)
	}
	what := fmt.Sprintf("rewind to before %s, all files: %t", domain.TaskName(turn.Task), all)
	r := must(w.h.Rewind(context.Background(), RewindSpec{Turn: turn.UUID, All: all}))(w.t, what)
	assert.Equal(w.t, left, leftOf(r), what)
	return what
}

func (w *rewindWorld) undo(turn *modelTurn) string {
	what := "undo the rewind to before " + domain.TaskName(turn.Task)
	r, err := w.h.UndoRewind(context.Background(), turn.UUID)
	rewinds := w.rewinds[turn]
	if len(rewinds) == 0 {
		require.Equal(w.t, domain.KindBadState, kindOf(w.t, err), what)
		return what + ", refused"
	}
	require.NoError(w.t, err, what)
	rewind := rewinds[len(rewinds)-1]
	left := make(map[string]string)
	restored := 0
	for _, file := range rewind.files {
		to, now := rewind.from.text(file), w.model.text(file)
		switch {
		case same(now, to):
			continue
		case !same(now, turn.at.text(file)):
			left[file] = LeftEdited
			continue
		}
		left[file] = ""
		restored++
		w.model.set(file, to)
		w.decided(turn, file, domain.ChangeOpen)
	}
	assert.Equal(w.t, left, leftOf(r), what)
	if restored == 0 || restored == len(left) {
		w.rewinds[turn] = rewinds[:len(rewinds)-1]
	}
	return what
}

// decided sets the state of the changes of a file by a turn and the later ones of its session.
func (w *rewindWorld) decided(from *modelTurn, file, state string) {
	for _, turn := range w.later(from) {
		if _, changed := turn.after[file]; changed {
			turn.states[file] = state
		}
	}
}

func leftOf(r Rewound) map[string]string {
	left := make(map[string]string)
	for _, f := range r.Files {
		left[filepath.Base(f.Path)] = f.Left
	}
	return left
}

func (w *rewindWorld) requireDecisions(what string) {
	for _, turn := range w.turns {
		files := must(w.h.Review().Files(context.Background(), turn.TurnInSession))(w.t)
		states := make(map[string]string)
		for _, file := range files {
			states[filepath.Base(file.Path)] = file.State
		}
		require.Equal(w.t, turn.states, states, "%s after: %s", domain.TaskName(turn.Task), what)
	}
}
