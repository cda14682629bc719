// Package shellcommand reads what an agent wants a shell to run, once for all
// who have to know it: the rules that allow or deny it, the question by which
// it is known again, and the person who is shown it.
//
// A [Command] is made of one text, as for a shell, or of the words of one
// program. Where a program is a shell that is given a script (bash -lc '…'), the
// script counts. A script is taken apart into [Part]s, the simple commands that
// it could run, wherever they stand: behind && or a newline, in a substitution,
// a function, a loop, behind env or nohup, in the script of another shell.
//
// Which shell runs a text is not always known, and shells read some texts
// differently. So a text has a reading for each shell that it could be for, and
// to be allowed its parts have to be allowed in all of them.
//
// Two questions are asked of it, and doubt counts against the command in both.
// [Command.AllowedBy] is careful: each part has to be what some rule says, and
// what cannot be told (eval, variables, what is no shell script) is not.
// [Command.CouldRun] is generous: it is enough if any part could be what the
// rule says, also behind a variable, or as the text stands there.
//
// What a program does with its arguments is not looked into, beyond those whose
// purpose it is to run another program.
package shellcommand
