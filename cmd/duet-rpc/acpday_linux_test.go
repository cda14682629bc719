//go:build clients

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/require"
)

// An editorDay is an editor made with the Go SDK that has a session with a real agent.
type editorDay struct {
	*goEditor
	site *agentSite
	a    dayAgent
	id   acp.SessionId
}

// An editorScenario is what an editor does with an agent. play requires that it goes as it
// should, and says so, in words for a table.
type editorScenario struct {
	name string
	play func(*testing.T, *editorDay) string
}

// They follow each other in one session.
var editorScenarios = []editorScenario{
	{"A prompt", editorPrompts},
	{"A command, with permission", editorAllows},
	{"`session/set_mode`", editorSetsMode},
	{"A model is chosen", editorChoosesModel},
	{"An image in the prompt", editorShowsImage},
	{"`session/cancel`", editorCancels},
	{"The editor is killed with a permission open; another one loads the session and answers", editorDies},
}

// Each of the agents that are not tested briefly, behind `duet-rpc acp`, and an editor that is
// not part of Duet. What came of it is the table in docs/acp.md.
func TestACPAgentDay(t *testing.T) {
	t.Parallel()
	agents := slices.DeleteFunc(dayAgents(), func(a dayAgent) bool { return a.briefly })
	var mu sync.Mutex // guards reported
	reported := make(map[string]string)
	t.Run("agents", func(t *testing.T) {
		for _, a := range agents {
			t.Run(a.folder, func(t *testing.T) {
				t.Parallel()
				s := a.site(t)
				d := &editorDay{goEditor: s.goEditor(t, "--agent", s.agent), site: s, a: a}
				opened, err := d.NewSession(t.Context(), acp.NewSessionRequest{Cwd: s.root, McpServers: []acp.McpServer{}})
				require.NoError(t, err)
				d.id = opened.SessionId
				for _, scenario := range editorScenarios {
					if !t.Run(scenario.name, func(t *testing.T) {
						cell := scenario.play(t, d)
						t.Log(cell)
						mu.Lock()
						defer mu.Unlock()
						reported[scenario.name+a.folder] = cell
					}) {
						return
					}
				}
			})
		}
	})
	if t.Failed() || len(reported) < len(agents)*len(editorScenarios) {
		t.Log("not all of them had their day, so the table is not compared")
		return
	}
	testkit.GoldenBytes(t, "../../docs/acp.md", withEditorTable(t, agents, reported))
}

// withEditorTable is the page with the table as it is now.
func withEditorTable(t testing.TB, agents []dayAgent, reported map[string]string) []byte {
	const begin, end = "<!-- made by TestACPAgentDay -->\n", "<!-- its end -->\n"
	page, err := os.ReadFile("../../docs/acp.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	var b strings.Builder
	b.WriteString(before + begin + "| |")
	for _, a := range agents {
		fmt.Fprintf(&b, " %s %s |", a.packaged, a.version(t))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(agents)) + "\n")
	for _, s := range editorScenarios {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, a := range agents {
			fmt.Fprintf(&b, " %s |", reported[s.name+a.folder])
		}
		b.WriteString("\n")
	}
	return []byte(b.String() + end + after)
}

// ends has a turn, and requires why it has stopped.
func (d *editorDay) ends(t *testing.T, why acp.StopReason, blocks ...acp.ContentBlock) {
	t.Helper()
	r, err := d.Prompt(t.Context(), acp.PromptRequest{SessionId: d.id, Prompt: blocks})
	require.NoError(t, err)
	require.Equal(t, why, r.StopReason)
}

// asks waits for the question of a turn, which is not to end before.
func (d *editorDay) asks(t *testing.T, ended <-chan acp.StopReason) (q acp.RequestPermissionRequest) {
	t.Helper()
	select {
	case q = <-d.asked:
	case why := <-ended:
		d.mu.Lock()
		defer d.mu.Unlock()
		require.Fail(t, "it has not asked", "the turn ended: %q; it had said %q", why, d.said.String())
	}
	return q
}

func editorPrompts(t *testing.T, d *editorDay) string {
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: good morning"))
	d.heard("good morning")
	return "yes"
}

