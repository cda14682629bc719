package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
	"github.com/duet-rpc/duet-rpc/server"
)

// Away is the repository of this machine for sessions that begin on a host with its files. It sends them there, and
// brings the work of such a session back. Its errors of the domain are for the user.
type Away struct {
	repo    *worktree.Repository
	host    *hubprocess.Host
	isFresh bool      // the host is made for the session that begins
	refused string    // the session that could not begin
	start   io.Closer // held until the session that begins was seen; nil: none begins
	from    string    // names the repository
	sub     string    // the project's directory below its top, with a slash before it; "": the top
}

// OpenAway opens the repository of this machine's project for the host of the settings.
func OpenAway(ctx context.Context, s *hubprocess.Settings) (*Away, error) {
	h, err := s.Remote()
	if err != nil {
		return nil, err
	}
	own := *s
	own.Host, own.Root = "", s.Here
	p, err := own.Project()
	if err != nil {
		return nil, err
	}
	repo, err := openWorktrees(ctx, p, true, nil)
	if err != nil {
		return nil, hub.WorktreeError(err)
	}
	top := p.Root
	if found, ok := git.Find(p.Root); ok {
		top = found.Top
	}
	machine, _ := os.Hostname()
	a := &Away{repo: repo, host: h, from: cmp.Or(machine, "unknown") + ":" + top}
	if below := strings.TrimPrefix(filepath.ToSlash(p.Root), filepath.ToSlash(top)); below != "" {
		a.sub = path.Join("/", below)
	}
	return a, nil
}

// BeginAway opens the repository for a session that is to begin on the host of the settings, and sends the files there. Before, it
// deletes what killed processes have left.
func BeginAway(ctx context.Context, s *hubprocess.Settings, params *protocol.StartParams) (a *Away, sent worktree.Sent, err error) {
	Sweep(ctx, s)
	if a, err = PrepareAway(ctx, s, params); err == nil {
		sent, err = a.Begin(ctx, params)
	}
	return a, sent, err
}

// PrepareAway opens the repository for a session that [Away.Begin] begins on the host of the settings. If each session has such a
// host of its own, the settings have its name from then on.
func PrepareAway(ctx context.Context, s *hubprocess.Settings, params *protocol.StartParams) (*Away, error) {
	h, err := config.HostNamed(s.Host, os.Getenv)
	if err != nil {
		return nil, err
	}
	params.SessionUUID = sessionOf(*params)
	isOwn := h.NeedsSession()
	if isOwn {
		s.Host = h.ForSession(params.SessionUUID).Name
	}
	a, err := OpenAway(ctx, s)
	if err != nil {
		return nil, err
	}
	_, known, err := a.repo.Away(params.SessionUUID) // then this is a start that is sent again
	if err != nil {
		return nil, hub.WorktreeError(err)
	}
	a.isFresh = isOwn && !known
	return a, nil
}

// Begin makes the host, if the session has one of its own. Then it sends this machine's commit and files there, and has params
// start a session with them.
func (a *Away) Begin(ctx context.Context, params *protocol.StartParams) (sent worktree.Sent, err error) {
	id := params.SessionUUID
	_, known, err := a.repo.Away(id) // then this is a start that is sent again
	if err == nil && !known {
		a.start, err = a.repo.HoldStart(ctx, id)
	}
	if err == nil { // before the host is made: if this process is killed, Sweep removes the host
		sent, err = a.repo.PrepareSend(ctx, a.host.Name, id, params.Attempts)
	}
	if err != nil {
		err = hub.WorktreeError(err)
	} else {
		err = a.makeAndSend(ctx, id, params.Attempts)
	}
	if err != nil {
		if !known {
			_, _ = a.Forget(context.WithoutCancel(ctx), id) // otherwise its ref stays
		}
		return sent, err
	}
	params.Send, params.Worktree, params.Base = false, new(true), sent.Commit
	return sent, nil
}

