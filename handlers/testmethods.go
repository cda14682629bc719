package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

// RegisterTestMethods registers methods for authors of clients, to try cancellation, errors and
// isolation (flag --test-methods).
func RegisterTestMethods(reg *server.Registry) {
	server.Handle(reg, "test.sleep", testSleep, server.LongRunning(),
		server.Doc("Sleeps, then answers (with --test-methods)."))
	server.Handle(reg, "test.fail", testFail, server.LongRunning(),
		server.Doc("Fails with an error whose text goes only to the log (with --test-methods)."))
	server.Handle(reg, "test.panic", testPanic, server.LongRunning(),
		server.Doc("Panics (with --test-methods)."))
}

type testSleepParams struct {
	MS uint `json:"ms" doc:"Duration in milliseconds."`
}

type testSleepResult struct {
	SleptMS uint `json:"slept_ms"`
}

func testSleep(ctx context.Context, p testSleepParams) (testSleepResult, error) {
	select {
	case <-time.After(time.Duration(p.MS) * time.Millisecond):
		return testSleepResult{p.MS}, nil
	case <-ctx.Done():
		return testSleepResult{}, context.Cause(ctx)
	}
}

func testFail(context.Context, none) (none, error) {
	return none{}, errors.New("test.fail was called; this text must not reach the peer")
}

func testPanic(context.Context, none) (none, error) {
	panic("test.panic was called; this text must not reach the peer")
}
