package acp

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// The details of a question are the content of its tool call before it runs, without its title and
// input. Text that is too long to store appears only with its own request.
func TestDetails(t *testing.T) {
	long := strings.Repeat("x", maxDetails+1)
	call := func(status, text string) string {
		return fmt.Sprintf(`{"toolCallId":"1","status":%q,"title":"Bash","kind":"execute","content":[{"type":"content","content":{"type":"text","text":%q}}]}`, status, text)
	}
	for name, c := range map[string]struct {
		reported []string // tool_call and tool_call_update
		asked    string
		want     string
	}{
		"in the request":             {nil, call("pending", "Running: ls"), "Running: ls"},
		"before the request":         {[]string{call("pending", "Running: ls")}, `{"toolCallId":"1"}`, "Running: ls"},
		"the request's own counts":   {[]string{call("pending", "old")}, call("pending", "new"), "new"},
		"its result is none":         {[]string{call("pending", "old"), call("in_progress", "result")}, `{"toolCallId":"1"}`, ""},
		"too long to remember":       {[]string{call("pending", "old"), call("pending", long)}, `{"toolCallId":"1"}`, ""},
		"too long, in the request":   {nil, call("pending", long), long},
		"the title says it":          {nil, call("pending", " Bash "), ""},
		"the input says it":          {nil, strings.Replace(call("pending", "make it"), "{", `{"rawInput":{"command":"ls","description":"make it"},`, 1), ""},
		"a plan is no details":       {nil, strings.Replace(call("pending", "1. look"), "execute", "switch_mode", 1), ""},
		"a call that says nothing":   {nil, `{"toolCallId":"1"}`, ""},
		"beside an input of another": {nil, strings.Replace(call("pending", "why"), "{", `{"rawInput":{"command":"ls"},`, 1), "why"},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &turn{Task: &task.Task{}, record: &record{}}
			for _, raw := range c.reported {
				var u toolUpdate
				require.NoError(t, json.Unmarshal([]byte(raw), &u))
				turn.tools.update(&u, u.call())
			}
			open, err := turn.takePermission([]byte(`{"toolCall":` + c.asked + `,"options":[]}`))
			require.NoError(t, err)
			assert.Equal(t, c.want, (&agent{}).question(turn, &open.request, turn.tools.state(open)).Details)
		})
	}
}

// A thought that is not text is reported as content, and a block of an unknown type as a raw
// update.
func TestContentOfThoughts(t *testing.T) {
	var got []string
	replay := NewReplay(func(r catalog.ReplayedPart) { got = append(got, r.EventType+" "+string(r.EventData)) })
	const content = `"content":{"type":"image","mimeType":"image/png","data":"AAEC"}`
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk",`+content+`,"_meta":{"claudeCode":{"parentToolUseId":"c"}}}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_message_chunk",`+content+`}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`), false)
	replay.Close()
	assert.Equal(t, []string{
		`content {` + content + `,"parent_id":"c","thought":true}`,
		`content {` + content + `}`,
		`raw {"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`,
	}, got)
}

