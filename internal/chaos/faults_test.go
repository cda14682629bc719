//go:build linux && amd64 && soak

package chaos

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	state "github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

var (
	faultsTime = flag.Duration("faults.time", time.Minute, "how long TestFaults begins new plays; 0: until each fault had its play")
	faultsOnly = flag.String("faults.only", "", "play only this fault, as a failure prints it")
	faultsLike = flag.String("faults.like", "", "play only faults that match this regular expression")
	faultsMost = flag.Int("faults.most", 40, "how many calls of a class are to fail, spread over all; 0: each of them")
	faultsPart = flag.String("faults.part", "1/1", "play only this part of the faults, such as 3/8: all eight together play each fault once")
	faultsShow = flag.Bool("faults.show", false, "print the errors of each play")
)

// Each call of the file system fails in turn, while the same play runs: sessions, a question, a rule,
// a rewind, a worktree, a deletion. The daemon goes on or ends with a reason, errors have one, a
// repeated call succeeds, and nothing that was acknowledged is lost or done twice.
//
// An injector makes the calls of the daemon and of its git fail, once or until the call that a
// client waits for has failed. strace cannot do this to a Go program: it counts the calls of each
// thread.
func TestFaults(t *testing.T) {
	needInjector(t)
	seed := testkit.Seed(t)
	if *faultsOnly != "" {
		f, err := parseFault(*faultsOnly)
		require.NoError(t, err)
		playFault(t, f)
		return
	}
	faults := partOf(t, allFaults(t, playFault(t, fault{})), *faultsPart)
	shuffle(faults, rand.New(rand.NewPCG(seed, 0)))
	began, played, missed := time.Now(), 0, 0
	for _, f := range faults {
		if *faultsTime > 0 && time.Since(began) > *faultsTime {
			break
		}
		t.Run(f.String(), func(t *testing.T) {
			if hits := playFault(t, f); len(hits) == 0 {
				missed++
			}
		})
		played++
	}
	t.Logf("%d of %d faults played in %v; in %d of them the call did not come", played, len(faults), time.Since(began).Round(time.Second), missed)
}

// A file that vanishes between two steps of the play is missed with a reason, or made again.
func TestVanishedFiles(t *testing.T) {
	needInjector(t)
	for _, what := range vanishing {
		for step := range steps {
			t.Run(fmt.Sprintf("%s after %s", what.name, steps[step].name), func(t *testing.T) {
				p := newPlay(t, fault{})
				p.vanish = func(done int) {
					if done == step {
						what.remove(p)
					}
				}
				p.isGone = what.losesAll
				p.run()
				p.judge()
				p.tell()
			})
		}
	}
}

// allFaults lists the faults of a play: the calls of each class, in each way.
func allFaults(t *testing.T, calls map[fault]int) (list []fault) {
	t.Helper()
	var classes []fault
	for class := range calls {
		classes = append(classes, class)
	}
	slices.SortFunc(classes, func(a, b fault) int { return strings.Compare(a.String(), b.String()) })
	for _, class := range classes {
		n := calls[class]
		some := n
		if *faultsMost > 0 {
			some = min(n, *faultsMost)
		}
		for _, kind := range kindsOf(class.Op) {
			for _, stays := range []bool{false, true} {
				if stays && (kind == "short" || class.Who == "git" && class.Op == "remove") {
					continue // git cannot remove its locks, and later ones are in their own way
				}
				for i := range some {
					f := class
					f.Kind, f.Stays, f.N = kind, stays, 1+i*n/some
					if *faultsLike == "" || regexp.MustCompile(*faultsLike).MatchString(f.String()) {
						list = append(list, f)
					}
				}
			}
		}
		t.Logf("%s %s %s: %d calls", class.Who, class.Place, class.Op, n)
	}
	return list
}

// partOf returns the faults of a part, such as 3/8. Two runs may count a few calls more or less: then
// the parts of the first are those of the second, but for these.
func partOf(t *testing.T, faults []fault, part string) (list []fault) {
	t.Helper()
	var number, parts int
	_, err := fmt.Sscanf(part, "%d/%d", &number, &parts)
	require.True(t, err == nil && 1 <= number && number <= parts, "-faults.part is %q, and not such as 3/8", part)
	seen := make(map[fault]int)
	for _, f := range faults {
		class := f.class()
		hash := fnv.New32a()
		fmt.Fprint(hash, class)
		if (int(hash.Sum32()%1000)+seen[class])%parts == number-1 {
			list = append(list, f)
		}
		seen[class]++
	}
	return list
}

