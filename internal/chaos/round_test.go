//go:build linux && soak

package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
)

// Time limits of a round.
const (
	killingTime = 6 * time.Second
	// restTime limits the time until an undisturbed project is at rest.
	restTime = 60 * time.Second
	// endTime limits the time from the stop of the daemon to the end of the last process.
	endTime = 20 * time.Second
)

// A round runs one project under kills and examines it.
type round struct {
	t           *testing.T
	project     *project
	board       *board
	killer      *killer
	began       time.Time
	rand        *rand.Rand
	views       []*view         // guarded by board.mu
	interrupted map[string]bool // sessions that a person tried to interrupt; guarded by board.mu
	findings    []finding
	judged      int // number of judged approvals
	evidence    evidence
}

func newRound(t *testing.T, seed, number uint64) *round {
	r := &round{
		t: t, began: time.Now(),
		board: &board{questions: make(map[string]*question), turns: make(map[string]*knownTurn), seen: make(map[int64]time.Time), continued: make(map[string]bool)},
		rand:  rand.New(rand.NewPCG(seed, number)), interrupted: make(map[string]bool),
	}
	r.project = newProject(t)
	r.killer = &killer{project: r.project, rand: r.newRand(), done: make(map[string]int)}
	return r
}

// newRand returns an independent random source.
func (r *round) newRand() *rand.Rand { return rand.New(rand.NewPCG(r.rand.Uint64(), r.rand.Uint64())) }

func (r *round) since() time.Duration { return time.Since(r.began) }

func (r *round) found(check, format string, args ...any) {
	r.findings = append(r.findings, finding{check, fmt.Sprintf(format, args...)})
}

// run runs the round.
func (r *round) run() {
	people := []*person{r.editor(1), r.editor(2), r.editor(3), r.atSocket(4), r.atSocket(5), r.shell(6)}
	ctx, cancel := context.WithTimeout(context.Background(), 2*restTime)
	defer cancel()
	if !r.prepare(ctx) {
		r.found(checkUnsettled, "the shared sessions cannot be launched")
		return
	}
	ctx, cancel = context.WithTimeout(context.Background(), killingTime)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { r.killer.live(ctx) })
	for _, p := range people {
		group.Go(func() { p.live(ctx) })
	}
	group.Wait()

	// Half of the rounds end with a kill of all processes. In the others a checker connects before
	// the people leave.
	if r.rand.IntN(2) == 0 {
		r.killer.killAll()
	}
	r.killer.end()
	checker := r.editor(7)
	checker.opts = []client.Option{client.WithTrace(checker.watch)}
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if !r.entered(ctx, checker) {
		r.found(checkUnsettled, "no client can connect")
		return
	}
	for _, p := range people {
		p.leave()
	}
	r.examine(ctx, checker)
	checker.leave()
	stop := exec.CommandContext(ctx, program, "daemon", "stop", "--root", r.project.root)
	stop.Dir, stop.Env = r.project.root, r.project.environment()
	if out, err := stop.CombinedOutput(); err != nil {
		r.found(checkLeft, "the daemon does not stop: %v: %s", err, out)
	}
	r.requireNobody()
	r.requireSound()
}

func (r *round) entered(ctx context.Context, p *person) bool {
	for range 20 {
		if p.enter(ctx) {
			return true
		}
	}
	return false
}

// examine waits until the project is at rest and gathers evidence. It then brings all sessions to
// their end, gathers again and runs the checks.
func (r *round) examine(ctx context.Context, p *person) {
	if !r.atRest(ctx, p) {
		return
	}
	r.readShared(ctx, p)
	r.gather(ctx, p)
	found, judged := r.evidence.approved()
	r.findings, r.judged = append(r.findings, found...), judged

	continued := make(map[string]bool)
	for deadline := time.Now().Add(restTime); ; {
		if !r.atRest(ctx, p) {
			return
		}
		if time.Now().After(deadline) {
			r.found(checkUnsettled, "there are questions and runs to continue after %v", restTime)
			break
		}
		if r.answerAll(ctx, p)+r.continueAll(ctx, p, continued) == 0 {
			break
		}
	}
	r.gather(ctx, p)
	e := &r.evidence
	picture := func(object string) string { return filepath.Join(r.project.dir, "picture-"+object+".html") }
	r.findings = slices.Concat(r.findings, e.launches(), e.permits(), e.views(r.views), e.ends(), e.prompts(),
		e.registers(picture), explained(checkQueue, queueModel, e.queues(), picture),
		explained(checkChange, changeModel, e.reviews(), picture), explained(checkConv, convModel, e.shared(), picture))
}