func (a *Away) makeAndSend(ctx context.Context, id, attempts string) error {
	if a.isFresh {
		if err := a.host.Make(ctx, true); err != nil {
			a.isFresh = false // Make has removed it
			return domain.Errorf(domain.KindUnavailable, "%s: %v", a.host.Name, err)
		}
	}
	err := a.transferTo(ctx, a.host.Reach, func(line worktree.Line) error {
		_, err := a.repo.Send(ctx, line, id, attempts)
		return err
	})
	if err != nil && a.isFresh {
		a.isFresh = false
		_ = a.host.Remove(context.WithoutCancel(ctx)) // nothing is there
	}
	return err
}

// sessionOf returns the UUID of the session that is to begin: the same one for a start that is sent again with its start_id.
func sessionOf(params protocol.StartParams) string {
	switch {
	case params.SessionUUID != "":
		return params.SessionUUID
	case params.StartID != "":
		return uuid.NewSHA1(uuid.NameSpaceOID, []byte(params.StartID)).String()
	}
	return uuid.NewString()
}

// Refuse notes that the session, by its UUID, could not begin.
func (a *Away) Refuse(id string) { a.refused = id }

// Close removes the host that was made for a session, and what is known here of the session, if it was refused.
func (a *Away) Close(ctx context.Context) {
	a.release()
	if !a.isFresh || a.refused == "" {
		return
	}
	_, _ = a.repo.Forget(ctx, a.refused)
	_ = a.host.Remove(ctx) // `duet-rpc hosts` lists one that stays
}

// release says that this process starts no session any more.
func (a *Away) release() {
	if a.start != nil {
		a.start.Close()
		a.start = nil
	}
}

// AwayOf is OpenAway for a session on the host. It returns nil if the session did not begin with files of this
// machine.
func AwayOf(ctx context.Context, s *hubprocess.Settings, session protocol.Turn) (*Away, error) {
	if s.Host == "" || session.Worktree == nil {
		return nil, nil
	}
	a, err := OpenAway(ctx, s)
	if err != nil {
		return nil, nil // there is no repository here from which it could have begun
	}
	if _, found, err := a.repo.Away(session.SessionUUID); !found || err != nil {
		return nil, err
	}
	return a, nil
}

// transfer runs a transfer, and once more if the host had no duet-rpc and has it now.
func (a *Away) transfer(ctx context.Context, do func(worktree.Line) error) error {
	return a.transferTo(ctx, func(ctx context.Context) error {
		_, err := a.host.Describe(ctx)
		return err
	}, do)
}

// transferTo is transfer, and reach what it does after a transfer that failed.
func (a *Away) transferTo(ctx context.Context, reach func(context.Context) error, do func(worktree.Line) error) error {
	line := func() worktree.Line {
		return worktree.Line{
			Host: a.host.Name, Receive: a.host.CommandLine("receive", "--from", a.from, "--below", a.sub), Upload: a.host.CommandLine("upload"),
		}
	}
	before := a.host.Program
	err := do(line())
	failed, is := errors.AsType[*worktree.TransferError](err)
	if !is {
		return orWorktreeError(err)
	}
	if err := reach(ctx); err != nil { // it says best what is wrong with a host, and copies this program there
		return err
	}
	if a.host.Program != before || a.host.IsMade() { // it may have been made meanwhile
		if err = do(line()); !errors.As(err, &failed) {
			return orWorktreeError(err)
		}
	}
	return domain.Errorf(domain.KindWorktree, "%s: %s", a.host.Name, visible.ForTerminal().Line(whyFailed(failed)))
}

func orWorktreeError(err error) error {
	if err == nil {
		return nil
	}
	return hub.WorktreeError(err)
}

// whyFailed returns the line that says why a transfer failed, without what git says of every one.
func whyFailed(err *worktree.TransferError) string {
	for line := range strings.Lines(err.Said) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "duet-rpc: ")
		switch {
		case line == "", strings.HasPrefix(line, "fatal: Could not read from remote"), strings.HasPrefix(line, "Please make sure you have"),
			strings.HasPrefix(line, "and the repository exists"), strings.HasPrefix(line, "warning: "), strings.HasPrefix(line, "fatal: the remote end hung up"):
			continue
		}
		return line
	}
	return err.Unwrap().Error()
}

