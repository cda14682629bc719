// Package handlers has the methods of duet-rpc, one file a family: typed
// parameters in, a typed result out. It says what each method means on the
// wire and nothing of how bytes get there; package server does that.
package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Domain has the dependencies of the methods that need the hub. All functions may be called from
// any goroutine.
type Domain struct {
	// Hub returns the hub. If there is none, its error, a *domain.Error of
	// KindUnavailable, says why.
	Hub     func(ctx context.Context) (*hub.Hub, error)
	Version string
	Now     func() time.Time
	// Stop begins to end the process and returns at once, after the reply is queued. With
	// force, it does not wait for running work.
	Stop func(force bool)
	// Configuration is the project's current configuration; restricted, that of a client that
	// does not trust the workspace.
	Configuration func(restricted bool) (*config.Config, error)
	Clients       func() int      // open connections
	Sockets       func() []string // where it listens; may be nil
	Unserved      func() []string // clients that look for a daemon here and cannot find it, with the reason; may be nil
	Logger        *slog.Logger
	// EditorFiles, if set, has the connections that read files for tasks.
	EditorFiles *Readers
	// Workspaces, if set, has the connections that do not trust the workspace.
	Workspaces *Workspaces
	// Unwatched, if set, remembers sessions that worked without a client.
	Unwatched *Unwatched
	// AgentNotes, if set, has the last reports of agents.
	AgentNotes *agentlink.Notes
}

// RegisterDomain registers the methods of tasks, sessions and executors. flush waits
// until all subscribers, and those of event.task…, were sent what has happened, or its
// context ends.
func RegisterDomain(reg *server.Registry, d Domain) (flush func(context.Context)) {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	b := registerTasks(reg, d)
	registerDaemon(reg, d)
	registerAutomation(reg, d)
	registerSessions(reg, d, registerEditor(reg, d))
	registerQueue(reg, d)
	registerAgents(reg, d)
	registerSignIn(reg, d)
	registerNativeSessions(reg, d)
	registerBuilds(reg, d)
	registerGates(reg, d)
	registerConversation(reg, d)
	registerAttachments(reg, d)
	registerApprovals(reg, d)
	registerRules(reg, d)
	registerBoundary(reg, d)
	registerMCP(reg, d)
	registerPreview(reg, d)
	w := newWatching()
	s := registerSubscribe(reg, d, w)
	registerExecutor(reg, d)
	registerTerminals(reg, d, w)
	return func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { b.flushed(ctx) })
		both.Go(func() { s.flushed(ctx) })
		both.Wait()
	}
}

// checkParams checks parameters against the rules that their schema does not have. The error
// is one of server.InvalidParam.
func checkParams(params any) error {
	switch p := params.(type) {
	case protocol.LaunchParams:
		return checkLaunch(p)
	case protocol.LaunchAttemptsParams:
		return checkLaunchAttempts(p)
	case protocol.ContinueParams:
		return checkContinue(p)
	case protocol.SubmitTaskParams:
		return checkSubmit(p)
	case protocol.ExecuteParams:
		return checkExecute(p)
	case protocol.CreateApprovalParams:
		return checkCreateApproval(p)
	case protocol.DecisionParams:
		return checkDecision(p)
	case protocol.AskUserParams:
		return checkAskUser(p)
	case protocol.CallToolParams:
		return checkCallTool(p)
	case protocol.SubscribeParams:
		return checkSubscribe(p)
	case protocol.UsageParams:
		return checkUsage(p)
	case protocol.SpawnTerminalParams:
		return checkSpawn(p)
	case protocol.WriteTerminalParams:
		return checkWrite(p)
	case protocol.ResizeTerminalParams:
		return checkResize(p)
	case protocol.AttachTerminalParams:
		return checkAttach(p)
	case interface{ Check() error }:
		return p.Check()
	}
	return nil
}

