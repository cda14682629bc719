//go:build unix

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// askingAgent is an ACP agent. It requests permission for the tool call in the file "call" and then
// reports the client's choice.
const askingAgent = `
[agents.asking]
driver = "acp"
command = ["/bin/sh", "-c", '''
while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case $line in
	*'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) result='{"sessionId":"s"}' ;;
	*'"method":"session/prompt"'*)
		printf '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s","toolCall":%s,"options":[{"optionId":"run","name":"Yes","kind":"allow_once"},{"optionId":"leave","name":"No","kind":"reject_once"}]}}\n' "$(cat call)"
		read -r answer
		case $answer in *'"run"'*) said=allowed ;; *) said=refused ;; esac
		printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' $said
		result='{"stopReason":"end_turn"}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']

[[rules]]
effect = "allow"
tool = "Bash"
command = "make test"

[[rules]]
effect = "allow"
tool = "Read"

[[rules]]
effect = "deny"
tool = "Bash"
command = "rm *"
`

// codexCall returns a tool call for a script as codex-acp 0.16 sends it in a permission request.
func codexCall(id, script string) string {
	quoted, _ := json.Marshal(script) // a string always marshals
	return fmt.Sprintf(`{"toolCallId":%[1]q,"kind":"execute","status":"pending","title":%[2]s,"content":[{"type":"content","content":{"type":"text","text":"the prompt asks for it\nAvailable Decisions: Approved\nAbort"}}],`+
		`"rawInput":{"call_id":%[1]q,"turn_id":"01a2026c-0176-7ff2-bbfd-1cb374d7b043","started_at_ms":1795336962508,"command":["/bin/bash","-lc",%[2]s],"reason":"the prompt asks for it",`+
		`"available_decisions":["approved","abort"],"parsed_cmd":[{"type":"unknown","cmd":%[2]s}]}}`, id, string(quoted))
}

