package domain

import "strings"

// LastRun names the run that was begun last, drafts aside, wherever an id of a run is
// taken and nothing has it as an id.
const LastRun = "last"

// A prompt that asks an agent to go on where it was interrupted, which no human wrote,
// begins with goOn and repeats the request below theRequest.
const (
	goOn       = "Continue where you left off. "
	theRequest = "\n\nThe request was:\n\n"
)

// GoOnPrompt asks an agent to go on with a request where it was interrupted. why says
// what has happened, and what it is to do. Its own session may have lost the turn, so
// the request is repeated. The demo agent, which has no model, knows the first word
// and the line above the request.
func GoOnPrompt(why, request string) string { return goOn + why + theRequest + request }

// RequestOf is what a human asked for in a prompt: all of it, but of one of
// [GoOnPrompt] the request that it repeats.
func RequestOf(prompt string) string {
	if i := strings.LastIndex(prompt, theRequest); i >= 0 && strings.HasPrefix(prompt, goOn) {
		return prompt[i+len(theRequest):]
	}
	return prompt
}