// Forget deletes what is known here of a session that has not begun, or whose worktree on the host is deleted. Work that
// was fetched and is not landed stays in the returned ref.
func (a *Away) Forget(ctx context.Context, id string) (ref string, err error) {
	a.release()
	ref, err = a.repo.Forget(ctx, id)
	return ref, orWorktreeError(err)
}

// Changes compares what was fetched last of the session id with the commit that it began with. fetched is false if
// nothing was. It asks nothing of the host.
func (a *Away) Changes(ctx context.Context, id string, patch int) (c worktree.Changes, fetched bool, err error) {
	w, found, err := a.repo.Away(id)
	if err != nil || !found || w.Name == "" {
		return c, false, orWorktreeError(err)
	}
	c, err = a.repo.Changes(ctx, w, patch)
	return c, true, orWorktreeError(err)
}

// Note remembers what is known of a session, for lists that ask no host.
func (a *Away) Note(ctx context.Context, session protocol.Turn) error {
	return a.note(ctx, session, nil)
}

func (a *Away) note(ctx context.Context, session protocol.Turn, transcript []byte) error {
	defer a.release()
	return orWorktreeError(a.repo.Note(ctx, session.SessionUUID, worktree.Session{
		Number: session.Session, State: string(session.State), Agent: session.Agent, Active: session.ActiveAt,
		Title: protocol.Headline(session.SessionTitle, titleLength),
	}, transcript))
}

const titleLength = 200 // characters

// Fetch brings the work of a session here, into a ref, and its transcript into a file: the host may vanish. What it
// returns as saved is the commit that came.
func (a *Away) Fetch(ctx context.Context, c *client.Client, session protocol.Turn) (w worktree.Worktree, saved protocol.SaveResult, err error) {
	by := a.repo.Author(ctx)
	saved, _, err = hubclient.SessionSave(ctx, c, protocol.SaveParams{Session: protocol.Ref(session.ID), Name: by.Name, Email: by.Email})
	if err != nil {
		return w, saved, err
	}
	err = a.transfer(ctx, func(line worktree.Line) (err error) {
		w, saved.Commit, err = a.repo.Fetch(ctx, line, session.SessionUUID, saved.Name)
		return err
	})
	if err != nil {
		return w, saved, err
	}
	var transcript ending
	if err := hubclient.WriteExport(ctx, c, &transcript, session.ID, "md"); err != nil {
		return w, saved, a.note(ctx, session, nil) // the copy before stays
	}
	return w, saved, a.note(ctx, session, transcript.text())
}

// Land lands the work of a session on a branch here. For a conflict the branch is sent to the host: the error has a
// *[worktree.ConflictError] whose Ref names it, so that the agent can merge it.
func (a *Away) Land(ctx context.Context, c *client.Client, session protocol.Turn, params protocol.LandParams) (r protocol.LandResult, err error) {
	w, saved, err := a.Fetch(ctx, c, session)
	if err != nil {
		return r, err
	}
	r, err = a.land(ctx, w, params)
	if conflict, is := errors.AsType[*worktree.ConflictError](err); is {
		branch := cmp.Or(params.Into, w.Into)
		if params.Method == "patch" {
			branch = ""
		}
		if err := a.transfer(ctx, func(line worktree.Line) (err error) {
			conflict.Ref, err = a.repo.Offer(ctx, line, w, branch)
			return err
		}); err != nil {
			return r, err
		}
	}
	if err != nil {
		return r, hub.WorktreeError(err)
	}
	r.Nested = saved.Nested
	// As after a landing there, the worktree continues from what was landed.
	by := a.repo.Author(ctx)
	_, _, err = hubclient.SessionSave(ctx, c, protocol.SaveParams{Session: protocol.Ref(session.ID), Name: by.Name, Email: by.Email, Landed: saved.Commit})
	if err != nil && ctx.Err() == nil {
		err = domain.Errorf(domain.KindWorktree, "it is landed here, but the worktree on %s does not continue from it yet: %v", a.host.Name, err)
	}
	return r, err
}

