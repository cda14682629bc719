package handlers

import (
	"context"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerDaemon registers the methods of the noun daemon.
func registerDaemon(reg *server.Registry, d Domain) {
	m := daemon{d}
	handle(reg, d, nativeFamily, "daemon.status", m.status, server.Doc("Returns the state of the daemon and its problems."))
	handle(reg, d, nativeFamily, "daemon.listen", m.listen, server.LongRunning(),
		server.Doc("Opens another socket for clients, as --listen does, unless the daemon listens there already. It stays open until the "+
			"daemon ends. If it cannot be opened, health and daemon.status report that, too, until a later call opens it."))
	handle(reg, d, nativeFamily, "secret.provide", provideSecret,
		server.Doc("Answers the event secret.requested. The daemon passes the secret on, and never stores or logs it."))
	server.Handle(reg, "daemon.stop", m.stop,
		server.Doc("Ends the daemon after this reply. Running turns get 15 s. Turns that wait for a person are interrupted at once, and their "+
			"questions stay. Queued turns stay queued. With force, it does not wait."))
}

type daemon struct{ Domain }

const promptShown = 80

func (m daemon) status(ctx context.Context, h *hub.Hub, _ none) (protocol.DaemonStatus, error) {
	s, err := h.Status(ctx)
	if err != nil {
		return protocol.DaemonStatus{}, err
	}
	triggers, err := listTriggers(ctx, h, none{})
	if err != nil {
		return protocol.DaemonStatus{}, err
	}
	sources := h.Triggers().Sources()
	s.Issues = append(s.Issues, sources.Issues...)
	r := protocol.DaemonStatus{
		PID: os.Getpid(), UptimeSeconds: int64(m.Now().Sub(s.Started).Seconds()), StartedAt: protocol.Timestamp(s.Started),
		Health: "healthy", Issues: s.Issues, Version: m.Version,
	}
	if len(s.Issues) > 0 {
		r.Health = "degraded"
	}
	r.Hub = "daemon"
	if m.Sockets != nil {
		r.Subsystems.IPC.Sockets = m.Sockets()
	}
	if m.Unserved != nil {
		r.Subsystems.IPC.Unserved = m.Unserved()
	}
	if m.Clients != nil {
		r.Subsystems.IPC.Clients = m.Clients()
	}
	sup := protocol.SupervisorStatus{
		Running: len(s.Running), Queued: len(s.Queued), MaxConcurrency: s.MaxTurns,
		Tasks: protocol.SupervisedTasks{Running: []protocol.RunningTask{}, Queued: []protocol.QueuedTask{}},
	}
	for _, t := range s.Running {
		sup.Tasks.Running = append(sup.Tasks.Running, protocol.RunningTask{
			ID: domain.TaskName(t.Task), Prompt: protocol.Headline(t.Prompt, promptShown), Agent: protocol.OrNil(t.Agent),
			StartedAt: protocol.TimestampOrNull(t.Started), Turn: t.Turn.Name(), TurnUUID: t.HumanLayerSession, State: string(t.State),
		})
	}
	for _, t := range s.Queued {
		sup.Tasks.Queued = append(sup.Tasks.Queued, protocol.QueuedTask{
			ID: domain.TaskName(t.Task), Prompt: protocol.Headline(t.Prompt, promptShown), Agent: protocol.OrNil(t.Agent), Priority: t.Priority,
			Turn: t.Turn.Name(), TurnUUID: t.HumanLayerSession,
		})
	}
	r.Subsystems.Supervisor = sup
	r.Subsystems.Automation = protocol.AutomationOf(triggers)
	w := sources.Watch
	r.Subsystems.FileWatcher = protocol.WatcherStatus{
		Enabled: w.Enabled, Paths: append([]string{}, w.Paths...), EventsReceived: w.Received, Directories: w.Directories, Problem: w.Problem,
	}
	r.Subsystems.Scheduler.LastFires = map[string]string{}
	for _, rule := range triggers.Triggers {
		if rule.NextFire != "" {
			r.Subsystems.Scheduler.Jobs++
		}
	}
	r.Subsystems.Scheduler.Enabled = r.Subsystems.Scheduler.Jobs > 0
	for id, at := range sources.LastFires {
		r.Subsystems.Scheduler.LastFires[id] = protocol.Timestamp(at)
	}
	r.Subsystems.Store = protocol.StoreStatus{Path: s.Database, LastSeq: s.LastSeq}
	r.Subsystems.Executors.Running = s.Executors
	r.Subsystems.Approvals.Pending = s.Pending
	return r, nil
}

func (m daemon) listen(ctx context.Context, _ *hub.Hub, p protocol.ListenParams) (protocol.Success, error) {
	if m.Listen == nil {
		return protocol.Success{}, domain.ErrEnding
	}
	if err := m.Listen(ctx, p.Path); err != nil {
		return protocol.Success{}, &domain.Error{Kind: domain.KindListen, Message: err.Error(), Err: err}
	}
	return protocol.Success{Success: true}, nil
}

func (m daemon) stop(ctx context.Context, p protocol.StopDaemonParams) (protocol.StopDaemonResult, error) {
	if m.Stop != nil {
		server.AfterReply(ctx, func() { m.Stop(p.Force) })
	}
	return protocol.StopDaemonResult{Stopping: true}, nil
}
