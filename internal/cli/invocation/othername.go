package invocation

// otherName is the command that does what a word says under which people may look for it, since another
// program has it under that name; "" where there is none. under is the path of the command before the word.
func otherName(under, word string) string {
	switch under + " " + word {
	case "duet-rpc chat", "duet-rpc exec", "duet-rpc run":
		return "prompt"
	case "duet-rpc resume":
		return "prompt --continue"
	case "duet-rpc history", "duet-rpc list", "duet-rpc ls", "duet-rpc ps", "duet-rpc sessions":
		return "session list"
	case "duet-rpc diff", "duet-rpc export", "duet-rpc show":
		return "session show"
	case "duet-rpc interrupt", "duet-rpc kill":
		return "session interrupt"
	case "duet-rpc delete", "duet-rpc rm":
		return "session delete"
	case "duet-rpc cancel":
		return "task cancel"
	case "duet-rpc submit":
		return "task submit"
	case "duet-rpc start":
		return "daemon start"
	case "duet-rpc status":
		return "daemon status"
	case "duet-rpc stop":
		return "daemon stop"
	case "duet-rpc log", "duet-rpc logs":
		return "daemon logs"
	case "duet-rpc tail", "duet-rpc watch":
		return "events"
	case "duet-rpc inbox", "duet-rpc questions":
		return "approvals"
	case "duet-rpc allow", "duet-rpc approve":
		return "approvals approve"
	case "duet-rpc deny":
		return "approvals deny"
	case "duet-rpc answer", "duet-rpc respond":
		return "approvals respond"
	case "duet-rpc login":
		return "agents login"
	case "duet-rpc logout":
		return "agents logout"
	case "duet-rpc check":
		return "doctor"
	case "duet-rpc settings":
		return "config"
	case "duet-rpc agents list", "duet-rpc agents ls":
		return "agents"
	case "duet-rpc approvals list", "duet-rpc approvals ls":
		return "approvals"
	case "duet-rpc approvals allow", "duet-rpc approvals yes":
		return "approve"
	case "duet-rpc approvals no", "duet-rpc approvals reject":
		return "deny"
	case "duet-rpc approvals answer":
		return "respond"
	case "duet-rpc daemon restart":
		return "stop, and then start"
	case "duet-rpc session ls", "duet-rpc task ls", "duet-rpc triggers ls":
		return "list"
	case "duet-rpc session cat", "duet-rpc session diff", "duet-rpc session export", "duet-rpc session get", "duet-rpc session open", "duet-rpc session view":
		return "show"
	case "duet-rpc session rm":
		return "delete"
	case "duet-rpc session prompt", "duet-rpc session resume", "duet-rpc session send":
		return "continue"
	case "duet-rpc session new", "duet-rpc session run", "duet-rpc session start":
		return "launch"
	case "duet-rpc session cancel", "duet-rpc session kill", "duet-rpc session stop":
		return "interrupt"
	case "duet-rpc session agent", "duet-rpc session mode", "duet-rpc session model":
		return "set"
	case "duet-rpc task show", "duet-rpc task status":
		return "get"
	case "duet-rpc task add", "duet-rpc task new", "duet-rpc task run":
		return "submit"
	case "duet-rpc task kill", "duet-rpc task rm", "duet-rpc task stop":
		return "cancel"
	case "duet-rpc triggers off":
		return "disable"
	case "duet-rpc triggers on":
		return "enable"
	}
	return ""
}