// handle registers a method of the hub. It checks the parameters first, and gives the hub's
// errors the codes of the family.
func handle[P, R any](reg *server.Registry, d Domain, f family, name string,
	h func(ctx context.Context, hb *hub.Hub, p P) (R, error), options ...server.Option,
) {
	server.Handle(reg, name, func(ctx context.Context, p P) (R, error) {
		var none R
		if err := checkParams(p); err != nil {
			return none, err
		}
		hb, err := d.Hub(ctx)
		if err != nil {
			return none, f.Error(err)
		}
		result, err := h(d.Workspaces.context(ctx), hb, p)
		if err != nil {
			return none, f.Error(hb.OrEnding(ctx, err))
		}
		return result, nil
	}, options...)
}

// hubKind is the kind of an error of the domain, or "".
func hubKind(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// longest is the longest time that a client can mean: it is without end, and
// what is reckoned with it is still a date.
const longest = 100 * 365 * 24 * time.Hour

// milliseconds is a time of so many, or the longest if that is less.
func milliseconds[N int64 | uint](n N) time.Duration {
	if n > 0 && uint64(n) > uint64(longest/time.Millisecond) {
		return longest
	}
	return max(time.Duration(n), -longest/time.Millisecond) * time.Millisecond
}

// timeOrNil is nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// orNil is nil for the zero value.
func orNil[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// headline is the beginning of a text as one line of at most most characters.
func headline(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// longestMessage bounds what goes out where the framing does not: a peer that
// is a duet-rpc itself takes frames of 10 MiB.
const longestMessage = 9 << 20

// room is how many bytes a result may have on the connection that asks.
func room(ctx context.Context) int {
	const envelope = 2048 // the id and the members around a result
	if conn := server.ConnFrom(ctx); conn != nil && conn.MaxMessage() > 0 {
		return conn.MaxMessage() - envelope
	}
	return longestMessage
}

// A shortenable is an object with texts that may be cut where a message would
// become too long.
type shortenable interface{ Texts() []*string }

// textCaps are the lengths to which texts are cut, one after the other, until
// a message fits.
var textCaps = []int{256 << 10, 64 << 10, 16 << 10, 4 << 10, 1 << 10, 256}

// fit cuts texts of the objects of a list until the list fits into most bytes,
// and if that does not do, returns only as many of its objects as fit. Texts
// that are cut say so.
func fit[T shortenable](list []T, most int) []T {
	sizes := make([]int, len(list))
	measure := func() (total int) {
		for i, o := range list {
			sizes[i] = encodedSize(o) + 1
			total += sizes[i]
		}
		return total
	}
	if atMost(list) <= most {
		return list
	}
	total := measure()
	for _, limit := range textCaps {
		if total <= most {
			return list
		}
		for _, o := range list {
			for _, text := range o.Texts() {
				*text = protocol.Cut(*text, limit)
			}
		}
		total = measure()
	}
	kept := 0
	for sum := 0; kept < len(list) && sum+sizes[kept] <= most; kept++ {
		sum += sizes[kept]
	}
	return list[:kept]
}

// fitting is how many of the first of a list fit into most bytes.
func fitting[T any](list []T, most int) int {
	for i, o := range list {
		if most -= encodedSize(o) + 1; most < 0 {
			return i
		}
	}
	return len(list)
}

// atMost is an upper limit for the length of a list as JSON, in bytes, which costs less than
// encoding it. It knows lists of sessions and of tasks.
func atMost[T any](list []T) int {
	total := 0
	for _, o := range list {
		switch o := any(o).(type) {
		case *protocol.Session:
			if o.Modes != nil || o.AgentSession != nil {
				return math.MaxInt
			}
			total += sessionAtMost(o) + 1
		case *protocol.Task:
			total += taskAtMost(o) + 1
		default:
			return math.MaxInt
		}
	}
	return total
}

// textAtMost is how long texts are at most, as JSON: each byte may become six.
func textAtMost(texts ...*string) int {
	total := 0
	for _, text := range texts {
		total += 6*len(*text) + 2
	}
	return total
}

// encodedSize is the length of v as JSON, in bytes; it is not too small.
func encodedSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

// pageSize is the limit of a list: its default where none was asked for.
func pageSize(asked *uint, byDefault, most int) int {
	if asked == nil || *asked == 0 {
		return byDefault
	}
	return int(min(*asked, uint(most)))
}

// beforeRow is the row of the run that an id names, for paging; 0 for none.
func beforeRow(ctx context.Context, h *hub.Hub, id string) (int64, error) {
	if id == "" {
		return 0, nil
	}
	s, err := h.Query().Session(ctx, id)
	return s.ID, err
}

// Workspaces knows the connections of editors whose user does not trust the
// workspace (initialize), and the environments that clients have sent
// (client.environment). It forgets a connection when that ends. A nil one knows
// none. It may be used by many goroutines at once.
type Workspaces struct {
	mu           sync.Mutex
	restricted   map[*server.Conn]struct{}
	environments map[*server.Conn]clientenv.Environment
}

// NewWorkspaces knows none yet.
func NewWorkspaces() *Workspaces {
	return &Workspaces{restricted: make(map[*server.Conn]struct{}), environments: make(map[*server.Conn]clientenv.Environment)}
}

// context returns the context of a request with what is known of its connection.
func (w *Workspaces) context(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	conn := server.ConnFrom(ctx)
	w.mu.Lock()
	_, restrict := w.restricted[conn]
	e := w.environments[conn]
	w.mu.Unlock()
	if restrict {
		ctx = clientenv.Restrict(ctx)
	}
	if e != nil {
		ctx = clientenv.Context(ctx, e)
	}
	return ctx
}

// setEnvironment keeps the environment that a client has sent, until its connection ends. ctx
// is that of an inline handler.
func (w *Workspaces) setEnvironment(ctx context.Context, e clientenv.Environment) {
	conn := server.ConnFrom(ctx)
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.environments[conn]; !known {
		context.AfterFunc(ctx, func() { // the context of inline handlers ends with the connection
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.environments, conn)
		})
	}
	w.environments[conn] = e
}

// trust notes what an editor says of the workspace, until its connection ends.
func (w *Workspaces) trust(conn *server.Conn, trusted bool) {
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if trusted {
		delete(w.restricted, conn)
		return
	}
	if _, known := w.restricted[conn]; known {
		return
	}
	started := conn.Go(func(ctx context.Context) {
		<-ctx.Done()
		w.trust(conn, true)
	})
	if started {
		w.restricted[conn] = struct{}{}
	}
}

func (w *Workspaces) isRestricted(conn *server.Conn) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, restricted := w.restricted[conn]
	return restricted
}

// Unwatched remembers which sessions were at work when the last subscription ended, so that the
// next client can show that they went on. Each user gets that once. A nil one remembers
// nothing. It may be used by many goroutines at once.
type Unwatched struct {
	once func() bool // reports true once for each user

	mu       sync.Mutex // guards the fields below
	watching int        // how many subscriptions there are
	sessions []string   // the names of their tasks
}

// NewUnwatched remembers nothing yet. once reports true once for each user.
func NewUnwatched(once func() bool) *Unwatched { return &Unwatched{once: once} }

// statusWithin is how long the hub may take to list what runs.
const statusWithin = 200 * time.Millisecond

func (u *Unwatched) begin() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watching++
}

func (u *Unwatched) end(h *hub.Hub) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watching--; u.watching > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
	defer cancel()
	status, err := h.Status(ctx)
	if err != nil { // the hub ends, and with it what runs
		return
	}
	u.sessions = nil
	for _, s := range status.Running {
		if s.State != domain.WaitingInput {
			u.sessions = append(u.sessions, domain.TaskName(s.Task))
		}
	}
}

// Notice says that sessions went on while no client followed them; "" if none did, or the user
// got it before. The client that gets it shows it.
func (u *Unwatched) Notice() string {
	if u == nil {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sessions) == 0 || !u.once() {
		return ""
	}
	which := strings.Join(u.sessions, ", ")
	u.sessions = nil
	return which + " went on while no editor or shell was there; see when_alone in [daemon]"
}