// Duet asks about a call that no rule allows and reports ambiguous input. It denies a call if a
// deny rule matches one reading of its input.
func TestWhatRulesAllowAndDeny(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t), askingAgent)
	ask := func(call string) (e2e.Launched, e2e.Event) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, "call"), []byte(call), 0o600))
		l := c.Launch("do it", "asking")
		return l, c.AwaitQuestionOrEnd(l)
	}
	for call, said := range map[string]string{
		`{"toolCallId":"1","kind":"execute","title":"x","rawInput":{"command":"make test"}}`:                             "allowed",
		`{"toolCallId":"1","kind":"read","title":"x","rawInput":{"file_path":"a"}}`:                                      "allowed",
		`{"toolCallId":"1","kind":"other","title":"x","rawInput":{"of":"x"},"_meta":{"claudeCode":{"toolName":"Read"}}}`: "allowed",
		`{"toolCallId":"1","kind":"execute","title":"Read all","rawInput":{"command":["make","test"]}}`:                  "allowed",
		codexCall("1", "make test"):                       "allowed",
		codexCall("1", "env CI=1 make test && make test"): "allowed",
	} {
		l, end := ask(call)
		require.Equal(t, "completed", end.Data.State, "%s: %s", call, end.Raw)
		assert.Equal(t, said, c.Said(l.SessionID), call)
	}
	for _, call := range []string{
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"command":"rm -rf x","Command":"make test"}}`,
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"command":"make test","Command":"rm -rf x"}}`,
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"command":"rm -rf x","command":"make test"}}`,
		`{"toolCallId":"1","kind":"other","title":"Read all","rawInput":{"command":"rm -rf x"}}`,
		codexCall("1", "rm -rf x"),
		codexCall("1", "make test && bash -c \"'rm' -rf x\""),
	} {
		l, end := ask(call)
		require.Equal(t, "completed", end.Data.State, "%s: %s", call, end.Raw)
		assert.Equal(t, "refused", c.Said(l.SessionID), call)
	}
	for call, odd := range map[string]bool{
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"command":"touch x","Command":"make test"}}`: true,
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"command":"touch x","command":"make test"}}`: true,
		`{"toolCallId":"1","kind":"execute","title":"make test","rawInput":{"Command":"make test"}}`:                     true,
		`{"toolCallId":"1","kind":"other","title":"Read all","rawInput":{"command":"touch x"}}`:                          false,
		`{"toolCallId":"1","kind":"execute","title":"Read all","rawInput":{"command":["make",["test"]]}}`:                false,
		codexCall("1", "make test; eval ls"): false,
		// The call does not name the file to read.
		`{"toolCallId":"1","kind":"other","title":"x","rawInput":{},"_meta":{"claudeCode":{"toolName":"Read"}}}`: false,
	} {
		l, question := ask(call)
		require.Equal(t, "new_approval", question.Type, "%s: Duet asked no question: %s", call, c.Said(l.SessionID))
		shown := s.Run("approvals", "show", question.Data.ApprovalID)
		if strings.Contains(call, "eval") {
			assert.Contains(t, shown, "\n? $ make test; eval ls\n", "the question shows the script")
		}
		if odd {
			assert.Contains(t, string(question.Raw), "input_ambiguity")
			assert.Contains(t, shown, "programs may read this input differently", call)
			_, err := s.Command("approvals", "allow", question.Data.ApprovalID, "--scope", "session")
			assert.ErrorContains(t, err, "once", "an ambiguous input cannot become a rule")
		} else {
			assert.NotContains(t, string(question.Raw), "input_ambiguity")
		}
		s.Run("approvals", "approve", question.Data.ApprovalID)
		c.Completes(l)
		assert.Equal(t, "allowed", c.Said(l.SessionID))
	}
	c.Leave()
}

// An agent without tool input describes its command in the content of the permission request. Duet
// shows and stores that description. No allow rule matches it, every deny rule of the tool does,
// and it cannot become a rule.
func TestPermissionWithoutInput(t *testing.T) {
	t.Parallel()
	const call = `{"toolCallId":"1","kind":"execute","title":"Bash","content":[{"type":"content","content":{"type":"text","text":"Running: touch after.txt"}}]}`
	asking, _, _ := strings.Cut(askingAgent, "[[rules]]")
	for name, c := range map[string]struct{ rules, said string }{
		"denied by a rule for one command": {"[[rules]]\neffect = \"deny\"\ntool = \"Bash\"\ncommand = \"rm *\"\n", "refused"},
		"allowed by no rule":               {"[[rules]]\neffect = \"allow\"\ntool = \"Bash\"\n[[rules]]\neffect = \"allow\"\ntool = \"*\"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			s.Agents(asking + c.rules)
			require.NoError(t, os.WriteFile(filepath.Join(s.Root, "call"), []byte(call), 0o600))
			editor := s.Open()
			if c.said != "" {
				l := editor.Launch("do it", "asking")
				editor.Completes(l)
				assert.Equal(t, c.said, editor.Said(l.SessionID))
				editor.Leave()
				return
			}
			for range 2 { // an approval decides one question
				l := editor.Launch("do it", "asking")
				question := editor.Await("a question", func(e e2e.Event) bool { return e.Data.SessionID == l.SessionID && e.Type == "new_approval" })
				assert.Contains(t, string(question.Raw), `"details":"Running: touch after.txt"`)
				assert.NotContains(t, string(question.Raw), "rule_preview")
				shown := s.Run("approvals", "show", question.Data.ApprovalID)
				assert.Contains(t, shown, "Running: touch after.txt")
				for _, scope := range []string{"session", "project"} {
					s.Refuses("does not report the tool's input", "approvals", "approve", question.Data.ApprovalID, "--scope", scope)
				}
				s.Run("approvals", "approve", question.Data.ApprovalID)
				editor.Completes(l)
				assert.Equal(t, "allowed", editor.Said(l.SessionID))
			}
			editor.Leave()
		})
	}
}

// judgingAgent starts in a mode in which a model approves tool calls, as codex-acp 2.6 does. There
// it runs "touch denied-file" without permission. In its mode ASKS it requests permission.
const judgingAgent = `
[agents.judging]
driver = "acp"
command = ["/bin/sh", "-c", '''
mode=agent
while read -r line; do
	id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
	case $line in
	*'"method":"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) result='{"sessionId":"s","modes":{"currentModeId":"agent","availableModes":[{"id":"ASKS","name":"Asks"},{"id":"agent","name":"Auto review"}]}}' ;;
	*'"modeId":"ASKS"'*) mode=ASKS result='{}' ;;
	*'"method":"session/prompt"'*)
		chosen=run
		if [ $mode = ASKS ]; then
			printf '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"1","kind":"execute","title":"touch denied-file","rawInput":{"command":"touch denied-file"}},"options":[{"optionId":"run","name":"Yes","kind":"allow_once"},{"optionId":"leave","name":"No","kind":"reject_once"}]}}\n'
			read -r answer
			case $answer in *'"run"'*) ;; *) chosen=leave ;; esac
		fi
		[ $chosen = leave ] || touch denied-file
		result='{"stopReason":"end_turn"}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']

[[rules]]
effect = "deny"
tool = "Bash"
command = "touch denied*"
`

// In each of its modes, Duet selects an agent mode that requests permission, so that deny rules
// apply. If Duet knows no such mode of the agent, it warns the user.
func TestRulesHoldInTheModesOfAgents(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "default", "acceptEdits", "bypassPermissions"} {
		t.Run("known "+mode, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t), strings.ReplaceAll(judgingAgent, "ASKS", "read-only"))
			said := s.RunIn(s.Root, "prompt", "--mode", mode, "--agent", "judging", "do it")
			assert.NotContains(t, said, "without asking")
			assert.Contains(t, said, "denied by rule=user")
			assert.NoFileExists(t, filepath.Join(s.Root, "denied-file"))
		})
	}
	t.Run("unknown", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), strings.ReplaceAll(judgingAgent, "ASKS", "careful"))
		c := s.Open()
		l := c.Launch("do it", "judging")
		reported := c.Await("a warning or the end", func(e e2e.Event) bool {
			return e.Data.SessionID == l.SessionID && (e.Type == "task_error" || e.Type == "session_status_changed" && e2e.Ended(e.Data.State))
		})
		assert.Contains(t, string(reported.Raw), `judging is in its mode \"Auto review\" (agent), in which it may act without asking: rules and questions hold only for what it asks about`)
		c.Completes(l)
		c.Leave()
		said := s.RunIn(s.Root, "prompt", "--agent", "judging", "do it")
		assert.Contains(t, said, `in which it may act without asking`)
	})
}

// The user answers a question of a killed agent. The resumed agent asks the same question with new
// ids and a new time, and Duet gives it that answer.
func TestAnAgentThatAsksTheSameAgainIsAnswered(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), askingAgent)
	asks := func(call string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, "call"), []byte(call), 0o600))
	}
	asks(codexCall("1", "touch x"))
	c := s.Open()
	l := c.Launch("do it", "asking")
	c.Await("the question", func(e e2e.Event) bool { return e.Type == "new_approval" })
	c.Crash()
	asks(strings.NewReplacer("01a2026c-0176", "01a2026d-0001", "1795336962508", "1795336999999").Replace(codexCall("2", "touch x")))
	c = s.Open()
	var open []string
	for id, a := range c.Pending() {
		assert.True(t, a.Stale)
		open = append(open, id)
	}
	require.Len(t, open, 1)
	c.Approve(open[0])
	thread := c.Approval(open[0]).ThreadID
	end := c.Await("the end of the resumed turn, or another question", func(e e2e.Event) bool {
		return e.Type == "new_approval" && e.Data.ApprovalID != open[0] || e.Type == "session_status_changed" && e.Data.ThreadID == thread && e.Data.State == "completed"
	})
	require.Equal(t, "completed", end.Data.State, "Duet asked again: %s", end.Raw)
	assert.Contains(t, c.Said(end.Data.SessionID), "allowed")
	assert.NotEqual(t, l.SessionID, end.Data.SessionID)
	c.Leave()
}

// carelessExecutor is a third-party executor. It reports a message, sends the line in the file ODD
// with its own task id and token, reports another message and ends. If the line is a request, it
// first waits for the response, because the hub serves requests concurrently.
const carelessExecutor = `
[agents.careless]
driver = "executor"
command = ["/bin/sh", "-c", '''
ODD=%s
while read -r line <&3; do
	case $line in *'"method":"execute_prompt"'*) ;; *) continue ;; esac
	field() { printf %s "$line" | sed 's/.*"'$1'":"*\([^",}]*\).*/\1/'; }
	id=$(field id) token=$(field session_token) task=$(field task_id)
	say() { printf '{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"%s","task_id":"%s","sequence":0,"event_type":"content_block_delta","event_data":{"delta":{"text":"%s"}}}}\n' "$token" "$task" "$1" >&3; }
	say before
	sed "s/TOKEN/$token/; s/TASK/$task/" "$ODD" >&3
	if grep -q '"id":7' "$ODD"; then
		while read -r line <&3; do
			case $line in *'"id":7'*) break ;; esac
		done
	fi
	say after
	printf '{"jsonrpc":"2.0","id":%s,"result":{"status":"completed","message_count":1}}\n' "$id" >&3
