package handlers

import (
	"context"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerDaemon registers daemon.* and automation.* (AIWG).
func registerDaemon(reg *server.Registry, d Domain) {
	m := daemon{Domain: d, started: d.Now()}
	server.Handle(reg, "daemon.status", m.status, server.Doc("Tells what the process is doing, and whether anything is wrong."))
	server.Handle(reg, "daemon.stop", m.stop,
		server.Doc("Ends the process that runs the agents, after this reply. Running tasks are given 15 s, but those that wait for a human, whose questions stay, are interrupted at once; queued ones stay queued; with force nothing is waited for."))
	server.Handle(reg, "automation.status", noAutomation[automationStatus], server.Doc("Tells the rules that start tasks by themselves. There is no automation yet."))
	server.Handle(reg, "automation.enable", noAutomation[automationSwitched], server.Doc("Switches automation, or one rule, on. There is no automation yet."))
	server.Handle(reg, "automation.disable", noAutomation[automationSwitched], server.Doc("Switches automation, or one rule, off. There is no automation yet."))
}

type daemon struct {
	Domain
	started time.Time
}

type statusResult struct {
	PID           int        `json:"pid"`
	UptimeSeconds int64      `json:"uptime_seconds"`
	StartedAt     string     `json:"started_at"`
	Health        string     `json:"health" doc:"healthy or degraded."`
	Issues        []string   `json:"issues,omitempty" doc:"What is wrong, and what to do."`
	Version       string     `json:"version"`
	Hub           string     `json:"hub,omitempty" doc:"daemon: what runs outlives every editor; embedded: it ends with the process that an editor or a command started."`
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

type automationStatus struct {
	Enabled          bool     `json:"enabled"`
	RuleCount        int      `json:"ruleCount"`
	Rules            []string `json:"rules"`
	RecentExecutions []string `json:"recentExecutions"`
}

type watcherStatus struct {
	Enabled        bool     `json:"enabled"`
	Paths          []string `json:"paths"`
	EventsReceived int      `json:"events_received"`
}

type schedulerStatus struct {
	Enabled   bool              `json:"enabled"`
	Jobs      int               `json:"jobs"`
	LastFires map[string]string `json:"last_fires"`
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

// status answers also without a store: then it says so.
func (m daemon) status(ctx context.Context, _ none) (statusResult, error) {
	var s hub.Status
	h, err := m.Hub(ctx)
	if err == nil {
		s, err = h.Status(ctx)
		err = h.OrEnding(ctx, err)
	}
	if err != nil {
		if hubKind(err) == "" {
			return statusResult{}, err
		}
		s.Issues = []string{err.Error()}
	}
	return m.statusOf(s), nil
}

func (m daemon) statusOf(s hub.Status) statusResult {
	if s.Started.IsZero() {
		s.Started = m.started
	}
	r := statusResult{
		PID: os.Getpid(), UptimeSeconds: int64(m.Now().Sub(s.Started).Seconds()), StartedAt: dialect.Timestamp(s.Started),
		Health: "healthy", Issues: s.Issues, Version: m.Version,
	}
	if len(s.Issues) > 0 {
		r.Health = "degraded"
	}
	r.Hub = m.Kind
	if m.Sockets != nil {
		r.Subsystems.IPC.Sockets = m.Sockets()
	}
	if m.Clients != nil {
		r.Subsystems.IPC.Clients = m.Clients()
	}
	sup := supervisorStatus{len(s.Running), len(s.Queued), s.MaxRuns, supervisedTasks{[]runningTask{}, []queuedTask{}}}
	for _, t := range s.Running {
		sup.Tasks.Running = append(sup.Tasks.Running, runningTask{
			ID: domain.TaskName(t.Task), Prompt: headline(t.Prompt, promptShown), Agent: orNil(t.Agent),
			StartedAt: dialect.TimestampOrNull(t.Started), SessionID: t.SessionID, Status: dialect.StatusOf(t.State),
		})
	}
	for _, t := range s.Queued {
		sup.Tasks.Queued = append(sup.Tasks.Queued, queuedTask{
			domain.TaskName(t.Task), headline(t.Prompt, promptShown), orNil(t.Agent), t.Priority, t.SessionID,
		})
	}
	r.Subsystems.Supervisor = sup
	r.Subsystems.Automation = automationStatus{Rules: []string{}, RecentExecutions: []string{}}
	r.Subsystems.FileWatcher.Paths = []string{}
	r.Subsystems.Scheduler.LastFires = map[string]string{}
	r.Subsystems.Store = storeStatus{s.Database, s.LastSeq}
	r.Subsystems.Executors.Running = s.Executors
	r.Subsystems.Approvals.Pending = s.Pending
	return r
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

type automationParams struct {
	RuleID string `json:"ruleId,omitempty" doc:"One rule; absent: automation as a whole."`
}

type automationSwitched struct {
	Enabled bool   `json:"enabled"`
	Success bool   `json:"success"`
	RuleID  string `json:"ruleId,omitempty"`
}

// noAutomation says that the engine is off.
func noAutomation[R any](context.Context, automationParams) (R, error) {
	var result R
	return result, dialect.Task.Error(&domain.Error{
		Kind: domain.KindUnavailable, Message: "automation is not part of this version; start tasks with task.submit",
	})
}