// quietLooks is the number of consecutive polls without activity in a project at rest. An agent may
// continue by itself soon after its turn.
const quietLooks = 30

// atRest waits until only a human can cause activity.
func (r *round) atRest(ctx context.Context, p *person) bool {
	var moving []string
	quiet := 0
	for deadline := time.Now().Add(restTime); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		moving = moving[:0]
		open := len(r.pending(ctx, p))
		for _, s := range r.sessions(ctx, p) {
			if s.ended() || s.State == "waiting_input" || s.State == "queued" && open > 0 {
				continue
			}
			moving = append(moving, fmt.Sprintf("%s (%s) is %s", s.ID, s.Query, s.State))
		}
		if quiet++; len(moving) > 0 {
			quiet = 0
		}
		if quiet == quietLooks {
			return true
		}
	}
	r.found(checkUnsettled, "after %v: %q", restTime, moving)
	return false
}

// ask makes a call, and repeats it if the hub dies before its response.
func (p *person) ask(ctx context.Context, method string, params, result any) (err error) {
	for range 3 {
		if err = p.call(ctx, method, params, result); client.KindOf(err) != "hub_lost" {
			break
		}
	}
	return err
}

func (r *round) sessions(ctx context.Context, p *person) map[string]shownSession {
	var list struct {
		Sessions []shownSession `json:"sessions"`
	}
	if err := p.ask(ctx, "listSessions", object{"limit": 1000}, &list); err != nil {
		r.found(checkOdd, "listSessions: %v", err)
	}
	m := make(map[string]shownSession)
	for _, s := range list.Sessions {
		m[s.ID] = s
	}
	return m
}

func (r *round) pending(ctx context.Context, p *person) []shownApproval {
	var list struct {
		Approvals []shownApproval `json:"approvals"`
	}
	if err := p.ask(ctx, "fetchApprovals", object{}, &list); err != nil {
		r.found(checkOdd, "fetchApprovals: %v", err)
	}
	return list.Approvals
}

// answerAll approves all open questions.
func (r *round) answerAll(ctx context.Context, p *person) (n int) {
	for _, a := range r.pending(ctx, p) {
		p.decide(ctx, a.ID, func(ctx context.Context, id, _, words string) (decided, error) {
			var reply decided
			return reply, p.call(ctx, "sendDecision", object{"approval_id": id, "decision": "approve", "comment": words}, &reply)
		})
		n++
	}
	return n
}

// continueAll continues each ended session once, also a completed one: its agent may have died
// before it continued by itself. A continuation that does not complete is a finding.
func (r *round) continueAll(ctx context.Context, p *person, continued map[string]bool) (n int) {
	last := make(map[string]shownSession) // by thread_id
	for _, s := range r.sessions(ctx, p) {
		if other, ok := last[s.ThreadID]; !ok || s.TaskID > other.TaskID {
			last[s.ThreadID] = s
		}
	}
	open := make(map[string]bool)
	for _, a := range r.pending(ctx, p) {
		open[a.ThreadID] = true
	}
	for thread, s := range last {
		switch {
		case !s.ended() || open[thread] || continued[s.ID] || s.State == "completed" && continued[thread]:
			continue
		case continued[thread]:
			r.found(checkUnfit, "%s (%s), a continuation, is %s: %s %s", s.ID, s.Query, s.State, s.ErrorCode, s.Error)
			continued[s.ID] = true
			continue
		}
		continued[s.ID], continued[thread] = true, true
		if err := p.ask(ctx, "continueSession", object{"session_id": s.ID, "query": "continue"}, nil); err != nil {
			r.found(checkUnfit, "%s (%s) is %s: %v", s.ID, s.Query, s.State, err)
			continue
		}
		n++
	}
	return n
}

