package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/require"
)

// Whole exchanges with an editor, as testdata/acp has them: a line for each message,
// those of the editor behind "editor: ". Pieces of one message that came in several
// updates are one there, since how many there are is a matter of time.
func TestACPGoldenExchanges(t *testing.T) {
	t.Parallel()
	for name, converse := range map[string]func(*testing.T, *site, *acpClient){
		"turn": func(_ *testing.T, s *site, c *acpClient) {
			session := c.begin(s.root)
			c.awaitUpdate("available_commands_update")
			c.prompt(session, "Edit it")
			c.call("session/close", object{"sessionId": session}, nil)
		},
		"load": func(t *testing.T, s *site, c *acpClient) {
			first := s.editor(allowing)
			session := first.begin(s.root)
			require.Equal(t, "end_turn", first.prompt(session, "Edit it"))
			first.quit()
			c.load(session, s.root)
			c.awaitUpdate("available_commands_update")
			c.call("session/list", object{"cwd": s.root}, nil)
			c.call("session/delete", object{"sessionId": session}, nil)
			c.result(c.ask("session/load", opening(session, s.root)))
		},
		"refusals": func(_ *testing.T, s *site, c *acpClient) {
			session := c.begin(s.root)
			c.awaitUpdate("available_commands_update")
			c.result(c.ask("session/prompt", promptOf("nobody's", "Edit it")))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": "Edit it"}))
			c.result(c.ask("session/set_mode", object{"sessionId": session, "modeId": "yolo"}))
			c.result(c.ask("session/new", object{"cwd": "here", "mcpServers": []any{}}))
			c.result(c.ask("session/new", object{"cwd": filepath.Join(s.root, "nowhere"), "mcpServers": []any{}}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "nobody"}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "colour", "value": "red"}))
			c.result(c.ask("session/load", object{"sessionId": "nobody's", "cwd": s.root, "mcpServers": []any{}}))
			c.result(c.ask("session/fork", object{"sessionId": "nobody's", "cwd": s.root}))
			c.result(c.ask("session/delete", object{"sessionId": "nobody's"}))
			c.result(c.ask("session/close", object{"sessionId": "nobody's"}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{}}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "image", "mimeType": "image/png"}}}))
			c.result(c.ask("session/prompt", promptOf(session, "quiet fail")))
			c.result(c.ask("authenticate", object{"methodId": "nothing"}))
			c.result(c.ask("session/dance", object{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withoutDaemons(t, newSite(t))
			c := s.editor(allowing)
			converse(t, s, c)
			c.quit()
			testkit.GoldenBytes(t, filepath.Join("../../testdata/acp", name+".txt"), c.written(s.root))
		})
	}
}

// awaitUpdate waits for an update of a kind.
func (c *acpClient) awaitUpdate(kind string) {
	c.t.Helper()
	c.until(kind, func() bool {
		return slices.ContainsFunc(c.updates, func(u acpUpdate) bool { return u.Kind == kind })
	})
}

// written is the exchange as golden files have it.
func (c *acpClient) written(root string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	open := "" // the message that the line before is a piece of
	for _, line := range c.exchange {
		piece, text := pieceOf(line)
		if piece != "" && piece == open {
			lines[len(lines)-1] = withText(lines[len(lines)-1], text)
			continue
		}
		open = piece
		if n := len(lines); n > 0 && isSettings(line) && isSettings(lines[n-1]) { // they are sent whole, as they become known
			lines = lines[:n-1]
		}
		lines = append(lines, line)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", root, "/project")
	text = numbered(anID, "<id %d>", text)
	text = numbered(aMessage, `"msg-%d"`, text) // they count pieces, too
	return []byte(aTime.ReplaceAllString(text, "<time>"))
}

// numbered has what matches counted in the order in which it comes.
func numbered(pattern *regexp.Regexp, name, text string) string {
	seen := map[string]string{}
	return pattern.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf(name, len(seen)+1)
		}
		return seen[id]
	})
}

var (
	aMessage = regexp.MustCompile(`"msg-\d+"`)
	anID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aTime    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// A chunkLine is the line of an update that has a piece of a text.
type chunkLine struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  struct {
		SessionID string                     `json:"sessionId"`
		Update    map[string]json.RawMessage `json:"update"`
	} `json:"params"`
}

// pieceOf says which message a line has a piece of, or "".
func pieceOf(line string) (message, text string) {
	var l chunkLine
	var content struct{ Type, Text string }
	if json.Unmarshal([]byte(line), &l) != nil || json.Unmarshal(l.Params.Update["content"], &content) != nil || content.Type != "text" {
		return "", ""
	}
	return string(l.Params.Update["sessionUpdate"]) + string(l.Params.Update["messageId"]), content.Text
}

func isSettings(line string) bool {
	var l chunkLine
	return json.Unmarshal([]byte(line), &l) == nil && string(l.Params.Update["sessionUpdate"]) == `"config_option_update"`
}

// withText is a line with more text.
func withText(line, more string) string {
	_, text := pieceOf(line)
	before, _ := json.Marshal(text)
	after, _ := json.Marshal(text + more)
	return string(bytes.Replace([]byte(line), before, after, 1))
}