// A question of Kimi Code names the tool and its input, so that rules match them. In a prompted
// turn the arguments come before the question as text, in pieces. In an agent-initiated turn the
// question comes alone, with the first 50 characters of the command.
func TestKimiQuestionsNameToolAndInput(t *testing.T) {
	call := func(kind, text string) string {
		raw, err := json.Marshal(map[string]any{
			"sessionUpdate": kind, "toolCallId": "0:call_2", "title": "Bash", "kind": "execute", "status": "pending",
			"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": text}}},
		})
		require.NoError(t, err)
		return string(raw)
	}
	const asked = `{"toolCallId":"0:call_2","title":"Bash","content":[{"type":"content","content":{"type":"text","text":"Requesting approval to Running: touch made"}}]}`
	for name, c := range map[string]struct {
		reported []string
		asked    string
		input    string
	}{
		"in pieces":           {[]string{call("tool_call", `{"comm`), call("tool_call_update", `{"command":"touch made"}`)}, asked, `{"command":"touch made"}`},
		"unfinished":          {[]string{call("tool_call", `{"command":"touch ma`)}, asked, ``},
		"a name stands twice": {[]string{call("tool_call", `{"command":"ls","command":"touch made"}`)}, asked, ``},
		"in its own turn":     {nil, asked, ``},
	} {
		t.Run(name, func(t *testing.T) {
			turn := newTurn(task.New(t.Context(), t.Context(), &reports{}, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
			defer turn.Close()
			turn.settings.Introduced(&domain.AgentInfo{Name: kimiCode}, domain.PromptTakes{})
			for _, raw := range c.reported {
				var kind struct{ SessionUpdate string }
				require.NoError(t, json.Unmarshal([]byte(raw), &kind))
				turn.update(kind.SessionUpdate, []byte(raw), false)
			}
			open, err := turn.takePermission([]byte(`{"toolCall":` + c.asked + `,"options":[]}`))
			require.NoError(t, err)
			q := (&agent{}).question(turn, &open.request, turn.tools.state(open))
			assert.Equal(t, "Bash", q.ToolName)
			assert.False(t, q.NameByKind)
			assert.Equal(t, c.input, string(q.ToolInput))
			assert.Equal(t, "Requesting approval to Running: touch made", q.Details)
		})
	}
}

func TestTitledInput(t *testing.T) {
	const current = "[current working directory /p]"
	for name, c := range map[string]struct {
		call titledCall
		want string // of the input; "": no input
	}{
		"the title is the command": {titledCall{"execute", "touch made", current + " (Makes a file)", true}, `{"command":"touch made"}`},
		"whatever it ends with":    {titledCall{"execute", "(touch made)", current, true}, `{"command":"(touch made)"}`},
		"also with words that could be the model's": {
			titledCall{"execute", "touch made (Makes a file)", current + " (Makes a file) [background]", true}, `{"command":"touch made (Makes a file)"}`,
		},
		"in a directory":                  {titledCall{"execute", "touch made", "[in sub]", true}, `{"command":"touch made","cwd":"sub"}`},
		"which is described":              {titledCall{"execute", "touch made", "[in sub] (Makes [a] file)", true}, `{"command":"touch made","cwd":"sub"}`},
		"in a directory that has a ]":     {titledCall{"execute", "touch made", "[in a]b] (x)", true}, `{"command":"touch made","cwd":"a]b"}`},
		"in one of two":                   {titledCall{"execute", "touch made", "[in sub] (x]", true}, `{"command":"touch made","cwd":["sub","sub] (x"]}`},
		"in one that is cut short":        {titledCall{"execute", "touch made", "[in /p", true}, `{"command":"touch made","cwd":["/p","[in /p"]}`},
		"it wants more than to run it":    {titledCall{"execute", "ls", current, false}, `{"command":"ls","additional_permissions":"perhaps: the agent offers no answer that allows this for good"}`},
		"of several lines":                {titledCall{"execute", "ls\ntouch <x> & (y)", current, true}, `{"command":"ls\ntouch <x> & (y)"}`},
		"before 0.36, with nothing else":  {titledCall{"execute", "touch made", "", true}, `{"command":"touch made"}`},
		"before 0.36":                     {titledCall{"execute", "touch made " + current, "", true}, `{"command":"touch made [current working directory /p]","command_readings":["touch made"]}`},
		"before 0.36, where it is alone":  {titledCall{"execute", "(touch made)", "", true}, `{"command":"(touch made)"}`},
		"before 0.36, in the background":  {titledCall{"execute", "touch made [background]", "", true}, `{"command":"touch made [background]","command_readings":["touch made"]}`},
		"before 0.36, with all there is":  {titledCall{"execute", "a [in d] (x) [background]", "", true}, `{"command":"a [in d] (x) [background]","command_readings":["a","a [in d]","a [in d] (x)"],"cwd":["d","d] (x) [background","."]}`},
		"before 0.36, with two of each":   {titledCall{"execute", "a (b) (c)", "", true}, `{"command":"a (b) (c)","command_readings":["a","a (b)"]}`},
		"before 0.36, in one of two":      {titledCall{"execute", "a [in /p] x [in /etc] (d)", "", true}, `{"command":"a [in /p] x [in /etc] (d)","command_readings":["a","a [in /p] x","a [in /p] x [in /etc]"],"cwd":["/p] x [in /etc","/etc","."]}`},
		"words that only begin like that": {titledCall{"execute", "a [in d", "", true}, `{"command":"a [in d","cwd":["d","[in d","."]}`},
		"another kind of tool":            {titledCall{"edit", "Writing to made", "", true}, ""},
		"no kind":                         {titledCall{"", "touch made", "", true}, ""},
		"no title":                        {titledCall{"execute", " ", current, true}, ""},
	} {
		assert.Equal(t, c.want, string(titledInput(c.call)), name)
	}
}

// The readings of a title contain the command, whatever the command and its text are.
func FuzzTitle(f *testing.F) {
	for _, command := range []string{
		"touch made", "touch made (x)", "(touch made)", "touch x; rm y (z)", "rm y [in /p]", "rm y [current working directory /p] (x)", "rm y [background]", "a ( ( ( (", "touch x #(", "rm\ny (z)",
		strings.Repeat("a (", 300) + ")", "echo ')' ; rm x", "rm x  (y)", "rm x (y) ",
	} {
		for _, words := range []string{"", "x", "x) (y", "] (x", "[background]", "[in /etc]", strings.Repeat(" (", 300)} {
			f.Add(command, "", words, false)
			f.Add(command, "/p/sub", words, true)
			f.Add(command, "/etc] (x", words, true)
		}
	}
	f.Fuzz(func(t *testing.T, command, dir, words string, inBackground bool) {
		if strings.TrimSpace(command) == "" || !utf8.ValidString(command) || !utf8.ValidString(dir) || !utf8.ValidString(words) {
			t.Skip("an empty title, or one that is not UTF-8, is none: what comes as JSON is UTF-8")
		}
		details := "[current working directory /p]"
		if dir != "" {
			details = "[in " + dir + "]"
		}
		if words != "" {
			details += " (" + strings.ReplaceAll(words, "\n", " ") + ")"
		}
		if inBackground {
			details += " [background]"
		}
		for _, c := range []titledCall{{"execute", command, details, true}, {"execute", command + " " + details, "", true}} {
			var in struct {
				Command  string
				Readings []string `json:"command_readings"`
				Dir      any      `json:"cwd"`
			}
			if err := json.Unmarshal(titledInput(c), &in); err != nil {
				t.Fatal(err)
			}
			known, cut := in.Command == command, false
			for _, reading := range in.Readings {
				known, cut = known || reading == command, cut || reading == ""
			}
			if !known && !cut {
				t.Errorf("%q is read as %q, or %q", c.Title, in.Command, in.Readings)
			}
			// The directory is the real one, or it is ambiguous.
			if one, ok := in.Dir.(string); ok && one != dir || in.Dir == nil && dir != "" {
				t.Errorf("%q %q is run in %q, not %v", c.Title, c.Text, dir, in.Dir)
			}
		}
	})
}

// A turn lasts until its sub-agents are idle, unless the answer to the prompt has ended it.
func TestTurnWaitsForSubagents(t *testing.T) {
	for _, ends := range []bool{false, true} {
		turn := NewReplay(func(catalog.ReplayedPart) {}).turn
		a := &agent{}
		a.subagents.byID = map[string]*subagent{"child": {isActive: true}}
		turn.idleResult = &promptResult{StopReason: "end_turn", Ends: ends}
		a.endIdle(turn)
		assert.Len(t, turn.idle, map[bool]int{true: 1}[ends])
		assert.Equal(t, ends, turn.ended)
	}
}
