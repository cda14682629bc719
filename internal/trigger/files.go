package trigger

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config/triggerconfig"
)

// files are the files that triggers watch.
type files struct{}

type batch struct{}

func newFiles(context.Context, Options) *files { return &files{} }

func (f *files) stop()                                               {}
func (f *files) batches() <-chan batch                               { return nil }
func (f *files) watch([]triggerconfig.Trigger, map[string]time.Time) {}
func (e *Engine) fireBatch(context.Context, batch)                   {}