// shuffle orders faults at random, so that each class has its turn before the next fault of one.
func shuffle(faults []fault, random *rand.Rand) {
	random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	turns, turnOf := make(map[fault]int), make(map[fault]int)
	for _, f := range faults {
		turns[f.class()]++
		turnOf[f] = turns[f.class()]
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return turnOf[a] - turnOf[b] })
}

// playFault plays with one fault and returns the number of calls by class.
func playFault(t *testing.T, f fault) map[fault]int {
	p := newPlay(t, f)
	p.run()
	counted := p.injector.counted()
	hits := p.injector.failed()
	p.judge()
	p.tell()
	if f != (fault{}) && len(hits) == 0 {
		return nil
	}
	return counted
}

// tell prints the errors of the play.
func (p *play) tell() {
	if !*faultsShow && !p.t.Failed() {
		return
	}
	hits := p.injector.failed()
	p.t.Logf("-faults.only %s: %d calls failed: %q", p.injector.plan, len(hits), hits[:min(len(hits), 5)])
	if log, err := os.ReadFile(filepath.Join(p.state, "daemon.log")); err == nil {
		p.t.Logf("the end of the log: %s", strings.ReplaceAll(string(log[max(0, len(log)-4000):]), p.dir, "DIR"))
	}
	for _, text := range p.heard {
		p.t.Log(strings.ReplaceAll(text, p.dir, "DIR"))
	}
}

// Limits of a play. They are long, because machines may be slow; a play that succeeds does not wait.
const (
	faultCallTimeout = 90 * time.Second
	faultTries       = 4
)

// A play runs the steps on a project, through daemons whose calls may fail.
type play struct {
	*project
	t        *testing.T
	injector *injector
	vanish   func(done int) // called after each step
	isGone   bool           // the sessions are gone with a removed file

	daemon *exec.Cmd
	ended  chan error
	said   *bytes.Buffer
	c      *client.Client
	heard  []string // errors

	launched map[string]string // session by prompt
	approved []string          // approvals
	deleted  []string          // sessions
	isClean  bool              // the user's files have no changes
	landed   bool
	before   string // demo.txt before the second session
}

