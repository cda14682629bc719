// Package shellcommand parses the shell commands of agents, once for all uses: the rules that
// allow or deny a command, the key of its approval, and the displayed text.
//
// A [Command] is made from one text, as for a shell, or from the words of one program. If the
// program is a shell with a script (bash -lc '…'), the script counts. A script is split into
// [Part]s, the simple commands that it could run. A part may be after && or a newline, in a
// substitution, a function, a loop, after env or nohup, or in the script of another shell.
//
// The shell of a text is not always known, and shells parse some texts differently. So a text
// has a reading for each possible shell, and is allowed only if its parts are allowed in all of
// them.
//
// There are two tests, and doubt counts against the command in both. [Command.AllowedBy] is
// strict: a rule must match each part, and unknown text (eval, variables, anything that is not a
// shell script) matches none. [Command.CouldRun] is broad: one part that could match the rule is
// enough, also behind a variable, or in the text as written.
//
// The package does not examine a program's arguments, except those of programs whose purpose is
// to run another program.
package shellcommand
