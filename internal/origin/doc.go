// Package origin knows whether a database was made by this user on this
// machine. A database acts: its queued runs start, its rules answer questions.
// One that came with a repository, an archive or a copied directory must not.
//
// The user has a secret outside of every project (see [LoadKey]). Beside each
// database lies a mark: which database it is, where, and which file, with an
// HMAC under that secret. The mark is read, and the files are looked at, before
// anything of the database itself is: what is not known never gets as far as
// SQLite. The mark names the write-ahead log, too, which can replace every page
// of a database (https://sqlite.org/walformat.html).
//
// A file is known by its inode and the moment at which it was made. Neither can
// be chosen by whoever writes a repository, so the mark of a database that was
// published once is of no use to them. The number of its file system is not
// looked at: it changes over reboots on some of them.
package origin
