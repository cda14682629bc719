package config_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// triggerProblems returns the problems of a trigger in a file.
func triggerProblems(t *testing.T, text string) (problems []string) {
	t.Helper()
	w := newWorld(t)
	w.write(w.project, "[[triggers]]\n"+text)
	_, err := config.Load(w.sources())
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		for _, p := range wrong.Problems {
			problems = append(problems, p.Message)
		}
	} else {
		require.NoError(t, err)
	}
	return problems
}

func TestWhatIsWrongWithATriggerIsTold(t *testing.T) {
	const good = "id = \"t\"\naction = { type = \"notify\", message = \"m\" }\n"
	for text, want := range map[string]string{
		good + "type = \"turn.failed\"":                                "",
		good + "cron = \"0 9 * * 1-5\"\ntime_zone = \"Europe/Berlin\"": "",
		good:                           "source is missing in [[triggers]]",
		good + "cron = \"61 * * * *\"": "cron in [[triggers]]: expected",
		good + "cron = \"* * * * *\"\ntime_zone = \"Mars/Base\"": "time_zone in [[triggers]]: expected",
		good + "type = \"cron.fired\"\ntime_zone = \"UTC\"":      "time_zone in [[triggers]]: expected nothing, for a trigger that has no cron",
		good + "pattern = \"(\"":                                 "pattern in [[triggers]]: expected a regular expression",
		good + "type = \"turn.faild\"":                           `type in [[triggers]]: expected a type of event of docs/automation.md (did you mean turn.failed?), found "turn.faild"`,
		good + "type = \"turn.draft\"":                           "expected a type of event",
		good + "source = \"mail\"":                               `source in [[triggers]]: expected "watch", "schedule", "turn" or "approval", found "mail"`,
		good + "paths = [\"../x\"]":                              "value 1 of paths in [[triggers]]: expected a path below the project",
		good + "paths = [\"x\"]\ncron = \"* * * * *\"":           "cron in [[triggers]]: expected nothing, for a trigger that watches files",
		good + "extensions = [\"go\"]":                           "value 1 of extensions in [[triggers]]: expected the end of a file's name with its dot",
		good + "type = \"cron.fired\"\nconditions = [{ field = \"a\", operator = \"like\", value = 1 }]":        "operator in [[triggers.conditions]]: expected",
		good + "type = \"cron.fired\"\nconditions = [{ field = \"a\", operator = \"eq\" }]":                     "value is missing in [[triggers.conditions]]",
		good + "type = \"cron.fired\"\nconditions = [{ field = \"a\", operator = \"matches\", value = \"[\" }]": "value in [[triggers.conditions]]: expected a regular expression",
		good + "type = \"cron.fired\"\nconditions = [{ field = \"a\", operator = \"eq\", value = [1] }]":        "value in [[triggers.conditions]]: expected a string, a number, true or false",
		"id = \"t\"\ntype = \"cron.fired\"":                                                                       "action is missing in [[triggers]]",
		"id = \"t\"\ntype = \"cron.fired\"\naction = { type = \"agent\" }":                                        `prompt is missing in [triggers.action]`,
		"id = \"t\"\ntype = \"cron.fired\"\naction = { type = \"webhook\", url = \"ftp://h\" }":                   "expected an address of https or http",
		"id = \"t\"\ntype = \"cron.fired\"\naction = { type = \"notify\", message = \"m\", url = \"https://h\" }": `expected nothing, for an action of type "notify"`,
		"type = \"cron.fired\"\naction = { type = \"notify\", message = \"m\" }":                                  "id is missing in [[triggers]]",
		good + "type = \"cron.fired\"\ntimes = 3":                                                                 `unknown key "times" in [[triggers]]`,
	} {
		problems := triggerProblems(t, text)
		if want == "" {
			assert.Empty(t, problems, text)
			continue
		}
		if assert.Len(t, problems, 1, text) {
			assert.Contains(t, problems[0], want, text)
		}
	}
}

func TestWebhooksNeedTheirHost(t *testing.T) {
	a := config.Automation{WebhookHosts: []string{"hooks.example.com", "127.0.0.1:8080", "Other.example:443"}}
	for address, allowed := range map[string]bool{
		"https://hooks.example.com/x":             true,
		"https://HOOKS.example.com:443/x":         true,
		"http://hooks.example.com/x":              true,
		"https://hooks.example.com:8443/x":        false,
		"https://a.hooks.example.com/":            false,
		"https://hooks.example.com.evil/":         false,
		"https://hooks.example.com@evil/":         false,
		"http://127.0.0.1:8080/":                  true,
		"http://127.0.0.1/":                       false,
		"https://other.example/":                  true,
		"http://other.example/":                   false,
		"file:///etc/passwd":                      false,
		"https://evil/?https://hooks.example.com": false,
	} {
		assert.Equal(t, allowed, a.AllowsWebhook(address), address)
	}
}