func newPlay(t *testing.T, f fault) *play {
	p := &play{t: t, project: newProject(t), launched: make(map[string]string)}
	require.NoError(t, os.WriteFile(filepath.Join(p.home, "config", "duet", "config.toml"), []byte("default_agent = \"demo\"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "demo.txt"), []byte("first\n"), 0o600))
	p.git("init", "-q", "-b", "main")
	p.git("config", "user.name", "A")
	p.git("config", "user.email", "a@example.org")
	p.git("add", "demo.txt")
	p.git("commit", "-q", "-m", "first")
	p.injector = &injector{place: p.placeOf, counts: make(map[fault]int), plan: f}
	t.Cleanup(func() {
		if p.c != nil {
			p.c.Close()
		}
	})
	return p
}

func (p *play) git(args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", p.root}, args...)...)
	cmd.Env = append(p.environment(), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.found("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *play) found(format string, args ...any) { p.t.Errorf(format, args...) }

// placeOf returns what a path belongs to.
func (p *play) placeOf(path string) string {
	below := func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	switch {
	case !below(p.dir):
		return ""
	case below(filepath.Join(p.root, ".git")):
		return "repository"
	case below(p.root):
		return "files"
	case below(state.WorktreesDir(p.state)):
		return "worktrees"
	case below(filepath.Join(p.state, "checkpoints")):
		return "checkpoints"
	case below(filepath.Join(p.home, "config")):
		return "configuration"
	case filepath.Dir(path) == p.state:
		switch name := filepath.Base(path); {
		case name == "duet.db":
			return "database"
		case strings.HasPrefix(name, "duet.db-"):
			return "wal"
		case name == "lock":
			return "lock"
		case name == "project.json" || strings.HasPrefix(name, ".duet-"):
			return "record"
		case name == "daemon.log":
			return "log"
		}
	}
	return "state"
}

// start starts a daemon, and connects.
func (p *play) start() error {
	log, err := os.OpenFile(filepath.Join(p.state, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrNotExist) { // as the process that starts a daemon does
		if err = os.MkdirAll(p.state, 0o700); err == nil {
			log, err = os.OpenFile(filepath.Join(p.state, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		}
	}
	if err != nil {
		return err
	}
	defer log.Close()
	listens, output, err := os.Pipe()
	if err != nil {
		return err
	}
	defer listens.Close()
	cmd := exec.Command(program, "daemon", "start", "--foreground", "--root", p.root)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.root, append(p.environment(), "DUET_DEMO_DELAY=0"), output, log
	err = p.injector.start(cmd)
	output.Close()
	if err != nil {
		return err
	}
	p.daemon, p.ended, p.said = cmd, make(chan error, 1), new(bytes.Buffer)
	ended := p.ended
	go func() { ended <- cmd.Wait(); close(ended) }()
	read := make(chan struct{})
	go func() { _, _ = p.said.ReadFrom(listens); close(read) }()
	select {
	case <-read:
	case <-time.After(faultCallTimeout):
		p.found("a starting daemon hangs")
		return errors.New("it hangs")
	}
	if p.c != nil {
		p.c.Close()
		p.c = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultCallTimeout)
	defer cancel()
	for {
		p.c, err = client.Dial(ctx, client.Socket(p.socket()), client.WithCallTimeout(faultCallTimeout), client.WithReconnect(false))
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return p.reason()
		case <-time.After(20 * time.Millisecond):
		}
		if ctx.Err() != nil {
			p.found("a daemon is there and no client can connect: %v", err)
			return err
		}
	}
}

// reason returns why the daemon has ended.
func (p *play) reason() error {
	log, _ := os.ReadFile(filepath.Join(p.state, "daemon.log"))
	text := strings.TrimSpace(p.said.String())
	if text == "" {
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		text = strings.Join(lines[max(0, len(lines)-3):], " | ")
	}
	if text == "" {
		p.found("the daemon has ended and gives no reason")
	}
	return fmt.Errorf("the daemon has ended: %s", text)
}

// alive makes sure that a daemon runs and the client is connected.
func (p *play) alive() error {
	if p.daemon != nil {
		select {
		case <-p.ended:
			p.hear("the daemon", p.reason())
			p.daemon = nil
		default:
		}
	}
	if p.daemon == nil {
		return p.start()
	}
	ctx, cancel := context.WithTimeout(context.Background(), faultCallTimeout)
	defer cancel()
	if p.c != nil && p.c.Call(ctx, "ping", nil, nil) == nil {
		return nil
	}
	select {
	case <-p.ended: // it is ending
		p.heard = append(p.heard, p.reason().Error())
		return p.start()
	case <-ctx.Done():
		p.found("the daemon neither answers nor ends")
		_ = p.daemon.Process.Kill()
		<-p.ended
		return p.start()
	}
}

func (p *play) call(method string, params, result any) error {
	if p.c == nil {
		return errors.New("no connection")
	}
	err := p.c.Call(context.Background(), method, params, result)
	if errors.Is(err, client.ErrTimeout) {
		p.found("%s hangs", method)
	}
	return err
}

// A step is a part of the play. It may be repeated after an error.
type step struct {
	name string
	run  func(p *play) error
}

var steps = []step{
	{"start", func(p *play) error { return p.alive() }},
	{"first session", func(p *play) error { return p.session("first", object{}) }},
	{"second session", func(p *play) error {
		if p.before == "" {
			text, err := os.ReadFile(filepath.Join(p.root, "demo.txt"))
			if err != nil {
				return err
			}
			p.before = string(text)
		}
		return p.session("second", object{})
	}},
	{"rewind", (*play).rewind},
	{"session in a worktree", func(p *play) error { return p.session("third", object{"worktree": true}) }},
	{"landing", (*play).land},
	{"discarding", func(p *play) error {
		if p.launched["third"] == "" {
			return nil
		}
		err := p.call("session.discard", object{"session": p.launched["third"]}, nil)
		if client.KindOf(err) == "no_worktree" { // an earlier try has discarded it
			return nil
		}
		return err
	}},
	{"session to delete", func(p *play) error { return p.session("fourth quiet", object{}) }},
	{"deletion", func(p *play) error {
		id := p.launched["fourth quiet"]
		if err := p.call("session.delete", object{"session": id}, nil); err != nil && client.KindOf(err) != "not_found" {
			return err
		}
		for name, id := range p.launched {
			if strings.HasPrefix(name, "fourth") {
				p.deleted = append(p.deleted, id)
			}
		}
		return nil
	}},
}

// run plays all steps, and stops the daemon.
func (p *play) run() {
	for i, s := range steps {
		for try := 1; ; try++ {
			err := p.alive()
			if err == nil {
				err = s.run(p)
			}
			if err == nil || p.isGone && client.KindOf(err) == "session_not_found" {
				break
			}
			p.hear(s.name, err)
			p.injector.lift()
			p.follow(err)
			if try == faultTries {
				p.found("%s still fails: %v", s.name, err)
				break
			}
		}
		if p.vanish != nil {
			p.vanish(i)
		}
	}
	p.injector.lift()
	p.stop()
}

// follow does what an error advises, as a user does.
func (p *play) follow(err error) {
	text := err.Error()
	switch {
	case strings.Contains(text, "was removed, moved or replaced while duet-rpc used it, and what ran has ended"):
		select { // it ends soon, so that the program that removes files has ended before the next one starts
		case <-p.ended:
			p.heard = append(p.heard, p.reason().Error())
			p.daemon = nil
		case <-time.After(faultCallTimeout):
			p.found("the daemon has lost its files and does not end")
		}
	case strings.Contains(text, "git worktree repair"):
		p.git("worktree", "repair")
	case strings.Contains(text, ".lock': File exists"): // git could not remove it
		_ = filepath.WalkDir(filepath.Join(p.root, ".git"), func(path string, _ fs.DirEntry, _ error) error {
			if strings.HasSuffix(path, ".lock") {
				_ = os.Remove(path)
			}
			return nil
		})
	}
}

// causes are the words with which errors name a cause. Those of git are among them.
var causes = regexp.MustCompile(`(?i)input/output error|no space left|disk|unable to|cannot|could not|couldn't|write error|no such checkpoint|no checkpoint|no commit|still there|was removed|no longer|` +
	`not a git repository|appears to be broken|lock|would be lost|would be overwritten|interrupted|orphaned|exists|in use|not as before`)

func (p *play) hear(what string, err error) {
	kind := client.KindOf(err)
	if text := err.Error(); !causes.MatchString(text) || strings.Contains(text, "malformed") || strings.Contains(text, "move it away") {
		p.found("%s: the error does not name the cause: %s", what, text)
	}
	p.heard = append(p.heard, fmt.Sprintf("%s: %v [%s]", what, err, kind))
}

// stop stops the daemon.
func (p *play) stop() {
	if err := p.alive(); err != nil {
		p.found("no daemon at the end: %v", err)
		return
	}
	if err := p.call("daemon.stop", nil, nil); err != nil {
		p.found("daemon.stop: %v", err)
	}
	select {
	case <-p.ended:
	case <-time.After(faultCallTimeout):
		p.found("the daemon does not stop")
		_ = p.daemon.Process.Kill()
		<-p.ended
	}
	p.daemon = nil
}

// session launches a session, answers its questions, and waits until it is completed.
func (p *play) session(name string, params object) error {
	if p.launched[name] == "" {
		params["query"], params["launch_id"] = name, launchID(name)
		var launched struct {
			SessionID string `json:"session_id"`
		}
		if err := p.call("launchSession", params, &launched); err != nil {
			return err
		}
		p.launched[name] = launched.SessionID
	}
	for deadline := time.Now().Add(faultCallTimeout); ; time.Sleep(5 * time.Millisecond) {
		var shown struct {
			Session shownSession `json:"session"`
		}
		if err := p.call("getSessionState", object{"session_id": p.launched[name]}, &shown); err != nil {
			return err
		}
		s := shown.Session
		if s.State == "completed" {
			// It waits for the checkpoints, so that the next agent does not change the files meanwhile.
			return p.call("session.rewind", object{"turn": s.ID, "preview": true}, nil)
		}
		if s.ended() {
			p.hear(name, fmt.Errorf("the session is %s: %s %s", s.State, s.ErrorCode, s.Error))
			var next struct {
				SessionID string `json:"session_id"`
			}
			p.injector.lift()
			if err := p.call("continueSession", object{"session_id": s.ID, "query": name + ", continued"}, &next); err != nil {
				return err
			}
			p.launched[name+", continued"], p.launched[name] = s.ID, next.SessionID
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("session %s is %s for long", name, s.State)
		}
		if err := p.answer(); err != nil {
			return err
		}
	}
}

// launchID returns the same id for the same name.
func launchID(name string) string {
	return fmt.Sprintf("%x-0000-4000-8000-000000000000", append([]byte(name), 0, 0, 0, 0)[:4])
}

// answer approves the open questions and makes rules of the answers.
func (p *play) answer() error {
	var list struct {
		Approvals []shownApproval `json:"approvals"`
	}
	if err := p.call("fetchApprovals", object{}, &list); err != nil {
		return err
	}
	for _, a := range list.Approvals {
		var reply decided
		err := p.call("sendDecision", object{"approval_id": a.ID, "decision": "approve", "scope": "project"}, &reply)
		if err != nil {
			return err
		}
		if reply.Success {
			p.approved = append(p.approved, a.ID)
		}
	}
	return nil
}

func (p *play) rewind() error {
	var result struct {
		Checkpoint bool `json:"checkpoint"`
		Files      []struct {
			Path, Left, Detail string
		} `json:"files"`
		NotRecorded []object `json:"not_recorded"`
	}
	if err := p.call("session.rewind", object{"turn": p.launched["second"], "all": true}, &result); err != nil {
		return err
	}
	if !result.Checkpoint {
		p.hear("rewind", errors.New("no checkpoint"))
		return nil
	}
	text, err := os.ReadFile(filepath.Join(p.root, "demo.txt"))
	if err != nil {
		return err
	}
	if string(text) != p.before {
		return fmt.Errorf("demo.txt is not as before: %+v", result)
	}
	return nil
}

func (p *play) land() error {
	if !p.isClean {
		p.git("checkout", "-q", "demo.txt") // else its change is in the way
		p.isClean = true
	}
	var result struct {
		Commits []string `json:"commits"`
	}
	if err := p.call("session.land", object{"session": p.launched["third"]}, &result); err != nil {
		return err
	}
	p.landed = p.landed || len(result.Commits) > 0 // none if the files are gone with their directory
	return nil
}

// judge looks at what is left, through a daemon without faults.
func (p *play) judge() {
	p.injector.lift()
	log, _ := os.ReadFile(filepath.Join(p.state, "daemon.log"))
	if i := bytes.Index(log, []byte("goroutine ")); i >= 0 {
		p.found("the log has a panic: %s", log[max(0, i-500):min(len(log), i+2000)])
	}
	if !p.isGone {
		p.judgeDatabase()
		p.judgeSessions()
	}
	p.judgeRepository()
	var left []running
	for deadline := time.Now().Add(endTime); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if left = p.running(); len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		p.found("processes are left: %v", left)
	}
}

func (p *play) judgeDatabase() {
	if err := sqlite.Check(context.Background(), p.database()); err != nil {
		p.found("the database: %v", err)
	}
	db, err := sql.Open("sqlite", "file:"+p.database()+"?mode=ro")
	require.NoError(p.t, err)
	defer db.Close()
	var check string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		p.found("the database is damaged: %v %s", err, check)
	}
}

func (p *play) judgeSessions() {
	if err := p.alive(); err != nil {
		p.found("no daemon afterwards: %v", err)
		return
	}
	defer p.stop()
	var list struct {
		Sessions []shownSession `json:"sessions"`
	}
	if err := p.call("listSessions", object{"limit": 1000}, &list); err != nil {
		p.found("listSessions: %v", err)
	}
	byID, byQuery := make(map[string]shownSession), make(map[string]int)
	for _, s := range list.Sessions {
		byID[s.ID] = s
		byQuery[s.Query]++
		if !s.ended() {
			p.found("session %s (%s) is %s", s.ID, s.Query, s.State)
		}
	}
	for name, id := range p.launched {
		_, isThere := byID[id]
		if isDeleted := slices.Contains(p.deleted, id); !isThere && !isDeleted {
			p.found("the acknowledged session %q is lost", name)
		} else if isThere && isDeleted {
			p.found("session %q is there again after its deletion", name)
		}
	}
	for query, n := range byQuery {
		if n > 1 && !strings.Contains(query, "continue") {
			p.found("%d sessions have the prompt %q", n, query)
		}
	}
	for _, id := range p.approved {
		var shown struct {
			Approval shownApproval `json:"approval"`
		}
		if err := p.call("getApproval", object{"approval_id": id}, &shown); err != nil {
			p.found("getApproval: %v", err)
		} else if shown.Approval.Status != "approved" || shown.Approval.DecidedBy != byHuman {
			p.found("the acknowledged answer to %s is lost: it is %s", id, shown.Approval.Status)
		}
	}
	var rules struct {
		Rules []struct {
			Path string `json:"path"`
		} `json:"rules"`
	}
	if err := p.call("rule.list", object{}, &rules); err != nil {
		p.found("rule.list: %v", err)
	}
	if len(p.approved) > 0 && (len(rules.Rules) == 0 || len(rules.Rules) > len(p.approved)) {
		p.found("%d answers with a scope led to the rules %v", len(p.approved), rules.Rules)
	}
}

func (p *play) judgeRepository() {
	if out := p.git("fsck", "--strict", "--no-dangling"); strings.TrimSpace(out) != "" {
		p.found("git fsck: %s", out)
	}
	if branch := strings.TrimSpace(p.git("symbolic-ref", "HEAD")); branch != "refs/heads/main" {
		p.found("HEAD is %s", branch)
	}
	if out := p.git("diff", "--cached", "--name-only"); out != "" {
		p.found("the index has changes: %s", out)
	}
	locks, _ := filepath.Glob(filepath.Join(p.root, ".git", "*.lock"))
	if len(locks) > 0 {
		p.found("git's locks are left: %v", locks)
	}
	if text := p.git("show", "HEAD:demo.txt"); p.landed && text == "first\n" {
		p.found("the acknowledged landing is lost: the branch has %q", text)
	}
	if list := strings.TrimSpace(p.git("worktree", "list", "--porcelain")); strings.Count(list, "worktree ") > 1 {
		p.found("a worktree is left: %s", list)
	}
}

// A vanishingFile is removed between two steps.
type vanishingFile struct {
	name     string
	losesAll bool // the sessions are in it
	remove   func(p *play)
}

func removing(names ...string) func(p *play) {
	return func(p *play) {
		for _, name := range names {
			_ = os.RemoveAll(filepath.Join(p.state, name))
		}
	}
}

var vanishing = []vanishingFile{
	{"the database", true, removing("duet.db")},
	{"the write-ahead log", false, removing("duet.db-wal", "duet.db-shm")},
	{"the lock", false, removing("lock")},
	{"the project's record", false, removing("project.json")},
	{"the log", false, removing("daemon.log")},
	{"the checkpoints", false, removing("checkpoints")},
	{"a worktree", false, func(p *play) {
		for _, dir := range p.worktrees() {
			_ = os.RemoveAll(dir)
		}
	}},
	{"a worktree's .git", false, func(p *play) {
		for _, dir := range p.worktrees() {
			_ = os.Remove(filepath.Join(dir, ".git"))
		}
	}},
}

func (p *play) worktrees() []string {
	dirs, _ := filepath.Glob(filepath.Join(state.WorktreesDir(p.state), "*"))
	return dirs
}

// Each fault is in one part.
func TestPartOf(t *testing.T) {
	var faults []fault
	for _, place := range []string{"wal", "database", "lock"} {
		for n := range 20 {
			faults = append(faults, fault{Who: "daemon", Place: place, Op: "write", Kind: "EIO", N: 1 + n})
		}
	}
	var together []fault
	for part := range 8 {
		some := partOf(t, faults, fmt.Sprintf("%d/8", part+1))
		require.NotEmpty(t, some)
		together = append(together, some...)
	}
	require.ElementsMatch(t, faults, together)
	require.Equal(t, faults, partOf(t, faults, "1/1"))
}