done
''']
`

// A rejected report fails the turn with OUTPUT_MISSING. The hub keeps the other messages of the turn.
func TestATurnOfWhichReportsAreRefused(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Agents(strings.Replace(carelessExecutor, "%s", filepath.Join(s.Root, "odd"), 1))
	c := s.Open()
	for odd, state := range map[string]string{
		``: "completed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"TASK","sequence":0,"event_type":"content_block_delta","event_data":{"delta":{"text":" and "}}}}`: "completed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"wrong","task_id":"TASK","sequence":0,"event_type":"content_block_delta","event_data":{"delta":{"text":"lost"}}}}`:  "failed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"other","sequence":0,"event_type":"content_block_delta","event_data":{"delta":{"text":"lost"}}}}`: "failed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"TASK","sequence":0,"event_type":"content_block_delta","event_data":{"delta":"lost"}}}`:           "failed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"TASK","sequence":"one","event_type":"content_block_delta","event_data":{"delta":{"text":"x"}}}}`: "failed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"TASK","sequence":0,"event_type":"tool_call","event_data":[]}}`:                                   "failed",
		`{"jsonrpc":"2.0","method":"report_message","params":{"session_token":"TOKEN","task_id":"TASK",`:                                                                                          "failed",
		`{"jsonrpc":"2.0","id":7,"method":"request_permission","params":{"session_token":"wrong","task_id":"TASK","tool_name":"Bash","tool_input":{"command":"ls"}}}`:                             "failed",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, "odd"), []byte(odd+"\n"), 0o600))
		l := c.Launch("do it", "careless")
		end := c.AwaitEnd(l.SessionID)
		assert.Equal(t, state, end.Data.State, "%s: %s", odd, end.Raw)
		said := c.Said(l.SessionID)
		assert.Contains(t, said, "before", odd)
		assert.Contains(t, said, "after", odd)
		if state == "failed" {
			assert.Equal(t, "OUTPUT_MISSING", end.Data.ErrorCode, odd)
			assert.Contains(t, end.Data.Error, "output is missing", odd)
		}
	}
	c.Leave()
}
