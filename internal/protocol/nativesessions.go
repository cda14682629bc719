package protocol

type NativeSessionListParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	WorkingDir string `json:"working_dir,omitempty" doc:"Only sessions that work in this directory; ~ is expanded; absent: all."`
	Cursor     string `json:"cursor,omitempty" doc:"As next_cursor, to go on."`
	Limit      *uint  `json:"limit,omitempty" doc:"How many; 50 unless told, 1000 at most."`
}

type NativeSession struct {
	ID         string `json:"native_session_id" doc:"The agent's own id of it."`
	Title      string `json:"title,omitempty" doc:"In the agent's words."`
	UpdatedAt  string `json:"updated_at,omitempty" doc:"When something happened in it last."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it works."`
	SessionID  string `json:"session_id,omitempty" doc:"The last session of the conversation here that has it."`
	TaskID     string `json:"task_id,omitempty" doc:"The same under its name as a task."`
}

type NativeSessionList struct {
	Agent      string          `json:"agent" doc:"Its name in the configuration."`
	Sessions   []NativeSession `json:"sessions"`
	NextCursor string          `json:"next_cursor,omitempty" doc:"There may be more: pass this as cursor."`
}

type AdoptParams struct {
	Agent      string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID         string `json:"native_session_id" doc:"The agent's own id of the session, as agent.sessions lists it."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory in which it is to go on; ~ is expanded; absent: as the agent says, or else the project's root."`
	Title      string `json:"title,omitempty" doc:"What to call the session; absent: as the agent does."`
}

func (p AdoptParams) Check() error { return NotEmpty("native_session_id", p.ID) }

type AdoptResult struct {
	LaunchResult
	NativeSession string `json:"native_session_id"`
	Adopted       bool   `json:"adopted" doc:"False: it had a conversation here already, which was left as it is."`
	History       bool   `json:"history" doc:"Whether its agent has told what was said and done in it. Of one that was here already: true."`
	Note          string `json:"note,omitempty" doc:"What is to be known about that, in words."`
}

type NativeSessionDeleteParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	ID    string `json:"native_session_id" doc:"The agent's own id of the session."`
}

func (p NativeSessionDeleteParams) Check() error { return NotEmpty("native_session_id", p.ID) }
