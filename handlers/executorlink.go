package handlers

import "github.com/duet-rpc/duet-rpc/internal/dialect"

// ExecutorError turns an error of the hub into what an executor is told: the
// codes of the executor catalog.
func ExecutorError(err error) error { return dialect.Executor.Error(err) }
