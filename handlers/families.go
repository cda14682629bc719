package handlers

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// nativeFamily is the family of the native methods: each kind of error has one code, and the message is
// a sentence without the name of the code.
var nativeFamily = protocol.Family{
	Name: "native", Codes: nativeCodes(), Params: map[string]string{"permission_mode": "mode", "launch_id": "start_id"}, Plain: true,
}

// Codes of the native methods.
const (
	codeNotFound = -32050 // nothing has the id or the number
	codeRefused  = -32051 // not as things are now; another request, or the same one later, may succeed
	codeNoHub    = -32052
	codeFailed   = -32053 // what Duet ran failed: git, an agent, a build, an MCP server
)

// nativeCodes returns the native methods' table of errors. Other kinds are internal errors.
func nativeCodes() map[string]protocol.Code {
	codes := map[string]protocol.Code{
		domain.KindTurnNotFound:         {Code: codeNotFound, Kind: "not_found"},
		domain.KindNotCancellable:       {Code: codeRefused, Kind: "not_running"},
		domain.KindQueueFull:            {Code: server.CodeOverloaded, Kind: domain.KindQueueFull},
		domain.KindTooManySubscriptions: {Code: server.CodeOverloaded, Kind: domain.KindTooManySubscriptions},
		domain.KindUnavailable:          {Code: codeNoHub, Kind: domain.KindUnavailable},
	}
	for code, kinds := range map[int64][]string{
		codeNotFound: {
			domain.KindApprovalNotFound, domain.KindRuleNotFound, domain.KindChangeNotFound, domain.KindTerminalNotFound,
			domain.KindAttachmentNotFound, domain.KindItemNotFound,
			domain.KindTriggerNotFound, domain.KindSubscriptionNotFound, domain.KindProjectNotFound,
			domain.KindNoAttempts, domain.KindNoWorktree, domain.KindNoBuild,
		},
		codeRefused: {
			domain.KindBadState, domain.KindAlreadyDecided, domain.KindChanged, domain.KindSetting, domain.KindNotOffered, domain.KindAgentOnHost, domain.KindNeedsTerminal, domain.KindNoAPIKey,
			domain.KindChangedSince, domain.KindNotKept, domain.KindOutside, domain.KindConflict, domain.KindOverlap, domain.KindLosses,
			domain.KindSandbox, domain.KindTerminalTaken, domain.KindTerminalReadOnly, domain.KindPermissionDenied, domain.KindTaskCancelled, domain.KindNavigation,
		},
		codeFailed: {
			domain.KindExecutor, domain.KindWorktree, domain.KindNotWritable, domain.KindEditor, domain.KindListen, domain.KindMCPServer,
			domain.KindPreviewLoad, domain.KindContextOverflow,
		},
	} {
		for _, kind := range kinds {
			codes[kind] = protocol.Code{Code: code, Kind: kind}
		}
	}
	return codes
}
