// Package settings declares what the operator of the service decides, and reads it: from flags, the environment and a file
// of variables, each before the next, with a default behind them.
//
// cmd/executord loads a set and reloads it; the daemon makes the configuration of its parts from it; the admin app and
// executorctl list it. Help, man page, sample file and table are made from the declaration by its tests. The package must
// never start, open or change anything: it looks at files that settings name, and no further.
//
// What it reads is the operator's, but bounded all the same. No message repeats what may be a secret.
//
// A Settings is a value that several goroutines may read; the methods of Loaded may be called by several at once.
package settings