// LandFetched is Land of what was fetched last of the session id: it asks nothing of the host.
func (a *Away) LandFetched(ctx context.Context, id string, params protocol.LandParams) (r protocol.LandResult, err error) {
	w, found, err := a.repo.Away(id)
	if err == nil && (!found || w.Name == "") {
		err = domain.Errorf(domain.KindNoWorktree, "no work of this session came here yet")
	}
	if err != nil {
		return r, err
	}
	r, err = a.land(ctx, w, params)
	return r, orWorktreeError(err)
}

func (a *Away) land(ctx context.Context, w worktree.Worktree, params protocol.LandParams) (r protocol.LandResult, err error) {
	if cmp.Or(params.Into, w.Into) == "" && params.Method != "patch" {
		return r, domain.Invalid("into", "the branch to land on, since none was checked out when the session began", "none")
	}
	landed, err := a.repo.Land(ctx, w, worktree.LandOptions{
		Method: worktree.Method(cmp.Or(params.Method, "merge")), Into: params.Into, Message: params.Message,
	})
	return protocol.LandResult{
		Branch: landed.Into, Commits: append([]string{}, landed.Commits...), Files: append([]string{}, landed.Files...),
	}, err
}

// Discard deletes the worktree of a session, after its work was fetched; discard does that on the host. With lost set,
// what cannot be fetched is given up.
func (a *Away) Discard(
	ctx context.Context, c *client.Client, session protocol.Turn, lost bool, discard func(force bool) (protocol.DiscardResult, error),
) (r protocol.DiscardResult, err error) {
	w, _, err := a.Fetch(ctx, c, session)
	if err != nil && !lost {
		return r, err
	}
	isLanded := false
	if err == nil {
		if isLanded, err = a.repo.IsLanded(ctx, w); err != nil {
			return r, hub.WorktreeError(err)
		}
	}
	if r, err = discard(isLanded); err != nil {
		return r, err
	}
	return r, a.Finish(ctx, session.SessionUUID, &r)
}

// Finish removes the host of the session id, whose worktree there is deleted, and what is known here of the session. The result
// says what stays. A killed call can be repeated.
func (a *Away) Finish(ctx context.Context, id string, r *protocol.DiscardResult) (err error) {
	if err := a.repo.Discarded(ctx, id); err != nil {
		return hub.WorktreeError(err)
	}
	a.removeHost(ctx, r)
	r.Ref, err = a.Forget(ctx, id)
	return err
}

// DiscardFetched deletes what came here of the session id, whose host is gone. Work that is not landed stays in the returned ref.
func (a *Away) DiscardFetched(ctx context.Context, id string) (r protocol.DiscardResult, err error) {
	r.Ref, err = a.repo.Drop(ctx, id)
	return r, orWorktreeError(err)
}

// removeHost removes the host that was made for a discarded session, unless it has other sessions.
func (a *Away) removeHost(ctx context.Context, r *protocol.DiscardResult) {
	if a.host.Of == "" || len(a.host.Stop) == 0 {
		return
	}
	r.Host = protocol.HostKept
	var err error
	if !a.host.IsPartial() {
		var its hubprocess.Description
		if its, err = a.host.Look(ctx); err == nil && its.Sessions > 1 {
			return
		}
	}
	if err == nil {
		err = a.host.Remove(context.WithoutCancel(ctx)) // ctx may end with the connection to the host
	}
	if err != nil {
		r.HostError = err.Error()
		return
	}
	r.Host = protocol.HostRemoved
}

// mostTranscript is how many bytes the copy of a transcript has at most: an agent can get them with a prompt.
const mostTranscript = 8 << 20

// An ending keeps the end of what is written to it.
type ending struct {
	kept  []byte
	isCut bool
}

