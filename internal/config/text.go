package config

import (
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// textNames are what each value is called where it is a text: a variable or a
// flag.
type textNames struct{ agent, maxRuns, queueCap, runTimeout, idleAgents, daemonIdle string }

// environmentLayer is what environment variables say.
func environmentLayer(getenv func(string) string) *layer {
	names := textNames{"DUET_AGENT", "DUET_MAX_RUNS", "DUET_QUEUE_CAP", "DUET_RUN_TIMEOUT", "DUET_IDLE_AGENTS", "DUET_DAEMON_IDLE"}
	l := textLayer(SourceEnvironment, names, Overrides{
		Agent: getenv(names.agent), MaxRuns: getenv(names.maxRuns),
		QueueCap: getenv(names.queueCap), RunTimeout: getenv(names.runTimeout), IdleAgents: getenv(names.idleAgents), DaemonIdle: getenv(names.daemonIdle),
	})
	if getenv("DUET_ACP_SAVED_FILES") != "" {
		yes := true
		l.savedFiles = &yes
	}
	return l
}

// flagLayer is what flags say.
func flagLayer(o Overrides) *layer {
	return textLayer(SourceFlag, textNames{"--agent", "--max-runs", "--queue-cap", "--run-timeout", "--idle-agents", "--daemon-idle"}, o)
}

// textLayer is what texts say. An empty one says nothing.
func textLayer(source string, names textNames, texts Overrides) *layer {
	l := &layer{Document: &document.Document{Root: map[string]any{}}, source: source}
	t := l.Table()
	for name, text := range map[string]string{names.agent: texts.Agent, names.runTimeout: texts.RunTimeout, names.daemonIdle: texts.DaemonIdle} {
		if text != "" {
			t.Values[name] = text
		}
	}
	whole := func(name, text string, least, most int) *int {
		if text == "" {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Wrong(name, document.WholeRange(least, most), document.QuoteShort(text))
			return nil
		}
		t.Values[name] = n
		return t.Whole(name, least, most)
	}
	l.defaultAgent = t.Checked(names.agent, document.CheckName)
	l.maxRuns = whole(names.maxRuns, texts.MaxRuns, leastRuns, mostRuns)
	l.queueCap = whole(names.queueCap, texts.QueueCap, leastQueue, mostQueue)
	l.idleAgents = whole(names.idleAgents, texts.IdleAgents, leastIdle, mostIdle)
	l.runTimeout = t.Duration(names.runTimeout, leastTimeout, mostTimeout)
	l.daemonIdle = t.Duration(names.daemonIdle, 0, mostTimeout)
	for i, p := range l.Problems { // a text's name stands where a file's would
		l.Problems[i].Name, l.Problems[i].Message, _ = strings.Cut(p.Message, ": ")
	}
	return l
}
