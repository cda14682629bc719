// Package storetest has the tests for every [store.Store]: reads return what was written, the log
// keeps its order, and transactions are atomic.
package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// An Opener opens the store in a directory, and creates a missing one.
type Opener func(ctx context.Context, dir string, opts store.Options) (store.Store, error)

// Run runs the tests on the kind of store that open opens.
func Run(t *testing.T, open Opener) {
	k := kind{open}
	for _, test := range []struct {
		name string
		run  func(*testing.T, kind)
	}{
		{"ChangeKeepsFirstContent", testChangeKeepsFirstContent},
		{"FailingChangeIsUndoneAlone", testFailingChangeIsUndoneAlone},
		{"StoreSurvivesReopening", testStoreSurvivesReopening},
		{"EventRoundTrip", testEventRoundTrip},
		{"ApprovalRoundTrip", testApprovalRoundTrip},
		{"ItemRoundTrip", testItemRoundTrip},
		{"SessionWithoutTurns", testSessionWithoutTurns},
		{"ApprovalByCallID", testApprovalByCallID},
		{"CloseCommitsQueuedChanges", testCloseCommitsQueuedChanges},
		{"EventsAreAnnouncedBeforeWriteReturns", testEventsAreAnnouncedBeforeWriteReturns},
		{"ReadsWaitForAnnouncement", testReadsWaitForAnnouncement},
		{"AliasesFindTurns", testAliasesFindTurns},
		{"IDsBeforeNumbers", testIDsBeforeNumbers},
		{"TurnNumbersAreNotReused", testTurnNumbersAreNotReused},
		{"AttachmentsAreStoredOnce", testAttachmentsAreStoredOnce},
		{"TriggerExecutions", testTriggerExecutions},
		{"GateLoopOfEachTurn", testGateLoopOfEachTurn},
		{"NoRunStartsDuringGates", testNoTurnStartsDuringGates},
		{"HasDenied", testHasDenied},
		{"PageMessagesAreLimited", testPageMessagesAreLimited},
		{"ChangeDecisions", testChangeDecisions},
		{"Usage", testUsage},
		{"AgentSessions", testAgentSessions},
		{"ConcurrentWritersLeaveNoGaps", testConcurrentWritersLeaveNoGaps},
		{"Meta", testMeta},
		{"OpenDeltas", testOpenDeltas},
		{"ProcessesAndPaths", testProcessesAndPaths},
		{"RulesAndKeyAccesses", testRulesAndKeyAccesses},
		{"TurnsOfASession", testTurnsOfASession},
		{"SearchAcceptsAnyText", testSearchAcceptsAnyText},
		{"SearchIgnoresDirectory", testSearchIgnoresDirectory},
		{"SessionsAreFilteredAndPaged", testSessionsAreFilteredAndPaged},
		{"StartableOrder", testStartableOrder},
		{"RollbackReachesCachesFirst", testRollbackReachesCachesFirst},
		{"DeletionKeepsSharedData", testDeletionKeepsSharedData},
		{"WriteReturnsWhenItsContextEnds", testWriteReturnsWhenItsContextEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, k) })
	}
}

// A kind is the kind of the stores under test.
type kind struct{ open Opener }

var ctx = context.Background()

// openAt opens the store of a directory, and closes it when the test ends.
func (k kind) openAt(t *testing.T, dir string, committed ...func([]domain.Event, store.Reader)) store.Store {
	t.Helper()
	var opts store.Options
	if len(committed) > 0 {
		opts.Committed = committed[0]
	}
	s, err := k.open(ctx, dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() }) // a second Close is harmless in a test
	return s
}

func (k kind) openNew(t *testing.T, committed ...func([]domain.Event, store.Reader)) store.Store {
	t.Helper()
	return k.openAt(t, t.TempDir(), committed...)
}
