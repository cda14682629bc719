package protocol

type DaemonStatus struct {
	PID           int        `json:"pid"`
	UptimeSeconds int64      `json:"uptime_seconds"`
	StartedAt     string     `json:"started_at"`
	Health        string     `json:"health" doc:"healthy or degraded."`
	Issues        []string   `json:"issues,omitempty" doc:"What is wrong, and what to do."`
	Version       string     `json:"version"`
	Hub           string     `json:"hub,omitempty" doc:"daemon."`
	Subsystems    Subsystems `json:"subsystems"`
}

type Subsystems struct {
	IPC         IPCStatus        `json:"ipc"`
	Supervisor  SupervisorStatus `json:"supervisor"`
	Automation  AutomationStatus `json:"automation"`
	FileWatcher WatcherStatus    `json:"file_watcher"`
	Scheduler   SchedulerStatus  `json:"scheduler"`
	Messaging   MessagingStatus  `json:"messaging"`
	Store       StoreStatus      `json:"store"`
	Executors   ExecutorsStatus  `json:"executors"`
	Approvals   ApprovalsStatus  `json:"approvals"`
}

type IPCStatus struct {
	Clients int      `json:"clients"`
	Sockets []string `json:"sockets,omitempty" doc:"Where it listens."`

	Unserved []string `json:"unserved,omitempty" doc:"Who looks for a daemon and cannot reach this one, and why: AIWG's command line, where a daemon of AIWG runs."`
}

type SupervisorStatus struct {
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	MaxConcurrency int             `json:"maxConcurrency"`
	Tasks          SupervisedTasks `json:"tasks"`
}

type SupervisedTasks struct {
	Running []RunningTask `json:"running"`
	Queued  []QueuedTask  `json:"queued" doc:"In the order in which they will start."`
}

type RunningTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	StartedAt *string `json:"startedAt"`
	PID       *int    `json:"pid"`
	SessionID string  `json:"session_id"`
	Status    string  `json:"status"`
}

type QueuedTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	Priority  int     `json:"priority"`
	SessionID string  `json:"session_id"`
}

type WatcherStatus struct {
	Enabled        bool     `json:"enabled"`
	Paths          []string `json:"paths" doc:"What is watched, relative to the project."`
	EventsReceived int64    `json:"events_received"`
	Directories    int      `json:"directories" doc:"How many are watched."`
	Problem        string   `json:"problem,omitempty" doc:"Why not all is watched, and what to do."`
}

type SchedulerStatus struct {
	Enabled   bool              `json:"enabled"`
	Jobs      int               `json:"jobs" doc:"How many triggers have a time."`
	LastFires map[string]string `json:"last_fires" doc:"When the time of each has come last, since the start."`
}

type MessagingStatus struct {
	Enabled bool `json:"enabled"`
}

type StoreStatus struct {
	Path    string `json:"path,omitempty" doc:"The database."`
	LastSeq int64  `json:"last_seq" doc:"The last event's number."`
}

type ExecutorsStatus struct {
	Running int `json:"running"`
}

type ApprovalsStatus struct {
	Pending int `json:"pending"`
}

type StopDaemonParams struct {
	Force bool `json:"force,omitempty" doc:"End running tasks at once."`
}

type StopDaemonResult struct {
	Stopping bool `json:"stopping"`
}
