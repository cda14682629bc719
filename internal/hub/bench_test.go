package hub

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// benchmarkReports measures the time from ReportMessage to commit and delivery to a subscriber.
func benchmarkReports(b *testing.B, report func(*fakeTurn)) {
	begin, end := make(chan struct{}), make(chan struct{})
	x := &executors{stops: make(map[string]context.CancelFunc), play: func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		<-begin
		for range b.N {
			report(x)
		}
		return completed
	}}
	path := filepath.Join(b.TempDir(), "duet.db")
	project := &fakeProject{Agents: agents{}, openStore: sqlite.Opener(path), unchanged: make(chan struct{})}
	h, err := Open(b.Context(), Options{
		Project: project, Configuration: project, Database: path, Root: filepath.Dir(path),
		Limits:    config.Limits{MaxTurns: 1, QueueCap: 1, TurnTimeout: time.Hour},
		Getenv:    func(string) string { return "" },
		Executors: func(d catalog.Daemon) Executors { x.daemon = d; return x },
	})
	require.NoError(b, err)
	defer h.Close()
	sub := must(h.events.Subscribe(b.Context(), eventlog.Subscribing{Since: -1}, func(_ context.Context, n eventlog.Notice) error {
		if p, ok := n.Payload.(domain.TurnStateChanged); ok && p.To == domain.Completed {
			close(end)
		}
		return nil
	}))(b)
	sub.Start()
	defer sub.Close()
	must(h.Launch(b.Context(), LaunchSpec{Prompt: "p", Source: domain.SourceTask}))(b)
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	<-end
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkDelta(b *testing.B) {
	benchmarkReports(b, func(x *fakeTurn) { x.say("a piece of what it says ") })
}

func BenchmarkToolCall(b *testing.B) {
	benchmarkReports(b, func(x *fakeTurn) {
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "call", Tool: "Bash", Title: "make test", Status: "in_progress"})
	})
}
