// Package budget ends runs that have used what they may: it holds what agents tell of
// themselves against the limits of the configuration, for the run, its conversation and
// the day, warns before one is reached, and has the run interrupted when one is.
//
// A run that was interrupted for that can be continued: with the new run a new account
// begins for the run and for the conversation. The account of a day begins at midnight.
package budget
