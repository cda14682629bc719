package handlers

import (
	"context"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerDaemon registers daemon.* (AIWG).
func registerDaemon(reg *server.Registry, d Domain) {
	m := daemon{d}
	handle(reg, d, taskFamily, "daemon.status", m.status, server.Doc("Tells what the process is doing, and whether anything is wrong."))
	server.Handle(reg, "daemon.stop", m.stop,
		server.Doc("Ends the process that runs the agents, after this reply. Running tasks are given 15 s, but those that wait for a human, whose questions stay, are interrupted at once; queued ones stay queued; with force nothing is waited for."))
}

type daemon struct{ Domain }

type statusResult struct {
	PID           int        `json:"pid"`
	UptimeSeconds int64      `json:"uptime_seconds"`
	StartedAt     string     `json:"started_at"`
	Health        string     `json:"health" doc:"healthy or degraded."`
	Issues        []string   `json:"issues,omitempty" doc:"What is wrong, and what to do."`
	Version       string     `json:"version"`
	Hub           string     `json:"hub,omitempty" doc:"daemon."`
	Subsystems    subsystems `json:"subsystems"`
}

type subsystems struct {
	IPC         ipcStatus        `json:"ipc"`
	Supervisor  supervisorStatus `json:"supervisor"`
	Automation  automationStatus `json:"automation"`
	FileWatcher watcherStatus    `json:"file_watcher"`
	Scheduler   schedulerStatus  `json:"scheduler"`
	Messaging   messagingStatus  `json:"messaging"`
	Store       storeStatus      `json:"store"`
	Executors   executorsStatus  `json:"executors"`
	Approvals   approvalsStatus  `json:"approvals"`
}

type ipcStatus struct {
	Clients int      `json:"clients"`
	Sockets []string `json:"sockets,omitempty" doc:"Where it listens."`

	Unserved []string `json:"unserved,omitempty" doc:"Who looks for a daemon and cannot reach this one, and why: AIWG's command line, where a daemon of AIWG runs."`
}

type supervisorStatus struct {
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	MaxConcurrency int             `json:"maxConcurrency"`
	Tasks          supervisedTasks `json:"tasks"`
}

type supervisedTasks struct {
	Running []runningTask `json:"running"`
	Queued  []queuedTask  `json:"queued" doc:"In the order in which they will start."`
}

type runningTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	StartedAt *string `json:"startedAt"`
	PID       *int    `json:"pid"`
	SessionID string  `json:"session_id"`
	Status    string  `json:"status"`
}

type queuedTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	Priority  int     `json:"priority"`
	SessionID string  `json:"session_id"`
}

type watcherStatus struct {
	Enabled        bool     `json:"enabled"`
	Paths          []string `json:"paths" doc:"What is watched, relative to the project."`
	EventsReceived int64    `json:"events_received"`
	Directories    int      `json:"directories" doc:"How many are watched."`
	Problem        string   `json:"problem,omitempty" doc:"Why not all is watched, and what to do."`
}

type schedulerStatus struct {
	Enabled   bool              `json:"enabled"`
	Jobs      int               `json:"jobs" doc:"How many triggers have a time."`
	LastFires map[string]string `json:"last_fires" doc:"When the time of each has come last, since the start."`
}

type messagingStatus struct {
	Enabled bool `json:"enabled"`
}

type storeStatus struct {
	Path    string `json:"path,omitempty" doc:"The database."`
	LastSeq int64  `json:"last_seq" doc:"The last event's number."`
}

type executorsStatus struct {
	Running int `json:"running"`
}

type approvalsStatus struct {
	Pending int `json:"pending"`
}

const promptShown = 80

func (m daemon) status(ctx context.Context, h *hub.Hub, _ none) (statusResult, error) {
	s, err := h.Status(ctx)
	if err != nil {
		return statusResult{}, err
	}
	triggers, err := automationStatusOf(ctx, h, none{})
	if err != nil {
		return statusResult{}, err
	}
	sources := h.Triggers().Sources()
	s.Issues = append(s.Issues, sources.Issues...)
	r := statusResult{
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
	sup := supervisorStatus{len(s.Running), len(s.Queued), s.MaxRuns, supervisedTasks{[]runningTask{}, []queuedTask{}}}
	for _, t := range s.Running {
		sup.Tasks.Running = append(sup.Tasks.Running, runningTask{
			ID: domain.TaskName(t.Task), Prompt: headline(t.Prompt, promptShown), Agent: orNil(t.Agent),
			StartedAt: protocol.TimestampOrNull(t.Started), SessionID: t.SessionID, Status: protocol.StatusOf(t.State),
		})
	}
	for _, t := range s.Queued {
		sup.Tasks.Queued = append(sup.Tasks.Queued, queuedTask{
			domain.TaskName(t.Task), headline(t.Prompt, promptShown), orNil(t.Agent), t.Priority, t.SessionID,
		})
	}
	r.Subsystems.Supervisor = sup
	r.Subsystems.Automation = triggers
	w := sources.Watch
	r.Subsystems.FileWatcher = watcherStatus{w.Enabled, append([]string{}, w.Paths...), w.Received, w.Directories, w.Problem}
	r.Subsystems.Scheduler.LastFires = map[string]string{}
	for _, rule := range triggers.Rules {
		if rule.NextFire != "" {
			r.Subsystems.Scheduler.Jobs++
		}
	}
	r.Subsystems.Scheduler.Enabled = r.Subsystems.Scheduler.Jobs > 0
	for id, at := range sources.LastFires {
		r.Subsystems.Scheduler.LastFires[id] = protocol.Timestamp(at)
	}
	r.Subsystems.Store = storeStatus{s.Database, s.LastSeq}
	r.Subsystems.Executors.Running = s.Executors
	r.Subsystems.Approvals.Pending = s.Pending
	return r, nil
}

type stopParams struct {
	Force bool `json:"force,omitempty" doc:"End running tasks at once."`
}

type stopResult struct {
	Stopping bool `json:"stopping"`
}

func (m daemon) stop(ctx context.Context, p stopParams) (stopResult, error) {
	if m.Stop != nil {
		server.AfterReply(ctx, func() { m.Stop(p.Force) })
	}
	return stopResult{true}, nil
}
