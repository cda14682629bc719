package turn

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

var aForm = hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.HumanContact, Title: "What?"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitForm, Schema: json.RawMessage(
	`{"properties":{"colour":{"type":"string","enum":["red","green"],"default":"green"},"count":{"type":"integer","minimum":1},"note":{"type":"string"}},"required":["count"]}`)}}

func TestFormIsAskedFieldByField(t *testing.T) {
	send := func(content string) protocol.DecisionParams {
		return protocol.DecisionParams{Decision: "respond", Content: json.RawMessage(content)}
	}
	for _, c := range []struct {
		lines []string
		want  protocol.DecisionParams
	}{
		{[]string{"", "3", "", "y"}, send(`{"colour":"green","count":3}`)},
		{[]string{"1", "3", "hello", "yes"}, send(`{"colour":"red","count":3,"note":"hello"}`)},
		{[]string{"pink", "red", "0", "", "2", "::none", "y"}, send(`{"colour":"red","count":2,"note":":none"}`)},
		{[]string{":none", "2", ":back", "4", "", "y"}, send(`{"count":4}`)},
		{[]string{"red", ":none", "5", "x", "b", ":none", "maybe", "y"}, send(`{"colour":"red","count":5}`)},
		{[]string{"red", ":decline"}, decline},
		{[]string{":cancel"}, dismiss},
		{[]string{"", "3", "", "n"}, decline},
		{[]string{"", "3", "", "c"}, dismiss},
	} {
		a, q, _ := asking(aForm)
		assert.Equal(t, c.want, decides(t, a, q, c.lines...), "%q", c.lines)
	}
	a, q, side := asking(aForm)
	assert.Equal(t, "colour (one of red, green) [green]: ", a.promptFor(q))
	decides(t, a, q, "red", "many", "7", "", "y")
	assert.Contains(t, side.String(), `— count: expected a whole number of at least 1, received "many"`)
	a, q, side = asking(aForm)
	for _, line := range []string{"red", "7", ""} {
		_, again := a.decisionOf(q, typed{text: line})
		assert.True(t, again)
	}
	assert.Equal(t, "Send this? [y] Send, [b] Back, [n] Decline, [c] Cancel: ", a.promptFor(q))
	assert.Contains(t, side.String(), "  colour: red\n  count: 7\n  note: —\n", "the form shows its values before the user sends them")
	d, again := a.decisionOf(q, typed{err: errors.New("closed")})
	assert.False(t, again)
	assert.Equal(t, dismiss, d, "no user has declined")
}

// One question takes one answer: a choice, or the user's own words. claude-agent-acp sends it as two
// fields with technical names.
func TestAQuestionTakesOneAnswer(t *testing.T) {
	single := `"question_0":{"type":"string","oneOf":[{"const":"Postgres","title":"Postgres","description":"for many users"},{"const":"SQLite","title":"SQLite"}]},"question_0_custom":{"type":"string","title":"Other","description":"Type your own answer."}`
	several := `"question_1":{"type":"array","title":"Extras","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}},"question_1_custom":{"type":"string","title":"Other"}`
	of := func(fields string) hubclient.Approval {
		q := aForm
		q.Title, q.Schema = "Which database?", json.RawMessage(`{"type":"object","properties":{`+fields+`}}`)
		return q
	}
	for _, c := range []struct {
		fields string
		lines  []string
		want   string
	}{
		{single, []string{"2"}, `{"question_0":"SQLite"}`},
		{single, []string{"", "9", "postgres"}, `{"question_0":"Postgres"}`},
		{single, []string{"Redis, and a file"}, `{"question_0_custom":"Redis, and a file"}`},
		{single, []string{":none"}, `{}`},
		{`"sure":{"type":"boolean","default":true}`, []string{""}, `{"sure":true}`},
		{single + "," + several, []string{"mine", "1,2", "y"}, `{"question_0_custom":"mine","question_1":["a","b"]}`},
		{single + "," + several, []string{"mine", ":back", "1", "all", "b", "none", "y"}, `{"question_0":"Postgres","question_1_custom":"none"}`},
	} {
		a, q, _ := asking(of(c.fields))
		assert.Equal(t, protocol.DecisionParams{Decision: "respond", Content: json.RawMessage(c.want)}, decides(t, a, q, c.lines...), "%q", c.lines)
	}
	a, q, side := asking(of(single))
	q.sheet = sheetOf(q.Approval, "/", false)
	a.show(q)
	assert.Equal(t, "Answer (one of Postgres, SQLite, or your own words): ", a.promptFor(q))
	decides(t, a, q, "3", "1")
	assert.Contains(t, side.String(), "  Answer: one of Postgres, SQLite, or your own words, or nothing\n    1  Postgres\n       for many users\n    2  SQLite\n")
	assert.Contains(t, side.String(), `— expected one of Postgres, SQLite, received "3"`)
	assert.NotContains(t, side.String(), "question_0")
	text := strings.Builder{}
	for _, line := range Sheet(q.Approval, "/").Whole() {
		text.WriteString(line.Text + "\n")
	}
	assert.Contains(t, text.String(), "Other (question_0_custom): a text", "a command names the field")
}

func TestLinkNeedsUserConsent(t *testing.T) {
	link := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.HumanContact, Title: "Sign in"}, Elicitation: protocol.Elicitation{
		Mode: domain.ElicitURL, URL: "https://a@xn--e.example/\u202ex", URLHost: "xn--e.example", URLWarnings: []string{"look"},
	}}
	for line, want := range map[string]protocol.DecisionParams{"y": {Decision: "respond", Comment: "agreed to open it"}, "n": decline, "c": dismiss} {
		a, q, _ := asking(link)
		assert.Equal(t, want, decides(t, a, q, "", "what", line))
	}
	a, q, side := asking(link)
	a.show(q)
	assert.Contains(t, side.String(), "  leads to xn--e.example\n  careful: look\n")
	assert.NotContains(t, side.String(), "\u202e", "the form escapes invisible characters")
}

func TestElicitationWithoutUser(t *testing.T) {
	link := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitURL}}
	proposed := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9"}, Elicitation: protocol.Elicitation{Mode: domain.ElicitForm, Schema: json.RawMessage(`{"properties":{"a":{"type":"boolean","default":true}},"required":["a"]}`)}}
	for _, c := range []struct {
		o    Options
		q    hubclient.Approval
		want protocol.DecisionParams
	}{
		{Options{Yes: true}, proposed, protocol.DecisionParams{Decision: "respond", Content: json.RawMessage(`{"a":true}`)}},
		{Options{Yes: true}, aForm, dismiss},
		{Options{Yes: true}, link, dismiss},
		{Options{Deny: true}, aForm, protocol.DecisionParams{Decision: "deny", Comment: "declined by --deny"}},
		{Options{}, aForm, dismiss},
	} {
		note, d := (&asker{keyboard: new(keyboard), Options: c.o}).elicitedAlone(c.q)
		assert.Equal(t, c.want, d)
		assert.NotEmpty(t, note)
	}
}