func editorAllows(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "run: touch made")
	q := d.asks(t, ended)
	require.NotNil(t, q.ToolCall.Title)
	require.Contains(t, *q.ToolCall.Title, "touch made")
	require.False(t, d.site.exists("made"))
	d.allows(q)
	require.Equal(t, acp.StopReasonEndTurn, <-ended)
	require.True(t, d.site.exists("made"))
	return "yes"
}

// settings are what the session is set to and can be set to, as a client learns it that
// resumes it.
func (d *editorDay) settings(t *testing.T) (*acp.SessionModeState, []acp.SessionConfigOption) {
	t.Helper()
	r, err := d.ResumeSession(t.Context(), acp.ResumeSessionRequest{SessionId: d.id, Cwd: d.site.root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	return r.Modes, r.ConfigOptions
}

func editorSetsMode(t *testing.T, d *editorDay) string {
	modes, _ := d.settings(t)
	require.NotNil(t, modes)
	before := modes.CurrentModeId
	const chosen acp.SessionModeId = "plan"
	require.True(t, slices.ContainsFunc(modes.AvailableModes, func(m acp.SessionMode) bool { return m.Id == chosen }), "%v", modes)
	require.NotEqual(t, chosen, before)
	for _, mode := range []acp.SessionModeId{chosen, before} {
		_, err := d.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: d.id, ModeId: mode})
		require.NoError(t, err)
		d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: in another mode"))
		modes, _ = d.settings(t)
		require.Equal(t, mode, modes.CurrentModeId)
	}
	return fmt.Sprintf("yes: %s, and back to %s", chosen, before)
}

func editorChoosesModel(t *testing.T, d *editorDay) string {
	set := func(value string) error {
		_, err := d.SetSessionConfigOption(t.Context(), acp.SetSessionConfigOptionRequest{ValueId: &acp.SetSessionConfigOptionValueId{
			SessionId: d.id, ConfigId: "model", Value: acp.SessionConfigValueId(value),
		}})
		return err
	}
	require.ErrorContains(t, set("no-such-model"), d.a.model, "those that it has are listed")
	require.NoError(t, set(d.a.model))
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: from another model"))
	_, options := d.settings(t)
	for _, o := range options {
		if o.Select != nil && o.Select.Id == "model" {
			require.Equal(t, d.a.model, string(o.Select.CurrentValue))
			return "yes"
		}
	}
	require.Fail(t, "it has no models", "%v", options)
	return ""
}

func editorShowsImage(t *testing.T, d *editorDay) string {
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: seen"), acp.ImageBlock(onePoint, "image/png"))
	require.NotEmpty(t, d.site.model.Images())
	return "yes"
}

func editorCancels(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "talk:")
	d.heard("and on ")
	require.NoError(t, d.Cancel(t.Context(), acp.CancelNotification{SessionId: d.id}))
	require.Equal(t, acp.StopReasonCancelled, <-ended)
	d.ends(t, acp.StopReasonEndTurn, acp.TextBlock("say: still here"))
	d.heard("still here")
	return "yes"
}

func editorDies(t *testing.T, d *editorDay) string {
	ended := d.prompts(d.id, "run: touch later")
	d.asks(t, ended)
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGKILL))
	<-d.goEditor.ended
	require.Empty(t, <-ended)
	require.False(t, d.site.exists("later"))

	other := d.site.goEditor(t)
	_, err := other.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: d.id, Cwd: d.site.root, McpServers: []acp.McpServer{}})
	require.NoError(t, err)
	other.heard("good morning")
	q := other.question()
	require.Equal(t, d.id, q.SessionId)
	other.allows(q)
	r, err := other.Prompt(t.Context(), acp.PromptRequest{SessionId: d.id, Prompt: []acp.ContentBlock{acp.TextBlock("say: good night")}})
	require.NoError(t, err) // it waits for its turn
	require.Equal(t, acp.StopReasonEndTurn, r.StopReason)
	require.True(t, d.site.exists("later"))
	other.heard("good night")
	return "yes"
}
