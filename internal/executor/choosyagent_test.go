//go:build unix

package executor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A choosyAgent is an agent with its own modes, models, options and commands. Its kind selects
// how it reports them:
//
//	choosy         modes as modes; the model as an option, in groups
//	choosy-older   modes and models as such, no options
//	choosy-mode    the mode as an option, too
//	choosy-plan    as claude does where it may not bypass: it has default and plan, and is in plan
//	choosy-plain   nothing
//	choosy-auto    it begins in auto, and reports its mode just before it accepts another
//	choosy-resume  as choosy; it resumes a session and says nothing of it
type choosyAgent struct {
	kind                 string
	mode, model, thought string
	fast                 bool
	reported             int // titles
}

type object = map[string]any

func named(id, name, description string) object {
	return object{"id": id, "name": name, "description": description, "_meta": object{"of": id}}
}

func value(id string) object { return object{"value": id, "name": strings.ToUpper(id)} }

func (c *choosyAgent) modes() object {
	return object{"currentModeId": c.mode, "availableModes": []any{named("ask", "Ask", "Asks first"), named("code", "Code", "Edits")}}
}

func (c *choosyAgent) options() []any {
	if c.kind == "choosy-older" {
		return nil
	}
	list := []any{
		object{"type": "select", "id": "llm", "name": "Model", "category": "model", "currentValue": c.model, "options": []any{
			object{"group": "house", "name": "The house's", "options": []any{value("small"), value("big")}},
			object{"group": "other", "name": "Others", "options": []any{value("alias")}},
		}},
		object{"type": "select", "id": "thought", "name": "Thinking", "category": "thought_level", "currentValue": c.thought, "options": []any{value("low"), value("high")}},
		object{"type": "boolean", "id": "fast", "name": "Fast", "currentValue": c.fast},
		object{"type": "of-the-future", "id": "colour", "name": "Colour", "currentValue": object{"r": 1}, "palette": "x"},
	}
	if c.kind == "choosy-mode" {
		list = append(list, object{"type": "select", "id": "mode", "name": "Mode", "category": "mode", "currentValue": c.mode, "options": []any{value("ask"), value("code")}})
	}
	return list
}

// serve handles requests about settings, and opens sessions.
func (c *choosyAgent) serve(a *acpAgent, m wire) bool {
	switch m.Method {
	case "initialize":
		capabilities := object{}
		if c.kind == "choosy-resume" {
			capabilities["sessionCapabilities"] = object{"resume": object{}}
		}
		a.reply(m.ID, object{"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": object{"name": "choosy", "title": "Choosy", "version": "7"}})
	case "session/new":
		a.cwd = m.Params.CWD
		a.update(object{"sessionUpdate": "available_commands_update", "availableCommands": []any{
			object{"name": "review", "description": "Review it", "input": object{"hint": "what"}}, object{"name": "compact", "future": true},
		}})
		result := object{"sessionId": a.session, "modes": c.modes(), "configOptions": c.options()}
		if c.kind == "choosy-plan" {
			result["modes"] = object{"currentModeId": "plan", "availableModes": []any{object{"id": "default"}, object{"id": "plan"}}}
		}
		if c.kind == "choosy-auto" {
			result["modes"] = object{"currentModeId": "auto", "availableModes": []any{object{"id": "default"}, object{"id": "auto"}}}
		}
		if c.kind == "choosy-plain" {
			result = object{"sessionId": a.session, "modes": nil, "configOptions": "what"}
		}
		if c.kind == "choosy-older" {
			result["models"] = object{"currentModelId": c.model, "availableModels": []any{object{"modelId": "small", "name": "Small"}, object{"modelId": "big", "name": "Big"}}}
		}
		a.reply(m.ID, result)
	case "session/set_mode":
		switch m.Params.ModeID {
		case "ask", "code", "default", "plan", "auto":
			if c.kind == "choosy-auto" {
				a.update(object{"sessionUpdate": "current_mode_update", "currentModeId": c.mode})
			}
			c.mode = m.Params.ModeID
			a.text("[mode " + c.mode + "]")
			a.reply(m.ID, object{})
		default:
			a.fail(m.ID, "no such mode")
		}
	case "session/set_model":
		c.model = m.Params.ModelID
		a.text("[model " + c.model + "]")
		a.reply(m.ID, object{})
	case "session/set_config_option":
		switch m.Params.ConfigID {
		case "llm":
			if c.model = fmt.Sprint(m.Params.Value); c.model == "alias" {
				c.model = "big"
			}
			c.thought = "low" // depends on the model
		case "thought":
			c.thought = fmt.Sprint(m.Params.Value)
		case "mode":
			c.mode = fmt.Sprint(m.Params.Value)
		case "fast":
			c.fast = m.Params.Type == "boolean" && m.Params.Value == true
		}
		a.text(fmt.Sprintf("[%s %v]", m.Params.ConfigID, m.Params.Value))
		a.reply(m.ID, object{"configOptions": c.options()})
	case "session/prompt":
		words := strings.Fields(m.Params.Prompt[len(m.Params.Prompt)-1].Text)
		switch words[0] {
		case "switch":
			c.mode, c.model = "code", "big"
			a.update(object{"sessionUpdate": "current_mode_update", "currentModeId": "code"})
			a.update(object{"sessionUpdate": "config_option_update", "configOptions": c.options()})
			a.update(object{"sessionUpdate": "session_info_update", "title": "A title", "updatedAt": "2026-11-22T10:00:00Z"})
			a.update(object{"sessionUpdate": "session_info_update", "updatedAt": nil, "future": 1})
		case "later": // it sends one title after the other after its answer
			a.reply(m.ID, object{"stopReason": "end_turn"})
			most, _ := strconv.Atoi(words[1])
			if len(words) > 2 { // when the test has opened that pipe
				gate, _ := os.Open(filepath.Join(a.cwd, words[2]))
				defer gate.Close()
			}
			a.update(object{"sessionUpdate": "available_commands_update", "availableCommands": []any{object{"name": "late"}}})
			for range most {
				c.reported++
				a.update(object{"sessionUpdate": "session_info_update", "title": fmt.Sprintf("%06d", c.reported)})
			}
			a.update(object{"sessionUpdate": "current_mode_update", "currentModeId": "code"})
			return true
		case "listen": // it accepts settings until it is cancelled
			a.text("listening")
			for {
				n := a.read()
				if n.Method == "session/cancel" {
					a.reply(m.ID, object{"stopReason": "cancelled"})
					return true
				}
				c.serve(a, n)
			}
		default:
			return false
		}
		a.reply(m.ID, object{"stopReason": "end_turn"})
	default:
		return false
	}
	return true
}
