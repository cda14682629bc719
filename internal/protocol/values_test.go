package protocol

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestOptionsAreToldAsTheyWereGiven(t *testing.T) {
	for _, given := range []string{
		``, `[]`, `[{}]`, `[{"option_id":"o","name":"Yes","kind":"allow_once"}]`,
		`[{"option_id":"o","name":"Ask the boss","kind":"ask_the_boss","_meta":{"a":1.50},"hint":null},{"name":"other"}]`,
	} {
		options, err := ReadOptions(json.RawMessage(given))
		require.NoError(t, err, given)
		var sent struct{ Options json.RawMessage }
		require.NoError(t, json.Unmarshal(encode(&ApprovalOpenedEvent{Options: options}), &sent))
		assert.Equal(t, given, string(sent.Options))
	}
	for _, none := range []string{`7`, `{}`, `["a"]`, `[{"name":7}]`} {
		_, err := ReadOptions(json.RawMessage(none))
		assert.Error(t, err, none)
	}
}

func TestWhatClientsSeeOfAnItem(t *testing.T) {
	text := "<b>"
	for want, data := range map[string]domain.ItemData{
		``:   nil,
		`{}`: domain.ToolDetails{},
		`{"paths":["/p"],"diffs":[{"path":"/p","old_text":"\u003cb\u003e","new_text":""},{"path":"/n","new_text":"n"}],"terminal":"t"}`: domain.ToolDetails{
			Paths: []string{"/p"}, Diffs: []domain.Diff{{Path: "/p", OldText: &text}, {Path: "/n", NewText: "n"}}, Terminal: "t",
		},
		`{"_meta":{"n":1}}`: domain.MessageContent{Meta: json.RawMessage(`{"n":1}`)},
		`{"entries":[]}`:    domain.Plan{},
		`{"entries":[{"content":"c","priority":"low","status":"s"},{"content":""}]}`: domain.Plan{Entries: []domain.PlanEntry{{Content: "c", Priority: "low", Status: "s"}, {}}},
		`{"path":"/p","added":0,"removed":2,"binary":true}`:                          domain.FileNote{Path: "/p", Removed: 2, Binary: true},
		`{"approval_id":"a","type":"t","decision":"d","title":"i","response_text":"r","decided_by":"b","input_was_edited":true,"delivery":"y"}`: domain.ApprovalNote{
			ApprovalID: "a", Type: "t", Decision: "d", Title: "i", Response: "r", DecidedBy: "b", Edited: true, Delivery: "y",
		},
	} {
		assert.Equal(t, want, string(ItemData(data)))
	}
}

// A state has one word for people.
func TestStatesHaveOneWord(t *testing.T) {
	for _, c := range []struct {
		state domain.State
		word  string
	}{
		{"queued", "queued"},
		{"starting", "starting"},
		{"running", "running"},
		{"waiting_input", "waiting for you"},
		{"interrupting", "interrupting"},
		{"completed", "completed"},
		{"failed", "failed"},
		{"timed_out", "timed out"},
		{"cancelled", "interrupted"},
		{"interrupted", "interrupted"},
	} {
		assert.Equal(t, c.word, Turn{State: c.state}.StateInWords())
		if c.state.Ended() {
			assert.Equal(t, c.word, Turn{State: c.state}.Outcome())
		}
	}
}

// A clock that is set during a turn gives no negative duration.
func TestDurationOfATurn(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		turn domain.Turn
		want int64
	}{
		{domain.Turn{Started: at, Ended: at.Add(time.Second)}, 1000},
		{domain.Turn{Started: at, Ended: at.Add(time.Hour), ClockOff: time.Hour - time.Second}, 1000},
		{domain.Turn{Started: at, Ended: at.Add(-time.Hour), ClockOff: -time.Hour - time.Second}, 1000},
		{domain.Turn{Started: at, Ended: at.Add(-time.Hour)}, 0},
	} {
		assert.Equal(t, c.want, *DurationMS(c.turn))
	}
	assert.Nil(t, DurationMS(domain.Turn{Started: at}))
}
