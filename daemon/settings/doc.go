// Package settings declares what the operator of the service decides.
//
// The daemon takes a Settings and makes the configuration of its parts from it; cmd/executord reads one from its command
// line, and executorctl shares some of the declarations. It must never start or open anything.
//
// A Settings is a value: several goroutines may read one.
package settings
