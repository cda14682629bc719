package protocol

import "encoding/json"

type PreviewParams struct {
	URL    string `json:"url" doc:"A path, with a query if need be."`
	Origin string `json:"origin,omitempty" doc:"Where the client shows the preview, such as http://127.0.0.1:8080: whole URLs that begin so are paths, too."`
}

type PreviewFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body" doc:"In base64. What does not fit into a message is the error -32005: of frames files of 6 MiB fit, of lines those of 700 KiB."`
}

type PreviewShown struct {
	URL   string `json:"url,omitempty" doc:"As clients are told it."`
	Shown int    `json:"shown" doc:"How many clients were told."`
}

// PreviewSession says to which session something belongs that a page has said.
type PreviewSession struct {
	SessionID string `json:"session_id,omitempty" doc:"A session that it is kept with, by any id; absent: the one that was begun last."`
}

type ConsoleParams struct {
	Level   string            `json:"level,omitempty" doc:"log, debug, info, warn or error; absent: log."`
	Message string            `json:"message,omitempty" doc:"What was written, as one text."`
	Args    []json.RawMessage `json:"args,omitempty" doc:"What was written, where there is no message: texts as they are, other values as JSON."`
	URL     string            `json:"url,omitempty" doc:"Of the page."`
	Line    int               `json:"line,omitempty" doc:"Of the script; 1 is the first."`
	Column  int               `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	PreviewSession
}

type PageErrorParams struct {
	Message string `json:"message" doc:"What is wrong."`
	Stack   string `json:"stack,omitempty" doc:"Where it was, line by line."`
	URL     string `json:"url,omitempty" doc:"Of the script, or the page."`
	Source  string `json:"source,omitempty" doc:"The same under another name."`
	Line    int    `json:"line,omitempty" doc:"1 is the first."`
	Column  int    `json:"column,omitempty" doc:"Within the line; 1 is the first."`
	PreviewSession
}

type NavigationParams struct {
	URL   string `json:"url" doc:"Where the page is now."`
	Title string `json:"title,omitempty" doc:"Of the page."`
	PreviewSession
}

type PreviewKept struct {
	Kept bool `json:"kept" doc:"Not, where pages say too much."`
}

type PageMessagesParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only what is kept with a session, or with a conversation, by any id."`
	Problems  bool   `json:"problems,omitempty" doc:"Only errors, and what was written to the console at the levels warn and error."`
	AfterID   int64  `json:"after_id,omitempty" doc:"Only messages with a higher id."`
	Limit     uint   `json:"limit,omitempty" doc:"The last ones; absent: 100, 1000 at most."`
	Follow    *bool  `json:"follow,omitempty" doc:"Whether the connection is told what pages say from now on, by notifications pageMessage, which are as the messages here; absent: as before. One that was told already comes again when it was said again."`
}

// A PageMessage is what a page has said, as clients see it.
type PageMessage struct {
	ID        int64  `json:"id"`
	Kind      string `json:"kind" doc:"console, error or navigation."`
	Level     string `json:"level,omitempty" doc:"Of console: log, debug, info, warn or error."`
	Message   string `json:"message" doc:"Of navigation: the title of the page."`
	URL       string `json:"url,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	Stack     string `json:"stack,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Count     int    `json:"count" doc:"How often it was said, one after the other."`
	Time      string `json:"time" doc:"When it was said last."`
}

type PageMessages struct {
	Messages []PageMessage `json:"messages"`
}
