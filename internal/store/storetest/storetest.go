// Package storetest has the tests for every [store.Store]: reads return what was written, the log
// keeps its order, and transactions are atomic.
package storetest

import (
	"context"
	"testing"

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
		{"AChangeKeepsWhatTheFileWasAtFirst", testAChangeKeepsWhatTheFileWasAtFirst},
		{"AFailingChangeOfAGroupIsUndoneAlone", testAFailingChangeOfAGroupIsUndoneAlone},
		{"AStoreKeepsWhatItWasGiven", testAStoreKeepsWhatItWasGiven},
		{"AnEventIsReadAsItWasAppended", testAnEventIsReadAsItWasAppended},
		{"AnApprovalIsReadAsItWasAsked", testAnApprovalIsReadAsItWasAsked},
		{"AnItemIsReadAsItWasWritten", testAnItemIsReadAsItWasWritten},
		{"AThreadWithoutRunsNamesNone", testAThreadWithoutRunsNamesNone},
		{"AnApprovalIsFoundByItsCallToo", testAnApprovalIsFoundByItsCallToo},
		{"CloseCommitsWhatIsQueued", testCloseCommitsWhatIsQueued},
		{"EventsAreAnnouncedBeforeWhoeverWaitsGoesOn", testEventsAreAnnouncedBeforeWhoeverWaitsGoesOn},
		{"WhoReadsAChangeGoesOnWhenAllIsTold", testWhoReadsAChangeGoesOnWhenAllIsTold},
		{"EveryAliasFindsItsRun", testEveryAliasFindsItsRun},
		{"AttachmentsAreKeptOnce", testAttachmentsAreKeptOnce},
		{"AnEventIsExecutedOnce", testAnEventIsExecutedOnce},
		{"ALoopIsFoundByEachOfItsRuns", testALoopIsFoundByEachOfItsRuns},
		{"NothingStartsWhileGatesAreChecked", testNothingStartsWhileGatesAreChecked},
		{"ADenialByAPersonIsFound", testADenialByAPersonIsFound},
		{"WhatPagesSayIsKeptForAWhile", testWhatPagesSayIsKeptForAWhile},
		{"WhatWasDecidedAboutChangesIsKept", testWhatWasDecidedAboutChangesIsKept},
		{"UsageIsSummedUp", testUsageIsSummedUp},
		{"WhatAnAgentTellsOfItsSessionIsKept", testWhatAnAgentTellsOfItsSessionIsKept},
		{"ManyWritersShareALogWithoutGaps", testManyWritersShareALogWithoutGaps},
		{"MetaIsEmptyUntilItIsSet", testMetaIsEmptyUntilItIsSet},
		{"OpenDeltasAreThoseThatNoMessageHolds", testOpenDeltasAreThoseThatNoMessageHolds},
		{"ProcessesAndPaths", testProcessesAndPaths},
		{"RulesAndKeyAccesses", testRulesAndKeyAccesses},
		{"RunsOfAThread", testRunsOfAThread},
		{"SearchTakesWhatPeopleType", testSearchTakesWhatPeopleType},
		{"SessionsAreFilteredAndPaged", testSessionsAreFilteredAndPaged},
		{"StartableIsByPriorityThenAgeAndOneOfAThread", testStartableIsByPriorityThenAgeAndOneOfAThread},
		{"WhoRemembersIsToldOfWhatWasUndone", testWhoRemembersIsToldOfWhatWasUndone},
		{"WhatIsDeletedLeavesWhatOthersShare", testWhatIsDeletedLeavesWhatOthersShare},
		{"WriteReturnsWhenItsContextEnds", testWriteReturnsWhenItsContextEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, k) })
	}
}
