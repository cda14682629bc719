package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/history"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerHistory registers what `duet-rpc trust --database` asks of a hub that
// runs.
func registerHistory(reg *server.Registry, d Domain) {
	handle(reg, d, dialect.Task, "daemon.takeHistory", func(ctx context.Context, _ *hub.Hub, p takeHistoryParams) (takeHistoryResult, error) {
		taken, where, err := d.TakeHistory(ctx, p.Directory)
		return takeHistoryResult{taken, where}, err
	}, server.LongRunning(), server.Doc("Takes over the history of a database of this project's that was set aside because the user did not make it: its conversations, and nothing that acts. A human is to have looked at it (`duet-rpc trust --database`). No events tell of it: list sessions again. Each conversation is taken at once or not at all, and other changes wait meanwhile, so a long one is refused; called again it goes on where it was ended."))
}

type takeHistoryParams struct {
	Directory string `json:"directory" doc:"The name of the directory in .duet, such as set-aside-20260102T030405Z."`
}

func (p takeHistoryParams) check() error { return need("directory", p.Directory) }

type takeHistoryResult struct {
	history.Result
	Database string `json:"database" doc:"Where the database is now; nobody needs it any more."`
}