// gather collects the evidence.
func (r *round) gather(ctx context.Context, p *person) {
	e := &r.evidence
	var err error
	e.Notes, err = journalIn(r.project.agents).read()
	require.NoError(r.t, err)
	e.Began = r.began
	var status struct {
		Subsystems struct {
			Store struct {
				LastSeq int64 `json:"last_seq"`
			} `json:"store"`
		} `json:"subsystems"`
	}
	if err := p.ask(ctx, "daemon.status", object{}, &status); err != nil {
		r.found(checkOdd, "daemon.status: %v", err)
	}
	// A separate subscription reads the log from the first event on. A subscription that starts
	// while an agent asks receives the question without its number.
	whole, since := &view{name: "the log"}, int64(0)
	sub, err := eventstream.Subscribe(ctx, p.c, eventstream.Options{Since: &since}, whole.take)
	if err != nil {
		r.found(checkOdd, "Subscribe: %v", err)
		return
	}
	defer sub.Close()
	for deadline := time.Now().Add(restTime); whole.last() < status.Subsystems.Store.LastSeq; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.found(checkEvents, "event %d of %d is the last that arrives", whole.last(), status.Subsystems.Store.LastSeq)
			break
		}
	}
	e.Log = e.Log[:0]
	whole.mu.Lock()
	for _, event := range whole.events {
		if event.Seq > 0 {
			e.Log = append(e.Log, loggedOf(event))
		}
	}
	whole.mu.Unlock()
	e.Sessions, e.Approvals = r.sessions(ctx, p), make(map[string]shownApproval)
	for _, l := range e.Log {
		if _, known := e.Approvals[l.Data.ApprovalID]; known || l.Kind != "approval.opened" {
			continue
		}
		var shown struct {
			Approval shownApproval `json:"approval"`
		}
		if err := p.ask(ctx, "getApproval", object{"approval_id": l.Data.ApprovalID}, &shown); err != nil {
			r.found(checkOdd, "getApproval: %v", err)
		}
		e.Approvals[l.Data.ApprovalID] = shown.Approval
	}
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	e.Calls, e.Launches, e.Stopped = slices.Clone(r.board.calls), slices.Clone(r.board.launches), maps.Clone(r.interrupted)
	e.Queues, e.Reviews, e.Conversations = slices.Clone(r.board.queueCalls), slices.Clone(r.board.changeCalls), slices.Clone(r.board.convCalls)
	e.Seen = make(map[int64]int64)
	for seq, at := range r.board.seen {
		e.Seen[seq] = int64(at.Sub(r.began))
	}
}

// requireNobody waits for the end of all processes.
func (r *round) requireNobody() {
	var left []running
	for deadline := time.Now().Add(endTime); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left = r.project.running(); len(left) == 0 {
			return
		}
	}
	r.found(checkLeft, "%v after the end: %v", endTime, left)
}

// requireSound requires that the database has no gap in its events and no damage.
func (r *round) requireSound() {
	db, err := sql.Open("sqlite", "file:"+r.project.database()+"?mode=ro")
	require.NoError(r.t, err)
	defer db.Close()
	var n, low, high int64
	require.NoError(r.t, db.QueryRow("SELECT count(*), coalesce(min(seq), 1), coalesce(max(seq), 0) FROM events").Scan(&n, &low, &high))
	if low != 1 || high != n {
		r.found(checkEvents, "%d events are numbered from %d to %d", n, low, high)
	}
	var check string
	require.NoError(r.t, db.QueryRow("PRAGMA integrity_check").Scan(&check))
	if check != "ok" {
		r.found(checkOdd, "the database is damaged: %s", check)
	}
}

// keep copies the files of a round to a directory that outlives the test.
func (r *round) keep(dir string) {
	require.NoError(r.t, os.MkdirAll(dir, 0o700))
	views := make(map[string][]logged)
	for _, v := range r.views {
		for _, e := range v.events {
			views[v.name] = append(views[v.name], loggedOf(e))
		}
	}
	history, err := json.MarshalIndent(struct {
		Findings []finding           `json:"findings"`
		Evidence *evidence           `json:"evidence"`
		Views    map[string][]logged `json:"views"`
	}{r.findings, &r.evidence, views}, "", " ")
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(filepath.Join(dir, "history.json"), history, 0o600))
	files, err := filepath.Glob(filepath.Join(r.project.dir, "picture-*.html"))
	require.NoError(r.t, err)
	for _, file := range append(files, filepath.Join(r.project.dir, "log"), journalIn(r.project.agents).path, r.project.database()) {
		if content, err := os.ReadFile(file); err == nil {
			require.NoError(r.t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600))
		}
	}
}