func (e *ending) Write(p []byte) (int, error) {
	e.kept = append(e.kept, p...)
	if over := len(e.kept) - mostTranscript; over > 0 {
		e.kept, e.isCut = append(e.kept[:0], e.kept[over:]...), true
	}
	return len(p), nil
}

// text returns whole lines.
func (e *ending) text() []byte {
	if !e.isCut {
		return e.kept
	}
	_, lines, _ := bytes.Cut(e.kept, []byte("\n"))
	return append([]byte("(The beginning is left out.)\n\n"), lines...)
}

// take returns what answers a request that this process carries out itself for a project on a host; nil for all
// others.
func (e *editorProcess) take(m *frame.Message) func(ctx context.Context) []byte {
	switch method, _ := rawjson.Text(m.Method); string(method) {
	case "session.start":
		if string(rawjson.Member(m.Params, "send")) != "true" {
			return nil
		}
	case "session.land", "session.discard":
	default:
		return nil
	}
	body := bytes.Clone(m.Body)
	return func(ctx context.Context) []byte {
		reg := server.NewRegistry()
		handlers.RegisterAway(reg, e.away())
		s := server.New(reg, server.Options{Limits: e.settings.Limits, Logger: e.log.Logger, Grace: hubprocess.LineWithin})
		return earlyServer{s, ctx}.exchange(body)
	}
}

// away returns what this process does itself for sessions on the host, over lines of its own.
func (e *editorProcess) away() handlers.Away {
	return handlers.Away{
		Start: e.startAway,
		Land: func(ctx context.Context, params protocol.LandParams) (r protocol.LandResult, err error) {
			err = e.onLine(ctx, func(c *client.Client) error {
				session, _, err := hubclient.Turn(ctx, c, string(params.Session))
				if err != nil {
					return err
				}
				_, there, _ := e.host()
				a, err := AwayOf(ctx, there, session)
				switch {
				case err != nil:
				case a == nil:
					r, _, err = hubclient.SessionLand(ctx, c, params)
				default:
					r, err = a.Land(ctx, c, session, params)
				}
				return err
			})
			return r, err
		},
		Discard: func(ctx context.Context, params protocol.DiscardParams) (r protocol.DiscardResult, err error) {
			err = e.onLine(ctx, func(c *client.Client) error {
				session, _, err := hubclient.Turn(ctx, c, string(params.Session))
				if err != nil {
					return err
				}
				discard := func(isLanded bool) (protocol.DiscardResult, error) {
					p := params
					p.Force = p.Force || isLanded
					r, _, err := hubclient.SessionDiscard(ctx, c, p)
					return r, err
				}
				_, there, _ := e.host()
				a, err := AwayOf(ctx, there, session)
				switch {
				case err != nil:
				case a == nil:
					r, err = discard(false)
				default:
					r, err = a.Discard(ctx, c, session, params.Force, discard)
				}
				return err
			})
			if r.Host == protocol.HostRemoved {
				e.leaveHost()
			}
			return r, err
		},
	}
}

// startAway starts a session on the host with the files of this machine. If each session has a host of its own, this process
// works on that of its first one from then on: its subscriptions are there.
func (e *editorProcess) startAway(ctx context.Context, params protocol.StartParams) (started protocol.Started, err error) {
	configured, err := config.HostNamed(e.settings.Host, os.Getenv)
	if err != nil {
		return started, err
	}
	isOwn := configured.NeedsSession()
	if isOwn {
		e.beginning.Lock()
		defer e.beginning.Unlock()
	}
	own := *e.settings
	params.SessionUUID = sessionOf(params)
	if h, _, _ := e.host(); isOwn && h != nil && configured.ForSession(params.SessionUUID).Name != h.Name {
		return started, domain.Errorf(domain.KindUnavailable, "this process works on %s, the %s of its first session: begin another in a process of its own, "+
			"with --host %s; --host %s begins one beside it", h.Name, configured.Name, configured.Name, h.Name)
	}
	a, sent, err := BeginAway(ctx, &own, &params)
	if err != nil {
		return started, err
	}
	err = onLine(ctx, &own, func(c *client.Client) (err error) {
		if started, _, err = hubclient.SessionStart(ctx, c, params); err != nil {
			return err
		}
		if session, _, err := hubclient.Turn(ctx, c, started.ID); err == nil { // otherwise the next fetch notes it
			_ = a.Note(ctx, session)
		}
		started.NotSent = notSent(sent)
		return nil
	})
	if errors.As(err, new(*jsonrpc2.Error)) {
		a.Refuse(params.SessionUUID)
		a.Close(context.WithoutCancel(ctx))
		return started, err
	}
	if isOwn { // also if the answer was lost: it may have begun
		err = errors.Join(err, e.useHost(&own))
	}
	return started, err
}

// notSent returns the files that did not go to the host; nil if there are none.
func notSent(s worktree.Sent) *protocol.Listing {
	l := &protocol.Listing{Count: s.Left.Count + len(s.Nested), First: slices.Concat(s.Nested, s.Left.First)}
	if l.Count == 0 {
		return nil
	}
	l.First = l.First[:min(len(l.First), mostNotSent)]
	return l
}

const mostNotSent = 20

func (e *editorProcess) onLine(ctx context.Context, do func(c *client.Client) error) error {
	_, there, err := e.host()
	if err != nil {
		return domain.Errorf(domain.KindUnavailable, "%v", err)
	}
	return onLine(ctx, there, do)
}

// onLine runs a function with a connection to the daemon on the host of the settings. An error of that daemon becomes that of
// the answer.
func onLine(ctx context.Context, s *hubprocess.Settings, do func(c *client.Client) error) error {
	h, err := s.Remote()
	if err != nil {
		return err
	}
	c, err := h.Dial(ctx, hubprocess.StartAlways)
	if err != nil {
		return domain.Errorf(lineKind(err), "%v", err)
	}
	defer c.Close()
	err = do(c)
	if refused, is := errors.AsType[*client.Error](err); is {
		wire := &jsonrpc2.Error{Code: int64(refused.Code), Message: refused.Message}
		if len(refused.Data) > 0 {
			wire.Data = &refused.Data
		}
		return wire
	}
	return err
}

// A keeper fetches the work of sessions on the host when their turns end, so that the host may vanish.
type keeper struct {
	ended   chan string // sessions, by their UUIDs; a full one drops more: the next turn, or land, fetches them
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// newKeeper starts a keeper, which the caller must close.
func newKeeper(e *editorProcess) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{ended: make(chan string, 100), cancel: cancel}
	k.running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case session := <-k.ended:
				if err := e.keep(ctx, session); err != nil && ctx.Err() == nil {
					e.log.Warn("the work of a session on the host is not here yet", "session", session, "err", err)
				}
			}
		}
	})
	return k
}

func (k *keeper) close() {
	k.cancel()
	k.running.Wait()
}

// event notices the end of a turn.
func (k *keeper) event(params []byte) {
	if string(rawjson.Member(params, "kind")) != `"`+protocol.KindTurnState+`"` {
		return
	}
	var of protocol.TurnStateEvent
	if json.Unmarshal(rawjson.Member(params, "data"), &of) != nil || !of.State.Ended() {
		return
	}
	select {
	case k.ended <- of.SessionUUID:
	default:
	}
}

// keep fetches the work of a session that began with the files of this machine.
func (e *editorProcess) keep(ctx context.Context, session string) error {
	h, there, err := e.host()
	if err != nil {
		return nil
	}
	own := *there
	own.Host, own.Root = "", own.Here
	p, err := own.Project()
	if err != nil || !slices.ContainsFunc(worktree.SessionsAway(p.Root), func(x worktree.Session) bool {
		return x.ID == session && x.Host == h.Name
	}) {
		return nil
	}
	a, err := OpenAway(ctx, there)
	if err != nil {
		return err
	}
	return e.onLine(ctx, func(c *client.Client) error {
		last, _, err := hubclient.Turn(ctx, c, session)
		if err == nil {
			_, _, err = a.Fetch(ctx, c, last)
		}
		return err
	})
}
